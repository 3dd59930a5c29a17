#include "tidemark/emit/contract/depthwise.h"

#include <algorithm>
#include <array>

#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/taps.h"
#include "tidemark/emit/contract/tile.h"

namespace tidemark::contraction {
namespace {

// Products that are worth a thread of their own.
constexpr int64_t kPieceWork = 65536;

void (*kernel_of(DType dtype, int number))(const Depthwise&) {
  if (dtype == DType::f64) return kernel_set<double>().depthwise[number];
  if (is_whole32(dtype)) return kernel_set<int32_t>().depthwise[number];
  const KernelSet<float>& kernels = kernel_set<float>();
  return dtype == DType::f16    ? kernels.depthwise_f16[number]
         : dtype == DType::bf16 ? kernels.depthwise_bf16[number]
                                : kernels.depthwise[number];
}

// Where a line of the outputs of a phase is.
struct Place {
  int64_t image, z, y;
};

// Lines of the output, each of stretches of pixels that see the same taps.
class Lines {
 public:
  Lines(const Convolution& p, const Phase& phase, void (*kernel)(const Depthwise&))
      : p_(p), phase_(phase), kernel_(kernel), tap_size_(p.c_in / p.groups * p.c_out) {}

  void run(Place at) {
    at_ = at;
    kz_ = phase_.z.taps_at(at.z);
    ky_ = phase_.y.taps_at(at.y);
    for (int64_t x = 0; x < phase_.x.out;) {
      const Stretch stretch = next_stretch(phase_.x, x, phase_.x.out);
      run_stretch(stretch);
      x = stretch.end;
    }
  }

 private:
  // From the first tap of a stretch, in elements.
  void add_tap(Depthwise& d, int64_t z, int64_t y, int64_t x) {
    const int64_t tap = ((phase_.z.first_tap + z * phase_.z.tap_step) * p_.kh + phase_.y.first_tap +
                         y * phase_.y.tap_step) *
                            p_.kw +
                        phase_.x.first_tap + x * phase_.x.tap_step;
    taps_[static_cast<size_t>(d.tap_count++)] = {z * phase_.z.dilation * p_.in_d +
                                                     y * phase_.y.dilation * p_.in_h +
                                                     x * phase_.x.dilation * p_.in_w,
                                                 tap * tap_size_};
  }

  void run_stretch(const Stretch& stretch) {
    const auto [begin, end, kx] = stretch;
    Depthwise d;
    for (int64_t z = kz_.begin; z < kz_.end; ++z)
      for (int64_t y = ky_.begin; y < ky_.end; ++y)
        for (int64_t x = kx.begin; x < kx.end; ++x) add_tap(d, z, y, x);
    const int64_t size = size_of(p_.dtype);
    const auto place = [](const PhaseAxis& axis, int64_t at) {
      return at * axis.stride - axis.pad;
    };
    const auto out_place = [](const PhaseAxis& axis, int64_t at) {
      return axis.first_out + at * axis.out_step;
    };
    const int64_t from = at_.image * p_.in_n + place(phase_.z, at_.z) * p_.in_d +
                         place(phase_.y, at_.y) * p_.in_h + place(phase_.x, begin) * p_.in_w;
    const int64_t line =
        (at_.image * p_.out_d + out_place(phase_.z, at_.z)) * p_.out_h + out_place(phase_.y, at_.y);
    d.in = p_.in + from * size;
    d.in_pixel = phase_.x.stride * p_.in_w;
    d.in_runs = phase_.x.dilation == phase_.x.stride && kx.end - kx.begin == kDepthwiseRun;
    // What the next line sees for the first time.
    const int64_t below = (ky_.end - 1) * phase_.y.dilation + phase_.y.stride;
    d.next = static_cast<const std::byte*>(d.in) + below * p_.in_h * size;
    d.weight = p_.weight;
    d.taps = taps_.data();
    d.out = p_.out + (line * p_.out_w + out_place(phase_.x, begin)) * p_.c_out * size;
    d.out_pixel = phase_.x.out_step * p_.c_out;
    d.pixels = end - begin;
    d.channels = p_.c_out;
    kernel_(d);
  }

  const Convolution& p_;
  const Phase& phase_;
  void (*kernel_)(const Depthwise&);
  const int64_t tap_size_;
  Place at_{};
  Taps kz_, ky_;
  std::array<DepthwiseTap, kBlock> taps_;
};

}  // namespace

int group_number(const Convolution& p) {
  if (p.groups <= 1 || p.c_in != p.c_out) return -1;
  for (int number = 0; number < kGroupSizes; ++number)
    if (p.c_in == p.groups * group_size(number)) return number;
  return -1;
}

bool is_depthwise(const Convolution& p) {
  const int number = group_number(p);
  return number >= 0 && p.kd * p.kh * p.kw * group_size(number) <= kBlock && has_tiles(p.dtype) &&
         kernel_of(p.dtype, number) != nullptr;
}

void convolve_depthwise(const Convolution& p, int threads) {
  const auto kernel = kernel_of(p.dtype, group_number(p));
  for_each_phase(p, [&](const Phase& phase) {
    const int64_t lines = phase.y.out, frames = phase.z.out;
    const int64_t line_work =
        phase.x.out * p.c_out * phase.z.taps * phase.y.taps * phase.x.taps * (p.c_in / p.groups);
    const int64_t grain = std::max<int64_t>(1, kPieceWork / std::max<int64_t>(1, line_work));
    const auto work = [&](int64_t begin, int64_t end, int) {
      Lines of(p, phase, kernel);
      for (int64_t line = begin; line < end; ++line) {
        const int64_t frame = line / lines;
        of.run({frame / frames, frame % frames, line % lines});
      }
    };
    device::parallel_for(p.n * frames * lines, grain, threads, work);
  });
}

}  // namespace tidemark::contraction
