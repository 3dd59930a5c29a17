// The CTC loss: the forward recursion over alignments, in logarithms.
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "tidemark/api/control_flow.h"
#include "tidemark/api/create.h"
#include "tidemark/api/extend.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/train/losses.h"
#include "tidemark/train/operand_tensor.h"

namespace tidemark::nn::losses {
namespace {

// The logarithm of an impossible alignment. Finite, so that gradients are never infinity times 0;
// so low that no logits make up for it.
constexpr double kNever = -1e30;

struct Step {
  Tensor logits;  // [n, classes]
  Tensor number;  // []
};

// log(exp(a) + exp(b) + exp(c)).
Tensor added(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor most = stop_gradient(maximum(a, maximum(b, c)));
  return most + log(exp(a - most) + exp(b - most) + exp(c - most));
}

// The columns moved to the right, with impossible ones at the left.
Tensor moved(const Tensor& alpha, int64_t by) {
  const Tensor never = full({alpha.shape()[0], by}, kNever, alpha.dtype());
  return concat({never, alpha}, 1)[{all, Slice{.end = -by}}];
}

Tensor lengths_or(const char* what, const std::optional<Tensor>& lengths, Dim rows, Dim most,
                  Source at) {
  if (!lengths) return broadcast_to(cast(most, DType::i32), {rows});
  if (is_integer(lengths->dtype()) && lengths->rank() == 1 && lengths->shape()[0] == rows)
    return cast(*lengths, DType::i32);
  throw UserError(
      cat("losses::ctc: ", what, " ", type_text(*lengths), " do not fit ", rows, " sequences"), at,
      cat("give one whole number for each: [", rows, "]"));
}

void check_types(const Tensor& labels, const Tensor& logits, const CTCOptions& options, Source at) {
  if (labels.rank() != 2 || logits.rank() != 3 || !is_integer(labels.dtype()) ||
      !(labels.shape()[0] == logits.shape()[0]))
    throw UserError(
        cat("losses::ctc: labels ", type_text(labels), " do not fit logits ", type_text(logits)),
        at, "give class numbers [n, labels] and logits [n, steps, classes]");
  if (options.blank < 0 || !(options.blank < logits.shape()[2]))
    throw UserError(
        cat("losses::ctc: blank is ", options.blank, " of ", logits.shape()[2], " classes"), at,
        "give the number of the class that is no label, 0 by default");
}

}  // namespace

namespace body {

// States of an alignment are the labels with blanks around and between them: 2 * labels + 1. A step
// stays, advances by one, or skips a blank between two different labels.
Elements ctc(const Tensor& labels, const Tensor& logits, const CTCOptions& options, Source at) {
  check_types(labels, logits, options, at);
  const Dim rows = labels.shape()[0], count = labels.shape()[1], steps = logits.shape()[1];
  const DType dtype = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor label_lengths = lengths_or("label_lengths", options.label_lengths, rows, count, at);
  const Tensor logit_lengths = lengths_or("logit_lengths", options.logit_lengths, rows, steps, at);
  const Tensor is_label = arange(count) < expand_dims(label_lengths, 1);
  const Tensor known = where(is_label, cast(labels, DType::i32), options.blank);
  const Tensor blanks = full({rows, count}, options.blank, DType::i32);
  const Tensor pairs = reshape(stack({blanks, known}, 2), {rows, 2 * count});
  const Tensor states = concat({pairs, full({rows, 1}, options.blank, DType::i32)}, 1);
  const Tensor before =
      concat({full({rows, 2}, options.blank, DType::i32), states}, 1)[{all, Slice{.end = -2}}];
  const Tensor may_skip = logical_and(states != options.blank, states != before);
  const Tensor start = where(broadcast_to(arange(2 * count + 1) == 0, {rows, 2 * count + 1}),
                             cast(0, dtype), cast(kNever, dtype));

  const auto body = [&](const Tensor& alpha, const Step& now, Source line) {
    const SourceScope scope(line);
    const Tensor emitted = detail::take_class(log_softmax(cast(now.logits, dtype)), states, at);
    const Tensor skipped = where(may_skip, moved(alpha, 2), kNever);
    const Tensor next = added(alpha, moved(alpha, 1), skipped) + emitted;
    const Tensor kept = where(expand_dims(now.number < logit_lengths, 1), next, alpha);
    return std::pair{kept, std::tuple<>()};
  };
  const Tensor last =
      scan(body, start, Step{transpose(logits, {1, 0, 2}), arange(steps)}, {}, at).first;

  // An alignment ends in the last label or in the blank after it.
  const Tensor end = 2 * expand_dims(label_lengths, 1);
  const Tensor in_blank = take_along_axis(last, end, 1);
  const Tensor in_label = where(end > 0, take_along_axis(last, maximum(end - 1, 0), 1), kNever);
  const Tensor loss = -squeeze(added(in_blank, in_label, full_like(in_blank, kNever)), 1);
  const double impossible = options.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  return {where(loss < -kNever / 10, loss, impossible)};
}

}  // namespace body
}  // namespace tidemark::nn::losses
