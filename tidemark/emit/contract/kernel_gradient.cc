// The gradient of a convolution by its kernel. Where a group has few channels in and as many out,
// vectors run along the channels, which are contiguous: the sums of all taps of a line of pixels
// are added up at once, so that each pixel is read once for a few taps. Other groups are
// convolutions of interleaved images.
#include <algorithm>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/blocks.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/contract/depthwise.h"
#include "tidemark/emit/contract/taps.h"
#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark {
namespace {

using contraction::add_bytes;
using contraction::Blocks;
using contraction::DepthwiseSums;
using contraction::DepthwiseTap;
using contraction::divide_up;
using contraction::kBlock;
using contraction::kernel_set;
using contraction::Range;
using contraction::Taps;

template <class T>
auto sums_kernel(DType dtype, int number) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (dtype == DType::f16) return kernel_set<float>().depthwise_sums_f16[number];
    if (dtype == DType::bf16) return kernel_set<float>().depthwise_sums_bf16[number];
  }
  return kernel_set<T>().depthwise_sums[number];
}

// Whether vectors run along the channels.
bool runs_along_channels(const Convolution& p) {
  if (p.groups == 1 && p.c_in == 1 && p.c_out == 1) return true;
  const int number = contraction::group_number(p);
  if (number < 0) return false;
  return p.dtype == DType::f64 ? sums_kernel<double>(p.dtype, number) != nullptr
                               : sums_kernel<float>(p.dtype, number) != nullptr;
}
int64_t group_channels(const Convolution& p) { return p.c_in / p.groups; }

// The images of a group are its channels, and their channels are the images.
ConvolutionAcross across_of(const KernelGradient& gradient) {
  const Convolution& p = gradient.of;
  ConvolutionAcross across{.of = p,
                           .in_c = p.in_n,
                           .weight_h = gradient.by_h,
                           .weight_w = gradient.by_w,
                           .weight_c = gradient.by_n,
                           .weight_d = gradient.by_d,
                           .by_channel = true,
                           .kernel_layout = true};
  Convolution& of = across.of;
  of.in_n = 1;
  of.weight = gradient.by;
  of.out = gradient.to;
  std::swap(of.n, of.c_in);
  std::swap(of.kd, of.out_d);
  std::swap(of.kh, of.out_h);
  std::swap(of.kw, of.out_w);
  std::swap(of.stride_d, of.dilation_d);
  std::swap(of.stride_h, of.dilation_h);
  std::swap(of.stride_w, of.dilation_w);
  return across;
}

// A piece is some lines of taps of some vectors of channels, or groups if those are larger.
struct Cut {
  int64_t width = 0, panels = 0;  // Channels of a piece, whole vectors.
  int64_t lines = 0, line_parts = 0;
  bool serial = true;

  int64_t pieces() const { return panels * line_parts; }
  // One set of sums.
  int64_t sums(const Convolution& p) const { return lines * p.kw * group_channels(p) * width; }
};

Cut cut_up(const Convolution& p, int64_t vector_lanes, int threads) {
  constexpr double kSmall = 1e6;
  const int64_t lanes = std::max(vector_lanes, group_channels(p));  // No piece cuts a group.
  const int64_t vectors = divide_up(p.c_out, lanes), lines = p.kd * p.kh;
  const double work = static_cast<double>(p.n * p.out_d * p.out_h * p.out_w) *
                      static_cast<double>(p.c_out) *
                      static_cast<double>(lines * p.kw * group_channels(p));
  Cut cut;
  cut.serial = threads == 1 || work < kSmall;
  const int64_t wanted = cut.serial ? 1 : threads;
  cut.panels = std::min(vectors, wanted);
  cut.width = divide_up(vectors, cut.panels) * lanes;
  cut.panels = divide_up(p.c_out, cut.width);
  cut.lines = divide_up(lines, std::min(lines, divide_up(wanted, cut.panels)));
  cut.line_parts = divide_up(lines, cut.lines);
  return cut;
}

