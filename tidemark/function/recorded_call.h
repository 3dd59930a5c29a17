// A call of a function under a tape: one record on the tape, with two programs.
//
// The forward program returns the results and the residuals of the gradient. The backward program
// takes the residuals, the arguments it reads, and the gradients of the results. Both are ordinary
// functions: a tape around the second yields higher-order gradients. Internal to the library.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tidemark/function/function_call.h"

namespace tidemark::detail {

struct FunctionTrace;

// Whether a tape has to record such a call.
bool is_recorded(const FunctionTrace& trace, const Arguments& arguments, Source at);
// The results of the call, or nothing if no tape has to record it.
std::optional<CallResult> recorded_call(const UserFunction& function,
                                        const std::shared_ptr<FunctionTrace>& trace,
                                        std::span<const int64_t> sizes, const Arguments& arguments,
                                        ResultMaker make, Source at);

// The bytes of residuals that a tape would hold for such a call, besides arguments and Variables.
// Nothing runs.
Bytes saved_for_gradient(const UserFunction& function, const std::shared_ptr<FunctionTrace>& trace,
                         std::span<const int64_t> sizes, Source at);

}  // namespace tidemark::detail
