#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <vector>

#include "tests/unit/emit/contract/operands.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/loops/product_block.h"

namespace tidemark {
namespace {

struct Case {
  Convolution p;
  int64_t pixel_gap = 0, row_gap = 0, image_gap = 0;
  bool across = false;  // Images lie side by side; image_gap is between channels.
  int64_t frame_gap = 0;
  bool by_channel = false;
  bool repeats = false;  // All images are the first one.
};

int64_t out_size(int64_t size, int64_t pad_both, int64_t dilation, int64_t taps, int64_t stride,
                 int64_t spread) {
  return ((size - 1) * spread + pad_both - dilation * (taps - 1)) / stride + 1;
}

// Sizes of the output for padding of `pad_after` behind, below and to the right.
Convolution with_output(Convolution p, int64_t pad_after) {
  p.out_h = out_size(p.h, p.pad_top + pad_after, p.dilation_h, p.kh, p.stride_h, p.spread_h);
  p.out_w = out_size(p.w, p.pad_left + pad_after, p.dilation_w, p.kw, p.stride_w, p.spread_w);
  if (p.d > 1)
    p.out_d = out_size(p.d, p.pad_front + pad_after, p.dilation_d, p.kd, p.stride_d, p.spread_d);
  return p;
}

// The pixel at a place, or -1.
int64_t pixel_at(int64_t place, int64_t spread, int64_t size) {
  return place >= 0 && place % spread == 0 && place / spread < size ? place / spread : -1;
}

// The taps of a channel, then those of the next: a block is a part of a channel, or `together` of
// them.
template <class T>
T expected_by_channel(const ConvolutionAcross& across, int64_t together, int64_t image, int64_t y,
                      int64_t x, int64_t o) {
  constexpr int64_t block = 256;
  const Convolution& p = across.of;
  const auto* in = reinterpret_cast<const T*>(p.in);
  const auto* weight = reinterpret_cast<const T*>(p.weight);
  const int64_t taps = p.kh * p.kw, of_channel = (taps + block - 1) / block;
  Sum<T> sum;
  for (int64_t c = 0; c < p.c_in; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t in_y = y * p.stride_h - p.pad_top + tap / p.kw * p.dilation_h;
      const int64_t in_x = x * p.stride_w - p.pad_left + tap % p.kw * p.dilation_w;
      if (in_y < 0 || in_y >= p.h || in_x < 0 || in_x >= p.w) continue;
      const int64_t number = c / together * of_channel + tap / block;
      sum.add(number * block, in[image * p.in_n + in_y * p.in_h + in_x * p.in_w + c * across.in_c],
              weight[tap / p.kw * across.weight_h + tap % p.kw * across.weight_w +
                     c * across.weight_c + o]);
    }
  }
  return sum.finish((p.c_in + together - 1) / together * of_channel * block);
}

template <class T>
T expected(const ConvolutionAcross& across, int64_t image, int64_t z, int64_t y, int64_t x,
           int64_t o) {
  const Convolution& p = across.of;
  const auto* in = reinterpret_cast<const T*>(p.in);
  const auto* weight = reinterpret_cast<const T*>(p.weight);
  const int64_t channels = p.c_in / p.groups, group = o / (p.c_out / p.groups);
  Sum<T> sum;
  int64_t k = 0;
  if (const int64_t together = across.by_channel ? channels_of_block(p.kh * p.kw) : 0; together > 0)
    return expected_by_channel<T>(across, together, image, y, x, o);
  for (int64_t tap = 0; tap < p.kd * p.kh * p.kw; ++tap) {
    const int64_t kz = tap / p.kw / p.kh, ky = tap / p.kw % p.kh, kx = tap % p.kw;
    const int64_t in_z =
        pixel_at(z * p.stride_d - p.pad_front + kz * p.dilation_d, p.spread_d, p.d);
    const int64_t in_y = pixel_at(y * p.stride_h - p.pad_top + ky * p.dilation_h, p.spread_h, p.h);
    const int64_t in_x = pixel_at(x * p.stride_w - p.pad_left + kx * p.dilation_w, p.spread_w, p.w);
    for (int64_t c = 0; c < channels; ++c, ++k) {
      if (in_z < 0 || in_y < 0 || in_x < 0) continue;
      const int64_t channel = (group * channels + c) * across.in_c;
      sum.add(k, in[image * p.in_n + in_z * p.in_d + in_y * p.in_h + in_x * p.in_w + channel],
              weight[kz * across.weight_d + ky * across.weight_h + kx * across.weight_w +
                     c * across.weight_c + o]);
    }
  }
  return sum.finish(k);
}

class Trial {
 public:
  explicit Trial(const Case& c)
      : is_across_(c.across),
        across_(c.across ? side_by_side(c) : strided(c)),
        p_(across_.of),
        in_(in_count() * size_of(p_.dtype)),
        weight_(weight_count() * size_of(p_.dtype)),
        out_(out_count() * size_of(p_.dtype)) {
    fill_random(in_.data(), in_count(), p_.dtype, 1);
    fill_random(weight_.data(), weight_count(), p_.dtype, 2);
    p_.in = in_.data();
    p_.weight = weight_.data();
    p_.out = out_.data();
    across_.by_channel = c.by_channel;
  }

