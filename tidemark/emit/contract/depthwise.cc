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

void (*kernel_of(DType dtype))(const Depthwise&) {
  if (dtype == DType::f64) return kernel_set<double>().depthwise;
  if (is_whole32(dtype)) return kernel_set<int32_t>().depthwise;
  const KernelSet<float>& kernels = kernel_set<float>();
  return dtype == DType::f16    ? kernels.depthwise_f16
         : dtype == DType::bf16 ? kernels.depthwise_bf16
                                : kernels.depthwise;
}

// One line of the output: stretches of pixels that see the same taps.
class Line {
 public:
  Line(const Convolution& p, void (*kernel)(const Depthwise&), int64_t image, int64_t y)
      : p_(p),
        kernel_(kernel),
        image_(image),
        y_(y),
        ky_(taps_inside(y, p.stride_h, p.pad_top, p.dilation_h, p.kh, p.h)) {}

  void run() {
    for (int64_t x = 0; x < p_.out_w;) {
      const Taps kx = taps_at(x);
      int64_t end = x + 1;
      while (end < p_.out_w && taps_at(end) == kx) ++end;
      run_stretch(x, end, kx);
      x = end;
    }
  }

 private:
  Taps taps_at(int64_t x) const {
    return taps_inside(x, p_.stride_w, p_.pad_left, p_.dilation_w, p_.kw, p_.w);
  }

  void run_stretch(int64_t begin, int64_t end, Taps kx) {
    Depthwise d;
    for (int64_t y = ky_.begin; y < ky_.end; ++y)
      for (int64_t x = kx.begin; x < kx.end; ++x)
        taps_[static_cast<size_t>(d.tap_count++)] = {
            y * p_.dilation_h * p_.in_h + x * p_.dilation_w * p_.in_w, (y * p_.kw + x) * p_.c_out};
    const int64_t size = size_of(p_.dtype);
    const int64_t from = image_ * p_.in_n + (y_ * p_.stride_h - p_.pad_top) * p_.in_h +
                         (begin * p_.stride_w - p_.pad_left) * p_.in_w;
    d.in = p_.in + from * size;
    d.in_pixel = p_.stride_w * p_.in_w;
    d.weight = p_.weight;
    d.taps = taps_.data();
    d.out = p_.out + (((image_ * p_.out_h + y_) * p_.out_w + begin) * p_.c_out) * size;
    d.out_pixel = p_.c_out;
    d.pixels = end - begin;
    d.channels = p_.c_out;
    kernel_(d);
  }

  const Convolution& p_;
  void (*kernel_)(const Depthwise&);
  int64_t image_, y_;
  Taps ky_;
  std::array<DepthwiseTap, kBlock> taps_;
};

}  // namespace

bool is_depthwise(const Convolution& p) {
  return p.groups > 1 && p.c_in == p.groups && p.c_out == p.groups && p.kh * p.kw <= kBlock &&
         has_tiles(p.dtype);
}

void convolve_depthwise(const Convolution& p, int threads) {
  const auto kernel = kernel_of(p.dtype);
  const int64_t line_work = p.out_w * p.c_out * p.kh * p.kw;
  const int64_t grain = std::max<int64_t>(1, kPieceWork / std::max<int64_t>(1, line_work));
  device::parallel_for(p.n * p.out_h, grain, threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t line = begin; line < end; ++line)
      Line(p, kernel, line / p.out_h, line % p.out_h).run();
  });
}

}  // namespace tidemark::contraction
