// Calls of complex tensors, but for elementwise ops (complex_pointwise.cc).
#include "tidemark/tensor/complex_parts.h"

#include "tidemark/ops/contract.h"
#include "tidemark/ops/effect.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/direct.h"

namespace tidemark::detail {
namespace {

// The indices of an op that has one for each element, for each part.
Tensor for_each_part(const Tensor& indices, Source at) {
  Shape shape = indices.shape();
  shape.push_back(2);
  return broadcast(with_last_axis(indices, at), shape, at);
}

bool has_index_for_each(const OpCall& call) {
  if (&call.op == &def_of(&ops::take_along_axis)) return true;
  bool along = false;
  if (&call.op == &def_of(&ops::scatter_add)) {
    Attrs::Reader read = call.attrs.read();
    read.integer();
    along = read.boolean();
  }
  return along;
}

// A pad with a number other than 0 pads imaginary parts with 0.
Tensor padded(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  const DimList low(read.sizes()), high(read.sizes());
  const AxisList inside(read.integers());
  const Parts z = halves_of(view_as_real(*call.operands[0]->tensor(), call.at), call.at);
  const Attrs with_zeros = Attrs().add(low).add(high).add(inside).add(0.0).add(int64_t{0});
  return joined({bind_one(ops::pad, z.re, call.attrs, call.at),
                 bind_one(ops::pad, z.im, with_zeros, call.at)},
                call.at);
}

bool pads_with_zeros(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  read.sizes();
  read.sizes();
  read.integers();
  return read.number() == 0;
}

Tensor by_parts(const OpCall& call) {
  if (&call.op == &def_of(&ops::pad) && !pads_with_zeros(call)) return padded(call);
  const Tensor& first = *call.operands[0]->tensor();
  std::vector<Tensor> operands;
  for (const Operand* const operand : call.operands) {
    const Tensor& each = *operand->tensor();
    const bool is_index = !tidemark::is_complex(each.dtype());
    operands.push_back(!is_index                  ? view_as_real(each, call.at)
                       : has_index_for_each(call) ? for_each_part(each, call.at)
                                                  : each);
  }
  const Attrs attrs = ops::pairs_attrs(call.op, call.attrs, first.rank());
  return view_as_complex(bind_op(call.op, operands, attrs, call.at), call.at);
}

// Of an op that is linear in each of two operands, which may be real.
Tensor bilinear(const OpCall& call) {
  const DType part = part_dtype(call.operands[0]->tensor()->dtype());
  const Parts a = parts_of(*call.operands[0], part, call.at);
  const Parts b = parts_of(*call.operands[1], part, call.at);
  const auto apply = [&](const Tensor& x, const Tensor& y) {
    const Tensor list[] = {x, y};
    return bind_op(call.op, list, call.attrs, call.at);
  };
  return joined(
      {subtract(apply(a.re, b.re), apply(a.im, b.im)), add(apply(a.re, b.im), apply(a.im, b.re))},
      call.at);
}

// Halves are multiplied until one element is left: the error grows with the logarithm of the size.
Tensor product_along(Tensor z, int64_t axis, Source at) {
  const int64_t count = z.shape()[axis];
  if (count == 0) {
    Shape shape = z.shape();
    shape.set(axis, 1);
    return broadcast(complex_cast(1.0, z.dtype(), at), shape, at);
  }
  for (int64_t size = count; size > 1; size -= size / 2) {
    const int64_t half = size / 2;
    const Tensor made = multiply(range_of(z, axis, 0, half, at), range_of(z, axis, half, half, at));
    const Tensor list[] = {made, range_of(z, axis, 2 * half, size % 2, at)};
    z = size % 2 == 0 ? made : concat_along(list, axis, at);
  }
  return z;
}

Tensor product_of_axes(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  const AxisList axes(read.integers());
  Tensor z = *call.operands[0]->tensor();
  for (const int64_t axis : axes) z = product_along(z, axis, call.at);
  if (read.boolean()) return z;
  for (size_t i = axes.size(); i-- > 0;) z = without_axis(z, axes[i], call.at);
  return z;
}

// Of twice as many elements at each step.
Tensor running_product(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  const int64_t axis = read.integer();
  const bool reverse = read.boolean();
  Tensor z = *call.operands[0]->tensor();
  const int64_t count = z.shape()[axis];
  for (int64_t reach = 1; reach < count; reach *= 2) {
    const Tensor made = multiply(range_of(z, axis, reach, count - reach, call.at),
                                 range_of(z, axis, 0, count - reach, call.at));
    const Tensor kept = range_of(z, axis, reverse ? count - reach : 0, reach, call.at);
    const Tensor list[] = {reverse ? made : kept, reverse ? kept : made};
    z = concat_along(list, axis, call.at);
  }
  return z;
}

// y[i] = a[i] y[i - 1] + b[i], where each step joins what reaches `reach` elements back with what
// those elements have reached.
Tensor recurrence(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  const int64_t axis = read.integer();
  const bool reverse = read.boolean();
  const DType dtype = common_dtype(call);
  Tensor a = complex_cast(*call.operands[0], dtype, call.at);
  Tensor y = complex_cast(*call.operands[1], dtype, call.at);
  const int64_t count = y.shape()[axis];
  for (int64_t reach = 1; reach < count; reach *= 2) {
    const auto part = [&](const Tensor& x, bool later, int64_t size) {
      return range_of(x, axis, later ? count - size : 0, size, call.at);
    };
    const Tensor by = part(a, !reverse, count - reach);
    const auto with_first = [&](const Tensor& first, const Tensor& rest) {
      const Tensor list[] = {reverse ? rest : first, reverse ? first : rest};
      return concat_along(list, axis, call.at);
    };
    const Tensor reached = multiply(by, part(y, reverse, count - reach));
    const Tensor factors = multiply(by, part(a, reverse, count - reach));
    y = with_first(part(y, reverse, reach), add(part(y, !reverse, count - reach), reached));
    a = with_first(part(a, reverse, reach), factors);
  }
  return y;
}

Tensor truths(const OpCall& call) {
  const Tensor truth = cast_to(*call.operands[0], DType::boolean, call.at);
  return bind_op(call.op, {&truth, 1}, call.attrs, call.at);
}

// An elementwise op, as one program where eager code has often run it: by parts it is many passes
// over memory.
Tensor composed_pointwise(const OpCall& call) {
  Tensors operands;
  for (const Operand* const operand : call.operands) {
    if (operand->tensor() == nullptr) return complex_pointwise(call);
    operands.push_back(*operand->tensor());
  }
  if (&call.op == &def_of(&multiply))
    if (auto made = complex_products(operands[0], operands[1], call.at)) return *std::move(made);
  const auto run = [&](const Tensors& given) {
    std::vector<Operand> held;
    held.reserve(given.size());
    SmallVec<const Operand*, 3> list;
    for (const Tensor& each : given) list.push_back(&held.emplace_back(each, call.at));
    return complex_pointwise({call.op, {list.data(), list.size()}, call.attrs, call.at});
  };
  return composed(Composition(call.op.self), std::move(operands), run, call.at);
}

struct CallRule {
  const void* op;
  Tensor (*run)(const OpCall& call);
};
constexpr CallRule kCallRules[] = {
    {&all, truths},
    {&any, truths},
    {&ops::conv2d, bilinear},
    {&ops::conv3d, bilinear},
    {&ops::matmul, bilinear},
    {&prod, product_of_axes},
    {&ops::cumprod, running_product},
    {&ops::linear_scan, recurrence},
};

}  // namespace

bool knows_complex(const OpDef& op) {
  return op.transfers || op.effect == Effect::print || &op == &def_of(&ops::view_as_real) ||
         &op == &def_of(&ops::view_as_complex);
}

Tensor complex_call(const OpCall& call) {
  const SourceScope scope(call.at);
  if (call.op.is_cast()) return complex_cast(*call.operands[0], call.attrs.read().dtype(), call.at);
  if (call.op.family == Family::pointwise) return composed_pointwise(call);
  if (call.op.on_complex == OnComplex::parts) return by_parts(call);
  for (const CallRule& rule : kCallRules)
    if (&def_of(rule.op) == &call.op) return rule.run(call);
  if (call.op.effect == Effect::check_numerics) {
    const Tensor pairs = view_as_real(*call.operands[0]->tensor(), call.at);
    return bind_op(call.op, {&pairs, 1}, call.attrs, call.at);
  }
  refuse_complex(call.op.on_complex, call.op.name, call.at);
}

}  // namespace tidemark::detail
