#include "tidemark/compile/cpu/draws.h"

#include <algorithm>
#include <cmath>

#include "tidemark/compile/cpu/dense.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/library/random.h"
#include "tidemark/ops/random.h"

namespace tidemark::compile {
namespace {

struct Draw {
  library::RandomKey key;
  double a = 0, b = 0;        // The parameters of floats and bernoulli.
  int64_t low = 0, high = 0;  // The bounds of integers.
};

template <class Fill>
void fill_in_parallel(int64_t count, Fill fill) {
  if (WorkspacePart::preparing()) return;
  device::parallel_for(count, 16384,
                       [&](int64_t begin, int64_t end, int) { fill(begin, end - begin); });
}

// Calls fill(first element, begin, count) with the result's element type if that type is drawn
// directly; 16-bit floats are drawn as f32 and rounded.
template <class Fill>
void fill_floats(const ArrayRef& result, Fill fill) {
  const auto direct = [&](const ArrayRef& to) {
    if (to.dtype == DType::f64) {
      auto* data = reinterpret_cast<double*>(to.data);
      fill_in_parallel(to.size(),
                       [&](int64_t begin, int64_t count) { fill(data + begin, begin, count); });
    } else {
      auto* data = reinterpret_cast<float*>(to.data);
      fill_in_parallel(to.size(),
                       [&](int64_t begin, int64_t count) { fill(data + begin, begin, count); });
    }
  };
  if (!is_low_precision(result.dtype)) return direct(result);
  const Workspace wide(result.size() * size_of(DType::f32));
  const ArrayRef drawn{.data = wide.data(),
                       .dtype = DType::f32,
                       .shape = result.shape,
                       .strides = contiguous_strides(result.shape)};
  direct(drawn);
  run_copy(drawn, result);
}

// The largest value of a 16-bit dtype that is less than `high`.
float largest_below(float high, DType dtype) {
  const bool half = dtype == DType::f16;
  const auto value_of = [&](uint16_t bits) {
    return half ? float_of_f16(bits) : float_of_bf16(bits);
  };
  const uint16_t bits = half ? f16_of_float(high) : bf16_of_float(high);
  const float nearest = value_of(bits);
  if (nearest < high) return nearest;
  // The bit pattern grows with the magnitude, for both signs.
  if (nearest == 0) return value_of(0x8001);
  return value_of(static_cast<uint16_t>(nearest > 0 ? bits - 1 : bits + 1));
}

// Draws integers as Wide, a few at a time, and narrows them.
template <class Wide, class T>
void fill_narrowed(const Draw& draw, int64_t begin, int64_t count, T* to) {
  constexpr int64_t kPiece = 512;
  Wide piece[kPiece];
  for (int64_t done = 0; done < count; done += kPiece) {
    const int64_t n = std::min(kPiece, count - done);
    library::fill_integers(draw.key, begin + done, n, piece, static_cast<Wide>(draw.low),
                           static_cast<Wide>(draw.high));
    for (int64_t i = 0; i < n; ++i) to[done + i] = static_cast<T>(piece[i]);
  }
}

void run_integers(const Draw& draw, const ArrayRef& result) {
  const auto fill_all = [&](auto* data, auto fill) {
    fill_in_parallel(result.size(),
                     [&](int64_t begin, int64_t count) { fill(begin, count, data + begin); });
  };
  visit_dtype(result.dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      fill_all(reinterpret_cast<T*>(result.data), [&](int64_t begin, int64_t n, T* to) {
        if constexpr (sizeof(T) == 8) {
          // Bounds are i64, so that the draws are.
          library::fill_integers(draw.key, begin, n, reinterpret_cast<int64_t*>(to), draw.low,
                                 draw.high);
        } else if constexpr (sizeof(T) < 4) {
          fill_narrowed<int32_t>(draw, begin, n, to);
        } else if (draw.high <= INT32_MAX) {  // The low bound fits too: it is below the high one.
          library::fill_integers(draw.key, begin, n, reinterpret_cast<int32_t*>(to),
                                 static_cast<int32_t>(draw.low), static_cast<int32_t>(draw.high));
        } else {
          fill_narrowed<int64_t>(draw, begin, n, to);
        }
      });
    }
  });
}

void run_normal(const Draw& draw, const ArrayRef& result) {
  fill_floats(result, [&](auto* to, int64_t begin, int64_t n) {
    using T = std::remove_pointer_t<decltype(to)>;
    library::fill_normal(draw.key, begin, n, to, static_cast<T>(draw.a), static_cast<T>(draw.b));
  });
}

