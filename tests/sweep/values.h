// Tensors for the sweep: drawn values, special values, and every layout a tensor can have. Nothing
// here goes through a kernel, so that a broken kernel cannot hide itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tidemark/api/tensor.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::sweep {

// What the environment asks for: TIDEMARK_TEST_COUNTS=full, or =small for a sweep that was done in
// another form already.
bool full_counts();
bool small_counts();

// The dtypes that an op is swept with: floats, bool, i32, and of the other integers two that change
// from op to op, or all of them with full counts.
std::vector<DType> swept_dtypes(const OpDef& op);
// All of them.
std::vector<DType> all_dtypes();

// A sequence of numbers that is the same on every machine.
class Draws {
 public:
  // Neighbouring seeds start far apart.
  explicit Draws(uint64_t seed) : state_(seed) { state_ = next(); }
  uint64_t next();
  // In [low, high).
  double real(double low, double high);
  // In [low, high].
  int64_t whole(int64_t low, int64_t high);

 private:
  uint64_t state_;
};

// Dense, with elements drawn from the range. Integers take the whole numbers of the range, or
// [-100, 100] where the range is the default one; bools are drawn evenly.
Tensor drawn(DType dtype, const Shape& shape, SampleRange range, uint64_t seed);
// Dense, with elements from a list, over and over.
Tensor listed(DType dtype, const Shape& shape, std::span<const double> values);
Tensor listed(DType dtype, const Shape& shape, std::span<const int64_t> values);

// NaN, infinities, zeros of both signs, denormals, the extremes: what the dtype has of them.
Tensor special(DType dtype);
// Two tensors that pair every special value with every other.
std::vector<Tensor> special_pairs(DType dtype);

enum class Layout { dense, transposed, offset, stepped, backwards, ragged };
inline constexpr Layout kLayouts[] = {Layout::dense,   Layout::transposed, Layout::offset,
                                      Layout::stepped, Layout::backwards,  Layout::ragged};
const char* name(Layout layout);

// The same elements in other places: a view into a larger tensor whose other elements are rubbish.
Tensor laid_out(const Tensor& dense, Layout layout);
// Repeats the elements of axes of size 1 up to a shape, without copying them.
Tensor repeated(const Tensor& x, const Shape& shape);

// The elements of any layout, densely, by plain loops.
Tensor dense_copy(const Tensor& x);

}  // namespace tidemark::sweep
