#include "tidemark/function/call_types.h"

#include <algorithm>

#include "tidemark/device/memory.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {

namespace {

Weak kind_of(const TensorState& state) {
  if (!state.weak) return Weak::no;
  return state.array.dtype == DType::boolean ? Weak::boolean
         : state.array.dtype == DType::i32   ? Weak::integer
                                             : Weak::floating;
}

}  // namespace

LeafType leaf_type(const Argument& argument, Source at) {
  if (argument.is_size) return {.is_size = true, .size = argument.size};
  if (!argument.tensor.has_value()) return {.is_empty = true};
  const TensorState& state = state_of(argument.tensor, at);
  LeafType leaf{.type = {state.array.dtype, state.array.shape}, .weak = kind_of(state)};
  if (state.kind == TensorState::Kind::concrete) leaf.repeats = repeated_axes(state.array);
  leaf.memory = state.has_bytes() ? state.memory() : LeafType::kAnyMemory;
  return leaf;
}

std::string text_of(const LeafType& leaf) {
  if (leaf.is_size) return cat("size ", leaf.size);
  if (leaf.is_empty) return "nothing";
  constexpr const char* kinds[] = {"", "a bool", "an integer", "a float"};
  if (leaf.weak != Weak::no) return kinds[static_cast<int>(leaf.weak)];
  std::string text = cat(leaf.type);
  for (int64_t axis = 0; axis < leaf.type.shape.rank() && axis < 64; ++axis)
    if ((leaf.repeats >> axis & 1) != 0) text += cat(" repeated along dimension ", axis);
  if (leaf.memory > 0) text += cat(" in ", device::memory_text(leaf.memory));
  return text;
}

DType number_dtype(Weak weak) {
  return weak == Weak::boolean ? DType::boolean : weak == Weak::integer ? DType::i64 : DType::f64;
}

Dim size_at(const LeafTypes& leaves, SizePlace place) {
  const LeafType& leaf = leaves[static_cast<size_t>(place.leaf)];
  return place.axis < 0 ? leaf.size : leaf.type.shape[place.axis];
}

Dim size_at(std::span<const Argument> leaves, SizePlace place) {
  const Argument& leaf = leaves[static_cast<size_t>(place.leaf)];
  return place.axis < 0 ? leaf.size : TensorState::of(leaf.tensor)->array.shape[place.axis];
}

void set_size(LeafTypes& leaves, SizePlace place, Dim size) {
  LeafType& leaf = leaves[static_cast<size_t>(place.leaf)];
  if (place.axis < 0)
    leaf.size = size;
  else
    leaf.type.shape.set(place.axis, size);
}

std::vector<SizePlace> places_of(const LeafTypes& leaves) {
  std::vector<SizePlace> places;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto leaf = static_cast<int32_t>(i);
    if (leaves[i].is_size) places.push_back({leaf, -1});
    const auto rank = static_cast<int32_t>(leaves[i].type.shape.rank());
    for (int32_t axis = 0; axis < rank; ++axis) places.push_back({leaf, axis});
  }
  return places;
}

std::string text_of(SizePlace place, const std::vector<std::string>& paths) {
  const std::string& path = paths[static_cast<size_t>(place.leaf)];
  return place.axis < 0 ? path : cat(path, ", dimension ", place.axis);
}

namespace {

// A spec stands for a tensor in any memory.
bool is_same_memory(int32_t a, int32_t b) {
  return a == b || a == LeafType::kAnyMemory || b == LeafType::kAnyMemory;
}

}  // namespace

bool are_alike(const LeafTypes& a, const LeafTypes& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const LeafType& x, const LeafType& y) {
        return x.is_size == y.is_size && x.is_empty == y.is_empty && x.weak == y.weak &&
               x.type.dtype == y.type.dtype && x.type.shape.rank() == y.type.shape.rank() &&
               x.repeats == y.repeats && is_same_memory(x.memory, y.memory);
      });
}