void run_uniform(const Draw& draw, const ArrayRef& result) {
  fill_floats(result, [&](auto* to, int64_t begin, int64_t n) {
    using T = std::remove_pointer_t<decltype(to)>;
    library::fill_uniform(draw.key, begin, n, to, static_cast<T>(draw.a), static_cast<T>(draw.b));
    // A value that rounds to `high` or above becomes the largest value below it.
    if constexpr (std::is_same_v<T, float>) {
      if (!is_low_precision(result.dtype)) return;
      const float most = largest_below(static_cast<float>(draw.b), result.dtype);
      for (int64_t i = 0; i < n; ++i) to[i] = std::min(to[i], most);
    }
  });
}

void run_bernoulli(const Draw& draw, const ArrayRef& result) {
  auto* to = reinterpret_cast<uint8_t*>(result.data);
  fill_in_parallel(result.size(), [&](int64_t begin, int64_t n) {
    library::fill_bernoulli(draw.key, begin, n, to + begin, static_cast<float>(draw.a));
  });
}

void run_permutation(const Draw& draw, const ArrayRef& result) {
  if (WorkspacePart::preparing()) return;
  library::permutation(draw.key, result.size(), reinterpret_cast<int64_t*>(result.data));
}

library::RandomKey key_of(const ArrayRef& key) {
  return {*reinterpret_cast<const uint64_t*>(key.data)};
}

void run_fold(std::span<const ArrayRef> operands, const ArrayRef& result) {
  if (WorkspacePart::preparing()) return;
  *reinterpret_cast<uint64_t*>(result.data) =
      library::fold_in(key_of(operands[0]), key_of(operands[1]).value).value;
}

// Reads the attributes after the shape and the dtype.
Attrs::Reader parameters_of(const Attrs& attrs) {
  Attrs::Reader read = attrs.read();
  read.sizes();
  read.dtype();
  return read;
}

void run_arange(const Attrs& attrs, const ArrayRef& result) {
  Attrs::Reader read = parameters_of(attrs);
  const double start = read.number();
  const double step = read.number();
  if (!read.boolean()) return run_range(start, step, result);
  const int64_t whole_start = read.integer();
  run_range(whole_start, read.integer(), result);
}

Draw keyed(std::span<const ArrayRef> operands) {
  Draw draw;
  if (!WorkspacePart::preparing()) draw.key = key_of(operands[0]);
  return draw;
}
Draw draw_of(std::span<const ArrayRef> operands, const Attrs& attrs) {
  Attrs::Reader read = parameters_of(attrs);
  Draw draw = keyed(operands);
  draw.a = read.number();
  draw.b = read.number();
  return draw;
}
Draw draw_of_integers(std::span<const ArrayRef> operands, const Attrs& attrs) {
  Attrs::Reader read = parameters_of(attrs);
  Draw draw = keyed(operands);
  draw.low = read.integer();
  draw.high = read.integer();
  return draw;
}

// Draws with a parameter for each.
void run_by_element(std::span<const ArrayRef> operands, const Attrs& attrs,
                    const ArrayRef& result) {
  const library::RandomKey key = keyed(operands).key;
  const Dense dense(operands[1]);
  const auto* from = reinterpret_cast<const double*>(dense.ref().data);
  auto* to = reinterpret_cast<double*>(result.data);
  const bool counts = ops::Drawn(parameters_of(attrs).integer()) == ops::Drawn::poisson;
  const auto fill = counts ? library::fill_poisson : library::fill_log_gamma;
  fill_in_parallel(result.size(), [&](int64_t begin, int64_t count) {
    fill(key, begin, count, from + begin, to + begin);
  });
}

}  // namespace

uint64_t fold_key(uint64_t key, uint64_t data) { return library::fold_in({key}, data).value; }

void run_draw(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
              const ArrayRef& result) {
  switch (op.routine) {
    case Routine::arange:
      return run_arange(attrs, result);
    case Routine::random_bernoulli:
      return run_bernoulli(draw_of(operands, attrs), result);
    case Routine::random_fold:
      return run_fold(operands, result);
    case Routine::random_integers:
      return run_integers(draw_of_integers(operands, attrs), result);
    case Routine::random_normal:
      return run_normal(draw_of(operands, attrs), result);
    case Routine::random_permutation:
      return run_permutation(draw_of(operands, attrs), result);
    case Routine::random_uniform:
      if (operands.size() == 2) return run_by_element(operands, attrs, result);
      return run_uniform(draw_of(operands, attrs), result);
    default:
      TIDEMARK_CHECK(false, op.name, " is no draw");
  }
}

}  // namespace tidemark::compile
