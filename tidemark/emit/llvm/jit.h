// Compiles loop nests to machine code with LLVM, in this process.
//
// A nest becomes one function of explicit vectors as wide as the instruction set's registers, with
// the bits that `loops/nest.h` defines. LLVM is initialised by the first compile: a process that
// never compiles pays nothing. All functions are thread-safe.
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

// Whether compile_nest supports a nest.
bool can_compile(const Nest& nest);

// The number of columns in every call of a kernel, where that is worth code of its own: for rows
// that are folded along lanes, with at most kLanes of them. 0: any.
using KnownColumns = int32_t;

// Compiles every nest that `verify` accepts. Null for others: an op or a fold that does not exist
// for its dtype (`loops/expr.h`), or a store of a sweep to a buffer with repeat columns. The kernel
// owns the code.
std::unique_ptr<Kernel> compile_nest(const Nest& nest, device::Isa isa, KnownColumns known = 0);

// The same for many nests (`known`: of each, or empty), cheaper for each. Their code shares pages,
// which are released with the last of these kernels; the kernels' code_bytes add up to the pages.
std::vector<std::unique_ptr<Kernel>> compile_nests(std::span<const Nest> nests, device::Isa isa,
                                                   std::span<const KnownColumns> known = {});

// The scratch of a call with this many steps and columns; at most the kernel's scratch_bytes, which
// serve any number.
int64_t machine_scratch_bytes(const Nest& nest, int64_t steps, int64_t columns);

// Its expressions may have f32, f64, integers and bool.
std::unique_ptr<Kernel> compile_recurrence(const Recurrence& recurrence, device::Isa isa);

// Bytes of memory holding compiled code now, in whole pages.
int64_t code_bytes_held();

}  // namespace tidemark
