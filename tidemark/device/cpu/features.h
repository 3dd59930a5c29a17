// The instruction sets and caches of this CPU.
#pragma once

#include <cstdint>

namespace tidemark::device {

// The instruction sets that kernels are compiled for. `baseline` is plain x86-64; `avx2` includes
// FMA and F16C; `avx512` includes F, BW, DQ, VL.
enum class Isa : uint8_t { baseline, avx2, avx512 };
const char* name(Isa isa);

// The widest that this CPU has, or a narrower one given by TIDEMARK_ISA (baseline, avx2, avx512).
Isa isa();

struct Caches {
  int64_t l1_bytes, l2_bytes, l3_bytes;  // Per core for the first two.
};
// The caches of this CPU, or those given by TIDEMARK_CACHES (three sizes in KiB: 32,512,16384).
// Scratch and fusion depend on caches and instruction set, so this variable and TIDEMARK_ISA
// together give the plans of another machine.
const Caches& caches();

}  // namespace tidemark::device
