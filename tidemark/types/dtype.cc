#include "tidemark/types/dtype.h"

#include <ostream>

namespace tidemark {

const char* name(DType dtype) {
  constexpr const char* names[kStoredDTypes] = {"f16", "bf16", "f32",  "f64", "i8",
                                                "i16", "i32",  "i64",  "u8",  "u16",
                                                "u32", "u64",  "bool", "c64", "c128"};
  return names[static_cast<int>(dtype)];
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

int64_t least_of(DType dtype) { return is_signed_integer(dtype) ? -most_of(dtype) - 1 : 0; }

int64_t most_of(DType dtype) {
  if (dtype == DType::boolean) return 1;
  const int64_t bits = 8 * size_of(dtype) - (is_signed_integer(dtype) ? 1 : 0);
  return static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
}

bool fits(int64_t number, DType dtype) {
  if (!is_integer(dtype)) return true;
  return number >= least_of(dtype) && (dtype == DType::u64 || number <= most_of(dtype));
}

float float_of_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fU;
  const uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {
    // Zero or denormal: fraction * 2^-24 is exact in float.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) {
    const uint32_t quiet = fraction != 0 ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13) | quiet);
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
}

uint16_t f16_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  }
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {
    // Below 2^-14 the result is denormal: adding 0.5 leaves the rounded multiple of 2^-24 in the
    // low bits of the sum.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000U));
  }
  const uint32_t odd = (magnitude >> 13) & 1U;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + odd) >> 13));
}

}  // namespace tidemark
