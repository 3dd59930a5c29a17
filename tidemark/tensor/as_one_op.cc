#include "tidemark/tensor/as_one_op.h"

#include <algorithm>

#include "tidemark/grad/gradients.h"
#include "tidemark/grad/tape.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {

Tensor as_one_op(Tensors operands, const std::function<Tensor(const Tensors& operands)>& f,
                 Source at) {
  if (tracing()) {
    operands[0] = apart(operands[0], at);
    return f(operands);
  }
  std::vector<TapeId> watched;
  for (const Tensor& operand : operands)
    if (is_watched({&operand})) watched.push_back(tape_id_of(operand));
  if (watched.empty()) return f(operands);
  std::sort(watched.begin(), watched.end());
  watched.erase(std::unique(watched.begin(), watched.end()), watched.end());
  Tensor result;
  {
    const NoTape unseen;
    result = f(operands);
  }
  Pullback pullback = [operands, f, watched, at = at.resolve()](const Tensors& gradients) {
    const UserCode user;
    const SourceScope charged(at);
    return gradients_of_run(watched, {}, [&] { return Tensors{f(operands)}; }, gradients);
  };
  record_pullback(watched, {result}, std::move(pullback), operands, at);
  return result;
}

}  // namespace tidemark::detail