  void run() {
    if (is_across_) return convolve_across(across_, num_threads());
    GuardedBytes scratch(convolve_scratch_bytes(p_, num_threads()));
    convolve(p_, num_threads(), scratch.data());
  }
  void check() {
    visit_dtype(p_.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, bool>) check_as<T>();
    });
  }
  // The same, so many channels at a time, each part added to those before it.
  void run_in_parts(int64_t channels) {
    visit_dtype(p_.dtype, [&](auto zero) {
      using T = decltype(zero);
      std::fill_n(reinterpret_cast<T*>(out_.data()), out_count(), static_cast<T>(-0.0F));
    });
    for (int64_t first = 0; first < p_.c_in; first += channels) {
      ConvolutionAcross part = across_;
      part.add = true;
      part.of.c_in = std::min(channels, p_.c_in - first);
      part.of.in += first * across_.in_c * size_of(p_.dtype);
      part.of.weight += first * across_.weight_c * size_of(p_.dtype);
      convolve_across(part, num_threads());
    }
  }
  std::vector<std::byte> result() { return {out_.data(), out_.data() + out_.size()}; }
  std::byte* weight() { return weight_.data(); }

 private:
  static ConvolutionAcross strided(const Case& c) {
    Convolution p = c.p;
    p.in_w = p.c_in + c.pixel_gap;
    p.in_h = p.w * p.in_w + c.row_gap;
    p.in_d = p.h * p.in_h + c.frame_gap;
    p.in_n = p.d * p.in_d + c.image_gap;
    const int64_t pixel = p.c_in / p.groups * p.c_out;
    return {.of = p,
            .in_c = 1,
            .weight_h = p.kw * pixel,
            .weight_w = pixel,
            .weight_c = p.c_out,
            .weight_d = p.kh * p.kw * pixel};
  }
  static ConvolutionAcross side_by_side(const Case& c) {
    ConvolutionAcross across{.of = c.p};
    Convolution& p = across.of;
    p.in_n = c.repeats ? 0 : 1;
    p.in_w = p.n + c.pixel_gap;
    p.in_h = p.w * p.in_w + c.row_gap;
    p.in_d = p.h * p.in_h + c.frame_gap;
    across.in_c = p.d * p.in_d + c.image_gap;
    across.weight_w = p.c_out + c.pixel_gap;
    across.weight_h = p.kw * across.weight_w + c.row_gap;
    across.weight_d = p.kh * across.weight_h + c.frame_gap;
    across.weight_c = p.kd * across.weight_d + c.image_gap;
    return across;
  }
  int64_t in_count() const {
    return (p_.n - 1) * p_.in_n + (p_.d - 1) * p_.in_d + (p_.h - 1) * p_.in_h +
           (p_.w - 1) * p_.in_w + (p_.c_in - 1) * across_.in_c + 1;
  }
  int64_t weight_count() const {
    return (p_.kd - 1) * across_.weight_d + (p_.kh - 1) * across_.weight_h +
           (p_.kw - 1) * across_.weight_w + (p_.c_in / p_.groups - 1) * across_.weight_c + p_.c_out;
  }
  int64_t out_count() const { return p_.n * p_.out_d * p_.out_h * p_.out_w * p_.c_out; }

  template <class T>
  void check_as() {
    const T* got = reinterpret_cast<const T*>(out_.data());
    for (int64_t place = 0; place < p_.n * p_.out_d * p_.out_h * p_.out_w; ++place) {
      const int64_t x = place % p_.out_w, y = place / p_.out_w % p_.out_h;
      const int64_t frame = place / p_.out_w / p_.out_h, z = frame % p_.out_d, i = frame / p_.out_d;
      for (int64_t o = 0; o < p_.c_out; ++o, ++got) {
        ASSERT_TRUE(same_bits(*got, expected<T>(across_, i, z, y, x, o)))
            << p_.dtype << " image " << p_.d << " x " << p_.h << " x " << p_.w << " x " << p_.c_in
            << ", " << p_.kd << " x " << p_.kh << " x " << p_.kw << " taps, stride " << p_.stride_h
            << " pad " << p_.pad_top << " dilation " << p_.dilation_h << " spread " << p_.spread_h
            << " groups " << p_.groups << " at " << i << ", " << z << ", " << y << ", " << x << ", "
            << o;
      }
    }
  }

  const bool is_across_;
  ConvolutionAcross across_;
  Convolution& p_;
  GuardedBytes in_, weight_, out_;
};