bool match(const LeafTypes& leaves, const LeafTypes& known, const std::vector<SizePlace>& open) {
  if (!are_alike(leaves, known)) return false;
  auto next = open.begin();  // In the order of positions.
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto is_open = [&](int64_t axis) {
      if (next == open.end() || next->leaf != static_cast<int32_t>(i) || next->axis != axis)
        return false;
      ++next;
      return true;
    };
    if (leaves[i].is_size && !is_open(-1) && leaves[i].size != known[i].size) return false;
    const Shape &is = leaves[i].type.shape, &was = known[i].type.shape;
    for (int64_t axis = 0; axis < is.rank(); ++axis) {
      if (!is_open(axis) && is[axis] != was[axis]) return false;
    }
  }
  return true;
}

bool match(std::span<const Argument> leaves, const LeafTypes& known,
           const std::vector<SizePlace>& open) {
  if (leaves.size() != known.size()) return false;
  auto next = open.begin();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const LeafType& was = known[i];
    const bool some_open = next != open.end() && next->leaf == static_cast<int32_t>(i);
    if (leaves[i].is_size) {
      if (!was.is_size || (!some_open && leaves[i].size != was.size)) return false;
      if (some_open) ++next;
      continue;
    }
    const TensorState* const state = TensorState::of(leaves[i].tensor);
    if (state == nullptr || was.is_empty || was.is_size) {
      if (state != nullptr || !was.is_empty) return false;
      continue;
    }
    const ArrayRef& array = state->array;
    if (!state->has_bytes() || state->memory() != was.memory || array.dtype != was.type.dtype ||
        kind_of(*state) != was.weak || array.rank() != was.type.shape.rank() ||
        repeated_axes(array) != was.repeats)
      return false;
    if (!some_open) {
      if (array.shape != was.type.shape) return false;
      continue;
    }
    for (int32_t axis = 0; axis < array.rank(); ++axis) {
      const bool is_open = next != open.end() && *next == SizePlace{static_cast<int32_t>(i), axis};
      if (!is_open && array.shape[axis] != was.type.shape[axis]) return false;
      if (is_open) ++next;
    }
  }
  return true;
}

void check_signature(const std::vector<TensorSpec>& signature, const LeafTypes& leaves,
                     const Arguments& arguments, const std::string& title, Source at) {
  size_t next = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const LeafType& leaf = leaves[i];
    if (leaf.is_size || leaf.is_empty) continue;
    if (next++ >= signature.size()) continue;
    const TensorSpec& wanted = signature[next - 1];
    bool fits = wanted.shape.rank() == leaf.type.shape.rank() &&
                (wanted.dtype == leaf.type.dtype || leaf.weak != Weak::no);
    for (int64_t axis = 0; fits && axis < wanted.shape.rank(); ++axis) {
      const Dim given = leaf.type.shape[axis];
      fits = wanted.shape[axis].is_open() || given.is_open() || wanted.shape[axis] == given;
    }
    if (!fits) {
      throw UserError(cat(title, ": ", arguments.path(i), " is ", text_of(leaf),
                          ", its signature has ", TensorType{wanted.dtype, wanted.shape}),
                      at, "cast or reshape it, or make the size open in the signature: td::open");
    }
  }
  if (next != signature.size()) {
    throw UserError(
        cat(title, ": it was given ", next, " tensors, its signature has ", signature.size()), at,
        "input_signature has one td::spec for each tensor, in order");
  }
}

std::vector<SizePlace> open_places(const std::vector<TensorSpec>& signature,
                                   const LeafTypes& leaves) {
  std::vector<SizePlace> places;
  size_t next = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].is_size || leaves[i].is_empty) continue;
    const Shape& shape = signature[next++].shape;
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis].is_open())
        places.push_back({static_cast<int32_t>(i), static_cast<int32_t>(axis)});
    }
  }
  return places;
}

}  // namespace tidemark::detail
