#include "bench/growing_functions.h"

namespace tidemark::bench {
namespace {

using Tensors = std::vector<Tensor>;

Tensor repeated(Tensor y, int64_t size, Tensor (*step)(const Tensor&)) {
  for (int64_t i = 0; i < size; ++i) y = step(y);
  return y;
}

Tensors terms(const Tensor& x, int64_t size) {
  Tensors list;
  for (int64_t i = 0; i < size; ++i) list.push_back(x * static_cast<double>(i));
  return list;
}

// Terms that are arrays of their own: a sum along an axis is no part of a kernel.
Tensors steps(const Tensor& x, int64_t size) {
  Tensors list;
  for (const Tensor& term : terms(x, size)) list.push_back(cumsum(term, 0));
  return list;
}

Tensors sines(const Tensors& list) {
  Tensors results;
  for (const Tensor& each : list) results.push_back(sin(each));
  return results;
}

Tensor summed(const Tensors& list) {
  Tensor sum = list[0];
  for (size_t i = 1; i < list.size(); ++i) sum = sum + list[i];
  return sum;
}

Tensor summed_as_tree(Tensors list) {
  while (list.size() > 1) {
    Tensors halves;
    for (size_t i = 0; i + 1 < list.size(); i += 2) halves.push_back(list[i] + list[i + 1]);
    if (list.size() % 2 != 0) halves.push_back(list.back());
    list = std::move(halves);
  }
  return list[0];
}

Tensor sum_of_sums(const Tensors& list) {
  Tensor all = sum(list[0]);
  for (size_t i = 1; i < list.size(); ++i) all = all + sum(list[i]);
  return all;
}

Tensors carried(const Tensors& initial) {
  return fori_loop(
      0, 4, [](const Tensor&, const Tensors& carries) { return sines(carries); }, initial);
}

// Each carry is the one before it in the trip before.
Tensors shifted(const Tensor& x, int64_t size) {
  Tensors initial(static_cast<size_t>(size), zeros_like(x));
  initial[0] = x;
  return fori_loop(
      0, 4,
      [](const Tensor&, const Tensors& carries) {
        Tensors next = {sin(carries[0])};
        for (size_t i = 1; i < carries.size(); ++i) next.push_back(carries[i - 1] * 2);
        return next;
      },
      initial);
}

Tensors branched(const Tensor& x, int64_t size) {
  const Tensors captured = steps(x, size);
  return cond(
      sum(x) > 0, [&] { return sines(captured); },
      [&] {
        Tensors results;
        for (const Tensor& each : captured) results.push_back(each * 3);
        return results;
      });
}

Tensor turned_and_reshaped(const Tensor& x, int64_t size) {
  Tensor y = reshape(x, {2, 4});
  for (int64_t i = 0; i < size; ++i)
    y = i % 2 == 0 ? transpose(y) : reshape(y, {y.shape()[1], y.shape()[0]});
  return y;
}

template <Tensor (*loss)(const Tensor&, int64_t)>
Tensors gradient_of(const Tensor& x, int64_t size) {
  return {grad([size](const Tensor& y) { return loss(y, size); })(x)};
}

const GrowingFunction kFunctions[] = {
    {"squares", 1,
     [](const Tensor& x, int64_t size) -> Tensors {
       return {repeated(x, size, [](const Tensor& y) { return y * y; })};
     }},
    {"doubled", 1,
     [](const Tensor& x, int64_t size) -> Tensors {
       const Tensor start = arange(0, 8, 1, i64);
       return {x + cast(repeated(start, size, [](const Tensor& y) { return y + y; }), f32)};
     }},
    {"chain", 1,
     [](const Tensor& x, int64_t size) -> Tensors {
       return {repeated(x, size, [](const Tensor& y) { return sin(y); })};
     }},
    {"steps", 1,
     [](const Tensor& x, int64_t size) -> Tensors {
       return {repeated(x, size, [](const Tensor& y) { return cumsum(y, 0); })};
     }},
    {"views", 1,
     [](const Tensor& x, int64_t size) -> Tensors { return {turned_and_reshaped(x, size) * 2}; }},
    {"views between", 3,
     [](const Tensor& x, int64_t size) -> Tensors {
       return {repeated(reshape(x, {2, 4}), size,
                        [](const Tensor& y) { return reshape(sin(transpose(y)), {2, 4}); })};
     }},
    {"views read", 3,
     [](const Tensor& x, int64_t size) -> Tensors {
       Tensor y = reshape(x, {2, 4}), all = y;
       for (int64_t i = 0; i < size / 2; ++i) {
         y = reshape(transpose(y), {2, 4});
         all = all + matmul(y, transpose(y))[Slices(0)][0];
       }
       return {all};
     }},
    {"tree", 3,
     [](const Tensor& x, int64_t size) -> Tensors {
       return {summed_as_tree(terms(exp(x), size))};
     }},
    {"wide sum", 3,
     [](const Tensor& x, int64_t size) -> Tensors { return {x + summed(terms(x, size))}; }},
    {"fan", 4,
     [](const Tensor& x, int64_t size) -> Tensors { return {sum_of_sums(terms(tanh(x), size))}; }},
    {"results", 2, terms},
    {"stack", 3, [](const Tensor& x, int64_t size) -> Tensors { return {stack(terms(x, size))}; }},
    {"unstack", 3,
     [](const Tensor& x, int64_t size) -> Tensors {
       return {stack(sines(unstack(broadcast_to(x, {size, 8}) * 2)))};
     }},
    {"concat", 3,
     [](const Tensor& x, int64_t size) -> Tensors { return {sum(concat(steps(x, size)))}; }},
    {"branches", 4,
     [](const Tensor& x, int64_t size) -> Tensors {
       return {repeated(x, size / 4, [](const Tensor& y) {
         return cond(sum(y) > 0, [&] { return y * 2; }, [&] { return exp(y); });
       })};
     }},
    {"a branch", 4, branched},
    {"carries", 2,
     [](const Tensor& x, int64_t size) -> Tensors {
       return carried(Tensors(static_cast<size_t>(size), x));
     }},
    {"captures", 3,
     [](const Tensor& x, int64_t size) -> Tensors {
       const Tensors captured = steps(x, size);
       return {fori_loop(
           0, 4, [&](const Tensor&, const Tensor& y) { return y + summed(captured); }, x)};
     }},
    {"mapped", 2,
     [](const Tensor& x, int64_t size) -> Tensors {
       return {vectorized_map(
           [size](const Tensor& each) {
             Tensor y = each;
             for (int64_t i = 0; i < size; ++i) y = sin(y) * each;
             return y;
           },
           reshape(x, {2, 4}))};
     }},
    {"back over carries", 8, gradient_of<[](const Tensor& x, int64_t size) {
       return sum_of_sums(carried(Tensors(static_cast<size_t>(size), x)));
     }>},
    {"back over shifts", 8,
     gradient_of<[](const Tensor& x, int64_t size) { return sum(shifted(x, size).back()); }>},
    {"back over a branch", 8,
     gradient_of<[](const Tensor& x, int64_t size) { return sum_of_sums(branched(x, size)); }>},
    {"back over layers", 12, gradient_of<[](const Tensor& x, int64_t size) {
       Tensor y = reshape(x, {1, 8});
       const Tensor weights = expand_dims(x, 1) * x;
       for (int64_t i = 0; i < size; ++i) y = relu(matmul(y, weights) + x);
       return sum(y);
     }>},
};

}  // namespace

std::span<const GrowingFunction> growing_functions() { return kFunctions; }

}  // namespace tidemark::bench
