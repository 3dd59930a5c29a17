// Loop nests to machine code, by LLVM, in this process.
//
// A nest becomes one function of explicit vectors as wide as the instruction set's registers, and
// gives the bits `loops/nest.h` defines. LLVM is set up on the first compile: a process that never
// compiles pays nothing. All functions may be called from several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/kernel.h"
#include "tidemark/loops/nest.h"
#include "tidemark/loops/recurrence.h"

namespace tidemark {

// Whether a nest is compiled; what compile_nest says of others.
bool can_compile(const Nest& nest);

// Every nest that `verify` accepts is compiled. Null for others: an op or a fold that does not
// exist for its dtype (`loops/expr.h`), a store of a sweep to a buffer with repeat columns. The
// code belongs to the kernel and is gone with it.
std::unique_ptr<Kernel> compile_nest(const Nest& nest, device::Isa isa);

// The same for many nests, cheaper for each. Their code shares pages, which are given back when the
// last of these kernels dies; the kernels' code_bytes add up to the pages.
std::vector<std::unique_ptr<Kernel>> compile_nests(std::span<const Nest> nests, device::Isa isa);

// What a call of such a kernel needs for this many steps and columns, where it is less than its
// scratch_bytes: those serve any number.
int64_t machine_scratch_bytes(const Nest& nest, int64_t steps, int64_t columns);

// Its expressions have f32, f64, i32, i64, u8 and bool.
std::unique_ptr<Kernel> compile_recurrence(const Recurrence& recurrence, device::Isa isa);

// Bytes of memory holding compiled code now, in whole pages.
int64_t code_bytes_held();

}  // namespace tidemark
