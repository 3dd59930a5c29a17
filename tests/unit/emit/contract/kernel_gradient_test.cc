#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/emit/contract/operands.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/loops/product_block.h"

namespace tidemark {
namespace {

int64_t out_size(int64_t size, int64_t pad_both, int64_t dilation, int64_t taps, int64_t stride) {
  return (size + pad_both - dilation * (taps - 1) - 1) / stride + 1;
}

// Pads behind as much as before.
Convolution with_output(Convolution p) {
  p.out_d = out_size(p.d, 2 * p.pad_front, p.dilation_d, p.kd, p.stride_d);
  p.out_h = out_size(p.h, 2 * p.pad_top, p.dilation_h, p.kh, p.stride_h);
  p.out_w = out_size(p.w, 2 * p.pad_left, p.dilation_w, p.kw, p.stride_w);
  return p;
}

bool is_inside(int64_t place, int64_t size) { return place >= 0 && place < size; }

class Trial {
 public:
  // `gap`: elements between the pixels of both operands.
  explicit Trial(const Convolution& sizes, int64_t gap = 0)
      : work_(laid_out(sizes, gap)),
        p_(work_.of),
        in_(p_.n * p_.in_n * size_of(p_.dtype)),
        by_(p_.n * work_.by_n * size_of(p_.dtype)),
        to_(p_.kd * p_.kh * p_.kw * (p_.c_in / p_.groups) * p_.c_out * size_of(p_.dtype)) {
    fill_random(in_.data(), p_.n * p_.in_n, p_.dtype, 1);
    fill_random(by_.data(), p_.n * work_.by_n, p_.dtype, 2);
    p_.in = in_.data();
    work_.by = by_.data();
    work_.to = to_.data();
  }

  void run() {
    GuardedBytes scratch(kernel_gradient_scratch_bytes(work_, num_threads()));
    kernel_gradient(work_, num_threads(), scratch.data());
  }
  void check() {
    visit_dtype(p_.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_integral_v<T>) check_as<T>();
    });
  }
  std::vector<std::byte> result() { return {to_.data(), to_.data() + to_.size()}; }

 private:
  static KernelGradient laid_out(const Convolution& sizes, int64_t gap) {
    KernelGradient work{.of = with_output(sizes)};
    Convolution& p = work.of;
    p.in_w = p.c_in + gap;
    p.in_h = p.w * p.in_w + gap;
    p.in_d = p.h * p.in_h + gap;
    p.in_n = p.d * p.in_d + gap;
    work.by_w = p.c_out + gap;
    work.by_h = p.out_w * work.by_w;
    work.by_d = p.out_h * work.by_h;
    work.by_n = p.out_d * work.by_d + gap;
    return work;
  }

  // Image by image; if an image has few pixels, pixel by pixel.
  template <class T>
  T expected(int64_t kz, int64_t ky, int64_t kx, int64_t c, int64_t o) {
    constexpr int64_t block = 256;
    const auto* in = reinterpret_cast<const T*>(p_.in);
    const auto* by = reinterpret_cast<const T*>(work_.by);
    const int64_t pixels = p_.out_d * p_.out_h * p_.out_w, together = channels_of_block(pixels);
    const int64_t of_image = (pixels + block - 1) / block;
    const int64_t channel = o / (p_.c_out / p_.groups) * (p_.c_in / p_.groups) + c;
    Sum<T> sum;
    for (int64_t step = 0; step < pixels * p_.n; ++step) {
      const int64_t image = together == 0 ? step % p_.n : step / pixels;
      const int64_t pixel = together == 0 ? step / p_.n : step % pixels;
      const int64_t x = pixel % p_.out_w, y = pixel / p_.out_w % p_.out_h,
                    z = pixel / p_.out_w / p_.out_h;
      const int64_t in_z = z * p_.stride_d - p_.pad_front + kz * p_.dilation_d;
      const int64_t in_y = y * p_.stride_h - p_.pad_top + ky * p_.dilation_h;
      const int64_t in_x = x * p_.stride_w - p_.pad_left + kx * p_.dilation_w;
      if (!is_inside(in_z, p_.d) || !is_inside(in_y, p_.h) || !is_inside(in_x, p_.w)) continue;
      const int64_t k =
          together == 0 ? step : (image / together * of_image + pixel / block) * block;
      sum.add(k, in[image * p_.in_n + in_z * p_.in_d + in_y * p_.in_h + in_x * p_.in_w + channel],
              by[image * work_.by_n + z * work_.by_d + y * work_.by_h + x * work_.by_w + o]);
    }
    return sum.finish(together == 0 ? pixels * p_.n
                                    : (p_.n + together - 1) / together * of_image * block);
  }

