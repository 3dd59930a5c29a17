// What this CPU can do, asked once.
#pragma once

#include <cstdint>

namespace tidemark::device {

// Instruction sets kernels are compiled for. `baseline` is plain x86-64; `avx2` includes FMA and
// F16C; `avx512` includes F, BW, DQ, VL.
enum class Isa : uint8_t { baseline, avx2, avx512 };
const char* name(Isa isa);

// The widest this CPU has, or the narrower one TIDEMARK_ISA (baseline, avx2, avx512) asks for.
Isa isa();

struct Caches {
  int64_t l1_bytes, l2_bytes, l3_bytes;  // Per core for the first two.
};
// This CPU's, or those that TIDEMARK_CACHES names (three numbers of KiB: 32,512,16384). With
// TIDEMARK_ISA it makes the plans of another machine, since kernels' scratch and fusion depend on
// both.
const Caches& caches();

}  // namespace tidemark::device