template <class T>
class Piece {
 public:
  // `scratch` has room for two sets of sums, and the taps.
  Piece(const KernelGradient& gradient, const Cut& cut, int64_t piece, std::byte* scratch)
      : gradient_(gradient),
        p_(gradient.of),
        width_(cut.width),
        channel_(piece % cut.panels * cut.width),
        first_line_(piece / cut.panels * cut.lines),
        end_line_(std::min(p_.kd * p_.kh, first_line_ + cut.lines)),
        blocks_(p_.out_d * p_.out_h * p_.out_w, p_.n, true),
        count_((end_line_ - first_line_) * p_.kw * group_channels(p_) * cut.width),
        sums_(reinterpret_cast<T*>(scratch)),
        totals_(sums_ + cut.sums(p_)),
        taps_(reinterpret_cast<DepthwiseTap*>(totals_ + cut.sums(p_))) {
    call_.channels = std::min(cut.width, p_.c_out - channel_);
    call_.taps = taps_;
    call_.sums = sums_;
    call_.sums_row = width_;
  }

  void run() {
    for (int64_t block = 0; block < blocks_.count(); ++block) {
      T* const into = block == 0 ? totals_ : sums_;
      std::fill_n(into, count_, T{0});
      call_.sums = into;
      if (blocks_.by_channel())
        add_images(blocks_.at(block));
      else
        add_pixels(block);
      for (int64_t i = 0; block > 0 && i < count_; ++i) totals_[i] += sums_[i];
    }
    store();
  }

 private:
  struct Place {
    int64_t z, y, x;
  };

  void add_images(const Range& range) {
    for (int64_t image = range.channel_begin; image < range.channel_end; ++image) {
      for (int64_t k = range.pixel_begin; k < range.pixel_end;) {
        const int64_t line = k / p_.out_w, x = k % p_.out_w;
        const int64_t end = std::min(p_.out_w, x + range.pixel_end - k);
        add_line(image, {line / p_.out_h, line % p_.out_h, x}, end);
        k += end - x;
      }
    }
  }
  // Pixels [at.x, end) of a line, in stretches that see the same taps.
  void add_line(int64_t image, Place at, int64_t end) {
    while (at.x < end) {
      const Taps kx = taps_of_pixel(at.x);
      int64_t stop = at.x + 1;
      while (stop < end && taps_of_pixel(stop) == kx) ++stop;
      call_.pixels = stop - at.x;
      call_.in_pixel = p_.stride_w * p_.in_w;
      call_.by_pixel = gradient_.by_w;
      add(image, at, kx);
      at.x = stop;
    }
  }
  // The same pixel of several images: k is pixel * n + image.
  void add_pixels(int64_t block) {
    const Range range = blocks_.at(block);
    for (int64_t k = range.pixel_begin; k < range.pixel_end; ++k) {
      const int64_t first = std::max<int64_t>(0, block * kBlock - k * p_.n);
      const int64_t line = k / p_.out_w;
      const Place at{line / p_.out_h, line % p_.out_h, k % p_.out_w};
      call_.pixels = std::min(p_.n, (block + 1) * kBlock - k * p_.n) - first;
      call_.in_pixel = p_.in_n;
      call_.by_pixel = gradient_.by_n;
      add(first, at, taps_of_pixel(at.x));
    }
  }

  Taps taps_of_pixel(int64_t x) const {
    return contraction::taps_inside(x, p_.stride_w, p_.pad_left, p_.dilation_w, p_.kw, p_.w);
  }
  void add(int64_t image, Place at, Taps kx) {
    const Taps kz =
        contraction::taps_inside(at.z, p_.stride_d, p_.pad_front, p_.dilation_d, p_.kd, p_.d);
    const Taps ky =
        contraction::taps_inside(at.y, p_.stride_h, p_.pad_top, p_.dilation_h, p_.kh, p_.h);
    call_.tap_count = 0;
    for (int64_t line = first_line_; line < end_line_; ++line) {
      const int64_t z = line / p_.kh, y = line % p_.kh;
      if (z < kz.begin || z >= kz.end || y < ky.begin || y >= ky.end) continue;
      for (int64_t x = kx.begin; x < kx.end; ++x)
        taps_[call_.tap_count++] = {
            z * p_.dilation_d * p_.in_d + y * p_.dilation_h * p_.in_h + x * p_.dilation_w * p_.in_w,
            ((line - first_line_) * p_.kw + x) * group_channels(p_) * width_};
    }
    if (call_.tap_count == 0) return;
    const int64_t from = image * p_.in_n + (at.z * p_.stride_d - p_.pad_front) * p_.in_d +
                         (at.y * p_.stride_h - p_.pad_top) * p_.in_h +
                         (at.x * p_.stride_w - p_.pad_left) * p_.in_w + channel_;
    const int64_t by = image * gradient_.by_n + at.z * gradient_.by_d + at.y * gradient_.by_h +
                       at.x * gradient_.by_w + channel_;
    call_.in = p_.in + from * size_of(p_.dtype);
    call_.by = gradient_.by + by * size_of(p_.dtype);
    kernel_(call_);
  }

