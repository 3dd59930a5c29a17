// The operators of tensors, and comparison by bits.
#include <cstring>

#include "tidemark/ops/pointwise.h"
#include "tidemark/tensor/placement.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {

bool identical(const Tensor& a, const Tensor& b) {
  const Tensor x = detail::packed(a, Source::none());
  const Tensor y = detail::packed(b, Source::none());
  if (x.dtype() != y.dtype() || x.shape() != y.shape()) return false;
  const auto bytes = static_cast<size_t>(x.size_bytes().count);
  return bytes == 0 || std::memcmp(detail::array_of(x, Source::none()).data,
                                   detail::array_of(y, Source::none()).data, bytes) == 0;
}

Tensor operator+(const Operand& a, const Operand& b) { return add(a, b, a.at()); }
Tensor operator-(const Operand& a, const Operand& b) { return subtract(a, b, a.at()); }
Tensor operator*(const Operand& a, const Operand& b) { return multiply(a, b, a.at()); }
Tensor operator/(const Operand& a, const Operand& b) { return divide(a, b, a.at()); }
Tensor operator%(const Operand& a, const Operand& b) { return remainder(a, b, a.at()); }
Tensor operator-(const Operand& a) { return negative(a, a.at()); }
Tensor operator==(const Operand& a, const Operand& b) { return equal(a, b, a.at()); }
Tensor operator!=(const Operand& a, const Operand& b) { return not_equal(a, b, a.at()); }
Tensor operator<(const Operand& a, const Operand& b) { return less(a, b, a.at()); }
Tensor operator<=(const Operand& a, const Operand& b) { return less_equal(a, b, a.at()); }
Tensor operator>(const Operand& a, const Operand& b) { return greater(a, b, a.at()); }
Tensor operator>=(const Operand& a, const Operand& b) { return greater_equal(a, b, a.at()); }
Tensor operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b, a.at()); }
Tensor operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b, a.at()); }
Tensor operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b, a.at()); }
Tensor operator~(const Operand& a) { return bitwise_invert(a, a.at()); }
Tensor operator<<(const Tensor& a, const Operand& b) { return left_shift(a, b, b.at()); }
Tensor operator>>(const Tensor& a, const Operand& b) { return right_shift(a, b, b.at()); }

Tensor& Tensor::operator+=(const Operand& b) & {
  return *this = add(Operand(std::move(*this), b.at()), b, b.at());
}
Tensor& Tensor::operator-=(const Operand& b) & {
  return *this = subtract(Operand(std::move(*this), b.at()), b, b.at());
}
Tensor& Tensor::operator*=(const Operand& b) & {
  return *this = multiply(Operand(std::move(*this), b.at()), b, b.at());
}
Tensor& Tensor::operator/=(const Operand& b) & {
  return *this = divide(Operand(std::move(*this), b.at()), b, b.at());
}

}  // namespace tidemark
