// Functions of complex numbers, by their parts. Internal to the library.
#pragma once

#include "tidemark/tensor/complex_parts.h"

namespace tidemark::detail {

Tensor magnitude_of(const Parts& z);
// z to the power of a small whole number, by squaring.
Parts whole_power(const Parts& z, int64_t exponent);

// What the elementwise op computes; null if it is not known.
using ComplexFunction = Parts (*)(const Parts& z);
ComplexFunction complex_function(const OpDef& op);
// Of two numbers, either of which may be real.
using ComplexBinary = Parts (*)(const Parts& a, const Parts& b);
ComplexBinary complex_binary(const OpDef& op);

}  // namespace tidemark::detail
