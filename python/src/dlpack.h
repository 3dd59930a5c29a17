// The memory layout of DLPack 1, by which Python's array libraries hand memory to each other
// (https://dmlc.github.io/dlpack/latest/c_api.html). Field order and widths are fixed by it.
#pragma once

#include <cstdint>

namespace tidemark::python::dlpack {

inline constexpr int32_t kCpu = 1;

enum class Code : uint8_t {
  integer = 0,
  unsigned_integer = 1,
  real = 2,
  bfloat = 4,
  complex = 5,
  boolean = 6
};

struct Device {
  int32_t type, id;
};
struct ElementCode {
  Code code;
  uint8_t bits;
  uint16_t lanes;
};
struct Array {
  void* data;
  Device device;
  int32_t rank;
  ElementCode dtype;
  int64_t* shape;
  int64_t* strides;  // In elements; null: row-major.
  uint64_t byte_offset;
};
// Capsule "dltensor".
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed* self);
};
// Capsule "dltensor_versioned".
struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned* self);
  uint64_t flags;
  Array array;
};
inline constexpr uint64_t kReadOnly = 1, kCopied = 2;

}  // namespace tidemark::python::dlpack
