// A measured piece of work, and the inputs it is given: numbers that peers/inputs.py gives too, bit
// for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <tidemark/tidemark.h>

namespace tidemark::bench {

// A case with its inputs made and nothing of it run yet.
struct Prepared {
  std::function<std::vector<Tensor>()> call;
  std::function<Plan()> plan = {};  // Empty where nothing is planned: eager code.
  // What is compared with others, where that is not what a call gives: a step of training starts
  // anew here, and gives how far it moved each parameter.
  std::function<std::vector<Tensor>()> checked = {};
};

template <class Function, class... Arguments>
Prepared prepared(Function function, Arguments... arguments) {
  return {[=] { return std::vector<Tensor>{function(arguments...)}; },
          [=] { return function.plan(arguments...); }};
}

// f32 numbers between -scale / 2 and scale / 2: a hash of the position, 24 bits of it, scaled.
Tensor input(const Shape& shape, float scale, uint32_t salt = 0);
// i32 numbers from 0 to below `count`, which is a power of two: the same bits, the highest of them.
Tensor input_below(int32_t count, const Shape& shape, uint32_t salt = 0);
// An orthogonal matrix, Sylvester's of size `size`, a power of two: what is multiplied by it a
// thousand times neither grows nor vanishes.
Tensor orthogonal(int64_t size);

}  // namespace tidemark::bench