void run_and_check(const Case& c) {
  Trial trial(c);
  trial.run();
  trial.check();
}

class Convolve : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(threads_); }
  int threads_ = num_threads();
};

TEST_F(Convolve, FollowsItsMeaningForEveryWindow) {
  for (const int64_t size : {1, 2, 3, 4, 5, 6}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t pad : {0, 1, 2, 5}) {
          Convolution p{.n = 2, .h = 9, .w = 11, .c_in = 5, .kh = size, .kw = size, .c_out = 7};
          p.stride_h = stride;
          p.stride_w = stride + 1;
          p.pad_top = pad;
          p.pad_left = pad / 2;
          p.dilation_h = dilation;
          p.dilation_w = 3 - dilation;
          if (p.h + 2 * pad < dilation * (size - 1) + 1) continue;
          if (p.w + p.pad_left + pad < p.dilation_w * (size - 1) + 1) continue;
          run_and_check({with_output(p, pad)});
          run_and_check({.p = with_output(p, pad), .across = true});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(Convolve, CutsLongSumsInBlocks) {
  for (const int64_t channels : {28, 64, 129, 260}) {
    for (const int64_t outputs : {3, 64, 70, 150}) {
      Convolution p{.n = 1, .h = 5, .w = 8, .c_in = channels, .kh = 3, .kw = 3, .c_out = outputs};
      p.pad_top = p.pad_left = 1;
      run_and_check({with_output(p, 1)});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Convolve, TakesGroupsGapsAndEveryDType) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::i64,
                            DType::u8, DType::i16, DType::u32}) {
    for (const int64_t groups : {1, 2, 4}) {
      for (const int64_t gap : {0, 3}) {
        Convolution p{.n = 2, .h = 12, .w = 10, .c_in = 8, .kh = 3, .kw = 2, .c_out = 12};
        p.groups = groups;
        p.dtype = dtype;
        p.pad_top = p.pad_left = 1;
        run_and_check({with_output(p, 1), gap, 2 * gap, 5 * gap});
        p.kh = p.kw = 1;
        p.pad_top = p.pad_left = 0;
        run_and_check({with_output(p, 0), gap, 2 * gap, 5 * gap});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// As gradients by the kernel have them: few outputs, many taps; blocks of k that begin and end
// within a pixel; one channel, where steps go along pixels.
TEST_F(Convolve, FollowsItsMeaningForImagesSideBySide) {
  struct Sizes {
    int64_t h, w, channels;
  };
  for (const Sizes size : {Sizes{9, 60, 1}, {5, 60, 2}, {4, 20, 7}, {4, 9, 16}, {2, 2, 300}}) {
    for (const int64_t images : {2, 6, 9}) {
      for (const int64_t outputs : {1, 20, 70}) {
        Convolution p{.n = images, .h = size.h, .w = size.w, .c_in = size.channels};
        p.kh = size.h;
        p.kw = size.w;
        p.c_out = outputs;
        p.dtype = images == 9 ? DType::f64 : DType::f32;
        p.pad_top = p.pad_left = 1;
        run_and_check({.p = with_output(p, 1), .across = true});
        run_and_check({with_output(p, 1), 3, 5, 11, true});
        run_and_check({.p = with_output(p, 1), .across = true, .repeats = true});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// In whole and in parts: less than a block of taps, one and a bit, several.
TEST_F(Convolve, AddsUpByChannelInWholeAndInParts) {
  struct Sizes {
    int64_t h, w, channels;
  };
  for (const Sizes size : {Sizes{8, 8, 9}, {5, 7, 16}, {16, 16, 3}, {28, 28, 4}, {3, 3, 40}}) {
    for (const int64_t images : {1, 3, 9}) {
      for (const int64_t gap : {0, 3}) {
        Convolution p{.n = images, .h = size.h, .w = size.w, .c_in = size.channels};
        p.kh = size.h;
        p.kw = size.w;
        p.c_out = 20;
        p.dtype = images == 9 ? DType::f64 : DType::f32;
        p.pad_top = p.pad_left = 1;
        Trial trial({.p = with_output(p, 1),
                     .pixel_gap = gap,
                     .row_gap = 2 * gap,
                     .image_gap = 5 * gap,
                     .across = true,
                     .by_channel = true});
        trial.run();
        trial.check();
        if (HasFatalFailure()) return;
        const int64_t together = channels_of_block(p.kh * p.kw);
        if (together == 0) continue;
        for (const int64_t channels : {together, 2 * together}) {
          trial.run_in_parts(channels);
          trial.check();
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// The last case has more taps than a block of k.
TEST_F(Convolve, ConvolvesEachChannelAlone) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32}) {
    for (const int64_t channels : {2, 9, 16, 40}) {
      for (const int64_t stride : {1, 2}) {
        for (const int64_t taps : {1, 3, 5, 17}) {
          Convolution p{.n = 2, .h = 13, .w = 19, .c_in = channels, .kh = taps, .kw = taps};
          p.c_out = p.groups = channels;
          p.dtype = dtype;
          p.stride_h = p.stride_w = stride;
          p.dilation_h = p.dilation_w = taps == 3 ? 2 : 1;
          p.pad_top = p.pad_left = taps / 2;
          run_and_check({with_output(p, taps / 2), 0, 0, 0});
          run_and_check({with_output(p, taps / 2), 3, 5, 7});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Vectors have channels of several groups, and the last one is not whole.
TEST_F(Convolve, ConvolvesGroupsOfFewChannels) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32}) {
    for (const int64_t each : {2, 4, 8}) {
      for (const int64_t groups : {2, 5, 9}) {
        for (const int64_t taps : {1, 3, 9}) {
          Convolution p{.n = 2, .h = 13, .w = 19, .c_in = groups * each, .kh = taps, .kw = taps};
          p.c_out = p.c_in;
          p.groups = groups;
          p.dtype = dtype;
          p.stride_h = taps == 3 ? 2 : 1;
          p.dilation_w = taps == 3 ? 2 : 1;
          p.pad_top = p.pad_left = taps / 2;
          run_and_check({with_output(p, taps / 2)});
          run_and_check({with_output(p, taps / 2), 3, 5, 7});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Volumes, in place and side by side, in every dtype.
TEST_F(Convolve, FollowsItsMeaningForVolumes) {
  for (const DType dtype :
       {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::i64}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t groups : {1, 2, 6}) {
        Convolution p{.n = 2, .h = 6, .w = 7, .c_in = 6, .kh = 3, .kw = 2, .c_out = 6};
        p.d = 5;
        p.kd = 3;
        p.stride_d = stride;
        p.stride_w = 3 - stride;
        p.dilation_d = 3 - stride;
        p.pad_front = p.pad_left = 1;
        p.pad_top = 2;
        p.groups = groups;
        p.dtype = dtype;
        run_and_check({with_output(p, 1)});
        run_and_check({with_output(p, 1), 1, 2, 3, false, 5});
        const bool across = groups == 1 && (dtype == DType::f32 || dtype == DType::f64);
        if (across) run_and_check({with_output(p, 1), 1, 2, 3, true, 5});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// As gradients by the image have them: spread by strides, which need not divide anything.
TEST_F(Convolve, FollowsItsMeaningForSpreadPixels) {
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::i32, DType::i64}) {
    for (const int64_t spread : {2, 3, 4}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t groups : {1, 6}) {
          Convolution p{.n = 2, .h = 5, .w = 4, .c_in = 6, .kh = 3, .kw = 4, .c_out = 6};
          p.spread_h = spread;
          p.spread_w = 5 - spread;
          p.stride_w = dilation;
          p.dilation_h = dilation;
          p.pad_top = 3 - spread;  // Below 0 it crops.
          p.pad_left = 2;
          p.groups = groups;
          p.dtype = dtype;
          run_and_check({with_output(p, 2)});
          p.d = 3;
          p.kd = 2;
          p.spread_d = 2;
          run_and_check({with_output(p, 1), 1, 2, 3, false, 5});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Pixels take the place of outputs in vectors, except where they see fewer taps. Rows are cut in
// bands; the last case has a kernel taller than a band's share of the cache.
TEST_F(Convolve, FollowsItsMeaningForFewOutputs) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32}) {
    for (const int64_t spread : {1, 2, 3}) {
      for (const int64_t outputs : {1, 3, 8}) {
        Convolution p{.n = 2, .h = 7, .w = 75, .c_in = 16, .kh = 3, .kw = 4, .c_out = outputs};
        p.dtype = dtype;
        p.spread_w = spread;
        p.spread_h = 4 - spread;
        p.dilation_h = spread;
        p.dilation_w = outputs == 3 ? 2 : 1;
        p.pad_top = 1;
        p.pad_left = 4 - outputs;  // Below 0 it crops.
        run_and_check({with_output(p, 5)});
        p.c_in = 33;
        p.d = 3;
        p.kd = 2;
        p.spread_d = spread;
        p.pad_front = 1;
        run_and_check({with_output(p, 1), 1, 2, 3, false, 5});
        if (HasFatalFailure()) return;
      }
    }
  }
  Convolution p{.n = 1, .h = 12, .w = 64, .c_in = 600, .kh = 9, .kw = 2, .c_out = 2};
  p.pad_top = 4;
  run_and_check({with_output(p, 4)});
}

TEST_F(Convolve, FewOutputsHaveTheSameBitsForAnyNumberOfThreads) {
  Convolution p{.n = 1, .h = 30, .w = 70, .c_in = 20, .kh = 5, .kw = 5, .c_out = 3};
  p.spread_h = p.spread_w = 2;
  p.pad_top = p.pad_left = 4;
  Trial trial({with_output(p, 4)});
  set_num_threads(1);
  trial.run();
  trial.check();
  const std::vector<std::byte> alone = trial.result();
  for (const int threads : {2, 3, 8}) {
    set_num_threads(threads);
    trial.run();
    EXPECT_EQ(trial.result(), alone) << threads;
  }
}

TEST_F(Convolve, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    Convolution p{.n = 2, .h = 20, .w = 19, .c_in = 32, .kh = 3, .kw = 3, .c_out = 72};
    p.dtype = dtype;
    p.pad_top = p.pad_left = 1;
    if (dtype == DType::bf16) p.spread_h = p.spread_w = 2;
    Trial trial({.p = with_output(p, 1), .across = dtype == DType::f64});
    set_num_threads(1);
    trial.run();
    trial.check();
    const std::vector<std::byte> alone = trial.result();
    for (const int threads : {2, 5}) {
      set_num_threads(threads);
      trial.run();
      EXPECT_EQ(trial.result(), alone);
    }
  }
}

// By images, by rows of the output where those are few, and by blocks of images where their sums
// are many.
TEST_F(Convolve, ImagesSideBySideGiveTheSameBitsForAnyNumberOfThreads) {
  struct Sizes {
    int64_t images, outputs, taps;
  };
  for (const Sizes size : {Sizes{40, 20, 3}, {3, 70, 5}, {70, 16, 9}, {1, 150, 1}}) {
    Convolution p{.n = size.images, .h = 20, .w = 19, .c_in = 5, .kh = 20, .kw = 19};
    p.c_out = size.outputs;
    p.pad_top = p.pad_left = size.taps / 2;
    Trial trial({.p = with_output(p, size.taps / 2), .across = true});
    set_num_threads(1);
    trial.run();
    const std::vector<std::byte> alone = trial.result();
    trial.check();
    for (const int threads : {2, 3, 8}) {
      set_num_threads(threads);
      trial.run();
      EXPECT_EQ(trial.result(), alone) << threads << " threads, " << size.images << " images";
    }
  }
}

TEST_F(Convolve, SkipsPaddingEvenUnderInfiniteWeights) {
  for (const int64_t width : {4, 80}) {
    Convolution p{.n = 1, .h = 4, .w = width, .c_in = 3, .kh = 3, .kw = 3, .c_out = 5};
    p.pad_top = p.pad_left = 1;
    if (width == 80) p.c_in = 16, p.c_out = 2;
    Trial trial({with_output(p, 1)});
    reinterpret_cast<float*>(trial.weight())[0] = INFINITY;
    reinterpret_cast<float*>(trial.weight())[7] = NAN;
    trial.run();
    trial.check();
  }
}

TEST_F(Convolve, IgnoresAndKeepsTheCallersFloatModes) {
  const unsigned before = _mm_getcsr();
  Convolution p{.n = 1, .h = 14, .w = 14, .c_in = 16, .kh = 3, .kw = 3, .c_out = 16};
  p.pad_top = p.pad_left = 1;
  Trial trial({with_output(p, 1)});
  for (const unsigned modes : {0x1F80U | 0x8040U, 0x1F80U | 0x4000U}) {
    _mm_setcsr(modes);
    trial.run();
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after, modes);
    trial.check();
  }
}

}  // namespace
}  // namespace tidemark
