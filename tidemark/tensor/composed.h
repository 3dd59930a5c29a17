// Functions of several ops. Eager code runs them op by op at first. One that has been called often
// enough with operands of the same types becomes a program, as td::function would make it: a kernel
// or two instead of a pass over memory for each op. Both give the same bits. Internal to the
// library.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "tidemark/device/threads.h"
#include "tidemark/tensor/interpreter.h"
#include "tidemark/types/small_vec.h"

namespace tidemark::detail {

// Everything that the ops of a call depend on, besides the types of its operands.
class Composition {
 public:
  // `self` is the address of something static that names the function.
  explicit Composition(const void* self) { words_.push_back(std::bit_cast<uint64_t>(self)); }
  Composition& add(double number) { return add_word(std::bit_cast<uint64_t>(number)); }
  Composition& add(std::integral auto number) { return add_word(static_cast<uint64_t>(number)); }

  using Words = SmallVec<uint64_t, 28>;
  const Words& words() const { return words_; }

 private:
  Composition& add_word(uint64_t word) {
    words_.push_back(word);
    return *this;
  }
  Words words_;
};

// `body` reads no tensor but these operands, draws nothing, and does the same for the same types.
using ComposedBody = device::FunctionRef<Tensor(const Tensors& operands)>;
Tensor composed(const Composition& what, Tensors operands, ComposedBody body, Source at);
// The same for a body with several results, some of which may be empty.
using ComposedResults = device::FunctionRef<Tensors(const Tensors& operands)>;
Tensors composed_results(const Composition& what, const Tensors& operands, ComposedResults body,
                         Source at);

}  // namespace tidemark::detail
