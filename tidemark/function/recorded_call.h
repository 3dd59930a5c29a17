// A call of a function that a tape wants to know of: one entry on the tape, made of two programs.
//
// The first gives the results and what the gradient needs of the way to them, the second takes
// that, the arguments it reads, and gradients of the results. Both are functions like any other: a
// tape around the second gives higher orders. Internal to the library.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tidemark/function/function_call.h"

namespace tidemark::detail {

struct FunctionTrace;

// Whether a tape wants to know of such a call.
bool is_recorded(const FunctionTrace& trace, const Arguments& arguments, Source at);
// What the call gives, or nothing where no tape wants to know of it.
std::optional<CallResult> recorded_call(const UserFunction& function,
                                        const std::shared_ptr<FunctionTrace>& trace,
                                        std::span<const int64_t> sizes, const Arguments& arguments,
                                        ResultMaker make, Source at);

// What a tape would hold of such a call beside arguments and Variables. Nothing runs.
Bytes saved_for_gradient(const UserFunction& function, const std::shared_ptr<FunctionTrace>& trace,
                         std::span<const int64_t> sizes, Source at);

}  // namespace tidemark::detail
