#include "tidemark/function/program_key.h"

#include <algorithm>

#include "tidemark/device/threads.h"
#include "tidemark/tensor/placement.h"

namespace tidemark::detail {

namespace {

// Dense except for broadcast axes, which have a single element in memory.
bool is_dense(const ArrayRef& array) {
  int64_t expected = 1;
  for (int64_t axis = array.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = array.shape[axis];
    if (extent == 0) return true;
    const int64_t stride = array.strides[static_cast<size_t>(axis)];
    if (extent == 1 || stride == 0) continue;
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

}  // namespace

compile::Interface::Parameter capture_parameter(const Tensor& capture) {
  const ArrayRef& array = TensorState::of(capture)->array;
  return {ByteClass::constants, false, "captured", is_dense(array) ? Strides{} : array.strides};
}

namespace {

// Whether an argument is donated: it was moved in and is not shared.
bool may_use(const Argument& argument, const TensorState& state) {
  if (state.kind == TensorState::Kind::spec) return state.donated;
  return argument.donated && owns_whole_storage(state);
}

}  // namespace

namespace {

// The words of a key except for open sizes: calls word(number) for each, in order.
template <class Word>
void for_each_word(const TracedGraph& traced, const Arguments& arguments, Word word) {
  word(num_threads());
  for (const int32_t leaf : traced.argument_leaves) {
    const Argument& argument = arguments.leaves[static_cast<size_t>(leaf)];
    const TensorState& state = *TensorState::of(argument.tensor);
    const bool donated = !state.weak && may_use(argument, state);
    if (donated || state.kind == TensorState::Kind::spec || is_dense(state.array)) {
      word(donated ? ProgramKey::donated : ProgramKey::dense);
      continue;
    }
    word(ProgramKey::strided);
    for (const int64_t stride : state.array.strides) word(stride);
  }
}

void note_donations(const TracedGraph& traced, const Arguments& arguments, Profile& profile) {
  for (const int32_t leaf : traced.argument_leaves) {
    const auto at = static_cast<size_t>(leaf);
    const Argument& argument = arguments.leaves[at];
    const TensorState& state = *TensorState::of(argument.tensor);
    if (state.weak) continue;
    if (may_use(argument, state))
      profile.donated.push_back(arguments.path(at));
    else if (argument.donated)
      profile.not_donated.push_back(cat(arguments.path(at), ": somebody else holds its bytes"));
  }
}

}  // namespace

ProgramKey program_key(const TracedGraph& traced, const Arguments& arguments,
                       std::span<const int64_t> sizes, Profile* profile) {
  if (profile != nullptr) note_donations(traced, arguments, *profile);
  ProgramKey key;
  for_each_word(traced, arguments, [&](int64_t word) { key.words.push_back(word); });
  key.sizes_at = key.words.size();
  for (const int64_t size : sizes) key.words.push_back(size);
  return key;
}

bool is_key_of(const ProgramKey& key, const TracedGraph& traced, const Arguments& arguments,
               std::span<const SizePlace> open) {
  size_t at = 0;
  bool same = true;
  const auto compare = [&](int64_t word) {
    same = same && at < key.words.size() && key.words[at] == word;
    ++at;
  };
  for_each_word(traced, arguments, compare);
  for (const SizePlace place : open) compare(size_at(arguments.leaves, place));
  return same && at == key.words.size();
}

void for_each_argument(const TracedGraph& traced, const ProgramKey& key, VisitArgument visit) {
  size_t at = 1;
  for (size_t i = 0; i < traced.parameters.size(); ++i) {
    if (!traced.parameters[i].is_argument()) continue;
    const auto rank =
        static_cast<size_t>(traced.graph.type(traced.graph.body().parameters[i]).shape.rank());
    const auto said = static_cast<ProgramKey::Argument>(key.words[at++]);
    const size_t strides = said == ProgramKey::strided ? rank : 0;
    visit(i, said, std::span<const int64_t>(key.words).subspan(at, strides));
    at += strides;
  }
}

bool serves(const TracedGraph& traced, const ProgramKey& planned, const ProgramKey& call) {
  if (planned.words[0] != call.words[0]) return false;
  if (!std::equal(planned.sizes().begin(), planned.sizes().end(), call.sizes().begin(),
                  call.sizes().end()))
    return false;
  // A donated argument is also dense.
  ProgramKey kept = call;
  size_t place = 1;
  for_each_argument(
      traced, call, [&](size_t, ProgramKey::Argument said, std::span<const int64_t> strides) {
        if (said == ProgramKey::donated && place < planned.sizes_at)
          kept.words[place] = planned.words[place] == ProgramKey::dense ? ProgramKey::dense : said;
        place += 1 + strides.size();
      });
  return kept == planned;
}

}  // namespace tidemark::detail
