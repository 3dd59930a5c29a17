// The key of a program within its trace, from the arguments of a call. Internal to the library.
#pragma once

#include <span>

#include "tidemark/device/threads.h"
#include "tidemark/function/call_types.h"
#include "tidemark/function/compiled_function.h"
#include "tidemark/function/function_call.h"
#include "tidemark/function/plan.h"

namespace tidemark::detail {

// The address of a captured tensor, and its strides if it is not dense.
compile::Interface::Parameter capture_parameter(const Tensor& capture);

// The key of a call; specs are planned as dense. Records in `profile`, if given, which arguments
// are donated and why the others are not.
ProgramKey program_key(const TracedGraph& traced, const Arguments& arguments,
                       std::span<const int64_t> sizes, Profile* profile = nullptr);
// Whether this is the key of a call, for these positions of open sizes. Does not allocate.
bool is_key_of(const ProgramKey& key, const TracedGraph& traced, const Arguments& arguments,
               std::span<const SizePlace> open);
// Visits the layouts of the arguments in a key: visit(parameter, what the key says, strides).
using VisitArgument = device::FunctionRef<void(size_t parameter, ProgramKey::Argument said,
                                               std::span<const int64_t> strides)>;
void for_each_argument(const TracedGraph& traced, const ProgramKey& key, VisitArgument visit);
// Whether the program of one key can serve a call of another: it may only consume arguments that
// the call donates.
bool serves(const TracedGraph& traced, const ProgramKey& planned, const ProgramKey& call);

}  // namespace tidemark::detail