  void store() {
    const int64_t first_row = first_line_ * p_.kw * group_channels(p_);
    for (int64_t row = 0; row < count_ / width_; ++row) {
      const int64_t place = (first_row + row) * p_.c_out + channel_;
      std::byte* const to = gradient_.to + place * size_of(p_.dtype);
      const T* const from = totals_ + row * width_;
      if constexpr (sizeof(T) == sizeof(float)) {
        const auto& kernels = kernel_set<float>();
        const auto round = p_.dtype == DType::f16    ? kernels.round_f16
                           : p_.dtype == DType::bf16 ? kernels.round_bf16
                                                     : nullptr;
        if (round != nullptr) {
          round(from, reinterpret_cast<uint16_t*>(to), call_.channels);
          continue;
        }
      }
      std::copy_n(from, call_.channels, reinterpret_cast<T*>(to));
    }
  }

  const KernelGradient& gradient_;
  const Convolution& p_;
  int64_t width_, channel_, first_line_, end_line_;
  const Blocks blocks_;
  int64_t count_;
  T *sums_, *totals_;
  DepthwiseTap* taps_;
  DepthwiseSums<T> call_;
  void (*kernel_)(const DepthwiseSums<T>&) =
      sums_kernel<T>(p_.dtype, std::max(0, contraction::group_number(p_)));
};

template <class T>
int64_t worker_bytes(const Convolution& p, const Cut& cut) {
  return add_bytes(2 * cut.sums(p) * static_cast<int64_t>(sizeof(T)) +
                   cut.lines * p.kw * static_cast<int64_t>(sizeof(DepthwiseTap)));
}

template <class T>
void run(const KernelGradient& gradient, int threads, std::byte* scratch) {
  const Cut cut = cut_up(gradient.of, kernel_set<T>().lanes, threads);
  const int64_t bytes = worker_bytes<T>(gradient.of, cut);
  const auto work = [&](int64_t begin, int64_t end, int worker) {
    for (int64_t piece = begin; piece < end; ++piece)
      Piece<T>(gradient, cut, piece, scratch + worker * bytes).run();
  };
  if (cut.serial)
    work(0, cut.pieces(), 0);
  else
    device::parallel_for(cut.pieces(), 1, threads, work);
}

template <class T>
int64_t scratch_bytes(const Convolution& p, int threads) {
  const Cut cut = cut_up(p, kernel_set<T>().lanes, threads);
  return (cut.serial ? 1 : device::workers_of(cut.pieces(), 1, threads)) * worker_bytes<T>(p, cut);
}

int64_t tap_count(const Convolution& p) {
  return p.kd * p.kh * p.kw * (p.c_in / p.groups) * p.c_out;
}

}  // namespace

int64_t kernel_gradient_scratch_bytes(const KernelGradient& gradient, int threads) {
  const Convolution& p = gradient.of;
  if (!runs_along_channels(p) || tap_count(p) == 0) return 0;
  const device::FloatEnvironment environment;  // Sizes of work are estimated in floats.
  return p.dtype == DType::f64 ? scratch_bytes<double>(p, threads)
                               : scratch_bytes<float>(p, threads);
}

void kernel_gradient(const KernelGradient& gradient, int threads, std::byte* scratch) {
  const Convolution& p = gradient.of;
  TIDEMARK_CHECK(p.spread_d * p.spread_h * p.spread_w == 1, "kernel_gradient: spread pixels");
  if (tap_count(p) == 0) return;
  if (p.n * p.out_d * p.out_h * p.out_w == 0) {
    std::fill_n(gradient.to, tap_count(p) * size_of(p.dtype), std::byte{0});
    return;
  }
  if (!runs_along_channels(p)) return convolve_across(across_of(gradient), threads);
  const device::FloatEnvironment environment;
  if (p.dtype == DType::f64) return run<double>(gradient, threads, scratch);
  run<float>(gradient, threads, scratch);
}

}  // namespace tidemark