  template <class T>
  void check_as() {
    const T* got = reinterpret_cast<const T*>(to_.data());
    for (int64_t tap = 0; tap < p_.kd * p_.kh * p_.kw; ++tap) {
      const int64_t kx = tap % p_.kw, ky = tap / p_.kw % p_.kh, kz = tap / p_.kw / p_.kh;
      for (int64_t c = 0; c < p_.c_in / p_.groups; ++c) {
        for (int64_t o = 0; o < p_.c_out; ++o, ++got) {
          ASSERT_TRUE(same_bits(*got, expected<T>(kz, ky, kx, c, o)))
              << p_.dtype << " " << p_.n << " images " << p_.d << " x " << p_.h << " x " << p_.w
              << " x " << p_.c_in << " to " << p_.c_out << ", stride " << p_.stride_h << " pad "
              << p_.pad_top << " dilation " << p_.dilation_h << " groups " << p_.groups << " at "
              << kz << ", " << ky << ", " << kx << ", " << c << ", " << o;
        }
      }
    }
  }

  KernelGradient work_;
  Convolution& p_;
  GuardedBytes in_, by_, to_;
};

class KernelGradients : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(threads_); }
  int threads_ = num_threads();
};

void run_and_check(const Convolution& p, int64_t gap = 0) {
  Trial trial(p, gap);
  trial.run();
  trial.check();
}

// Of few and of many taps, within a vector and over several, of images of less than a block and of
// more, and of so few pixels that images are added up first.
TEST_F(KernelGradients, FollowTheirMeaningForEachChannelAlone) {
  struct Sizes {
    int64_t images, h, w;
  };
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const Sizes size : {Sizes{2, 19, 21}, {3, 9, 8}, {60, 4, 5}, {1, 40, 33}}) {
      for (const int64_t channels : {1, 9, 16, 70}) {
        for (const int64_t taps : {1, 2, 3, 4}) {
          Convolution p{.n = size.images, .h = size.h, .w = size.w, .c_in = channels};
          p.kh = taps;
          p.kw = 5 - taps;
          p.c_out = p.groups = channels;
          p.dtype = dtype;
          p.stride_h = taps == 2 ? 2 : 1;
          p.stride_w = taps == 3 ? 2 : 1;
          p.dilation_h = taps == 3 ? 2 : 1;
          p.pad_top = p.pad_left = taps / 2;
          run_and_check(p);
          run_and_check(p, 3);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(KernelGradients, FollowTheirMeaningForVolumes) {
  for (const int64_t groups : {1, 2, 6}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      Convolution p{.n = 2, .h = 6, .w = 7, .c_in = 6, .kh = 3, .kw = 2, .c_out = 6};
      p.d = 5;
      p.kd = 3;
      p.stride_d = p.dilation_h = 2;
      p.pad_front = p.pad_left = 1;
      p.pad_top = 2;
      p.groups = groups;
      p.dtype = dtype;
      run_and_check(p);
      run_and_check(p, 2);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(KernelGradients, FollowTheirMeaningForGroupsOfSeveralChannels) {
  struct Groups {
    int64_t groups, in, out;
  };
  for (const Groups group : {Groups{2, 3, 4}, {3, 1, 2}, {2, 2, 1}, {4, 20, 9}, {2, 16, 70}}) {
    for (const int64_t size : {3, 11, 20}) {
      Convolution p{.n = 3, .h = size, .w = size + 1, .c_in = group.groups * group.in};
      p.kh = p.kw = 3;
      p.c_out = group.groups * group.out;
      p.groups = group.groups;
      p.pad_top = p.pad_left = 1;
      p.stride_w = 2;
      run_and_check(p);
      run_and_check(p, 5);
      if (HasFatalFailure()) return;
    }
  }
}

// Vectors have channels of several groups, and the last one is not whole.
TEST_F(KernelGradients, FollowTheirMeaningForGroupsOfFewChannels) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int64_t each : {2, 4, 8}) {
      for (const int64_t groups : {2, 5, 9}) {
        for (const int64_t taps : {1, 2, 3, 4}) {
          Convolution p{.n = 3, .h = 19, .w = 21, .c_in = groups * each};
          p.kh = taps;
          p.kw = 5 - taps;
          p.c_out = p.c_in;
          p.groups = groups;
          p.dtype = dtype;
          p.stride_w = taps == 3 ? 2 : 1;
          p.dilation_h = taps == 3 ? 2 : 1;
          p.pad_top = p.pad_left = taps / 2;
          run_and_check(p);
          run_and_check(p, 3);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(KernelGradients, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const int64_t groups : {8, 18, 72}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      Convolution p{.n = 5, .h = 25, .w = 26, .c_in = 72, .kh = 3, .kw = 3, .c_out = 72};
      p.groups = groups;
      p.dtype = dtype;
      p.pad_top = p.pad_left = 1;
      Trial trial(p);
      set_num_threads(1);
      trial.run();
      trial.check();
      const std::vector<std::byte> alone = trial.result();
      for (const int threads : {2, 5, 16}) {
        set_num_threads(threads);
        trial.run();
        EXPECT_EQ(trial.result(), alone);
      }
    }
  }
}

TEST_F(KernelGradients, AreZeroWithoutPixels) {
  Convolution p{.n = 0, .h = 5, .w = 5, .c_in = 4, .kh = 3, .kw = 3, .c_out = 4};
  p.groups = 4;
  run_and_check(p);
}

}  // namespace
}  // namespace tidemark
