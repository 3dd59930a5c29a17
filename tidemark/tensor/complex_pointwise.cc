// Elementwise ops on complex tensors.
#include <algorithm>
#include <cmath>

#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/complex_math.h"
#include "tidemark/tensor/complex_parts.h"

namespace tidemark::detail {

DType common_dtype(const OpCall& call) {
  SmallVec<OperandType, 3> types;
  for (size_t i = has_condition(call.op) ? 1 : 0; i < call.operands.size(); ++i) {
    OperandType type{.weak = number_of(*call.operands[i], call.at).weak};
    if (call.operands[i]->tensor() != nullptr) type.dtype = call.operands[i]->tensor()->dtype();
    types.push_back(type);
  }
  return promote(types);
}

namespace {

// Ops of one operand that treat both parts alike, and those that give bools.
constexpr const UnaryOp* kAlike[] = {&identity, &negative};
struct TestRule {
  const UnaryOp* op;
  const ReduceOp* over;  // How the answers for the parts are joined.
};
constexpr TestRule kTestRules[] = {{&isfinite, &all}, {&isinf, &any}, {&isnan, &any}};

Tensor of_one(const OpCall& call, DType part) {
  const Operand& x = *call.operands[0];
  const OpDef& op = call.op;
  if (&op == &def_of(&abs)) return magnitude_of(parts_of(x, part, call.at));
  for (const UnaryOp* const alike : kAlike)
    if (&op == &def_of(alike))
      return view_as_complex((*alike)(pairs_of(x, part, call.at)), call.at);
  for (const TestRule& test : kTestRules)
    if (&op == &def_of(test.op)) return (*test.over)((*test.op)(pairs_of(x, part, call.at)), -1);
  if (const ComplexFunction function = complex_function(op))
    return joined(function(parts_of(x, part, call.at)), call.at);
  refuse_complex(op.on_complex, op.name, call.at);
}

// The whole exponent of a power by a plain number, if it is small.
std::optional<int64_t> small_exponent(const OpCall& call) {
  constexpr double most = 64;
  if (&call.op != &def_of(&pow) || call.operands[1]->tensor() != nullptr) return {};
  const PlainNumber number = number_of(*call.operands[1], call.at);
  const double value = number.weak == Weak::floating || number.weak == Weak::complex
                           ? number.real
                           : static_cast<double>(number.whole);
  const bool is_small = number.imag == 0 && std::abs(value) <= most && value == std::floor(value);
  return is_small ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

bool is_one_of(const OpDef& op, std::initializer_list<const BinaryOp*> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const BinaryOp* each) { return &def_of(each) == &op; });
}

Tensor of_two(const OpCall& call, DType part) {
  const Operand &a = *call.operands[0], &b = *call.operands[1];
  if (is_one_of(call.op, {&equal, &not_equal})) {
    const Tensor x = pairs_of(a, part, call.at), y = pairs_of(b, part, call.at);
    return is_one_of(call.op, {&equal}) ? all(equal(x, y), -1) : any(not_equal(x, y), -1);
  }
  if (is_one_of(call.op, {&add, &subtract}) && is_complex(a) && is_complex(b)) {
    const Tensor x = pairs_of(a, part, call.at), y = pairs_of(b, part, call.at);
    return view_as_complex(is_one_of(call.op, {&add}) ? add(x, y) : subtract(x, y), call.at);
  }
  if (is_one_of(call.op, {&logical_and, &logical_or, &logical_xor})) {
    const Tensor truths[] = {cast_to(a, DType::boolean, call.at),
                             cast_to(b, DType::boolean, call.at)};
    return bind_op(call.op, truths, call.attrs, call.at);
  }
  if (const std::optional<int64_t> exponent = small_exponent(call))
    return joined(whole_power(parts_of(a, part, call.at), *exponent), call.at);
  if (const ComplexBinary function = complex_binary(call.op))
    return joined(function(parts_of(a, part, call.at), parts_of(b, part, call.at)), call.at);
  refuse_complex(call.op.on_complex, call.op.name, call.at);
}

Tensor selected(const OpCall& call, DType part) {
  const Tensor condition = tensor_of(*call.operands[0], call.at);
  if (tidemark::is_complex(condition.dtype()))
    return where(cast_to(condition, DType::boolean, call.at), *call.operands[1], *call.operands[2],
                 call.at);
  return view_as_complex(
      where(with_last_axis(condition, call.at), pairs_of(*call.operands[1], part, call.at),
            pairs_of(*call.operands[2], part, call.at)),
      call.at);
}

}  // namespace

Tensor complex_pointwise(const OpCall& call) {
  if (&call.op == &def_of(&logical_not))
    return logical_not(cast_to(*call.operands[0], DType::boolean, call.at), call.at);
  const DType common = common_dtype(call);
  // A condition alone may be complex.
  if (&call.op == &def_of(&where)) {
    if (tidemark::is_complex(common)) return selected(call, part_dtype(common));
    return where(cast_to(*call.operands[0], DType::boolean, call.at), *call.operands[1],
                 *call.operands[2], call.at);
  }
  if (call.operands.size() == 1) return of_one(call, part_dtype(common));
  if (call.operands.size() == 2) return of_two(call, part_dtype(common));
  refuse_complex(call.op.on_complex, call.op.name, call.at);
}

}  // namespace tidemark::detail
