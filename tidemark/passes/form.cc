#include "tidemark/passes/form.h"

#include <algorithm>

namespace tidemark::passes {

size_t FormTable::Hash::operator()(Words words) const {
  // Two halves, since each step waits for the one before.
  uint64_t even = words.size(), odd = 1;
  const auto mix = [](uint64_t& hash, int64_t word) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  };
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    mix(even, words[i]);
    mix(odd, words[i + 1]);
  }
  if (words.size() % 2 == 1) mix(even, words.back());
  return even ^ odd * 31;
}

bool FormTable::Equal::operator()(Words a, Words b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

FormTable::Found FormTable::find(Words words) {
  if (const auto found = known_.find(words); found != known_.end()) return {found->second, false};
  const size_t number = known_.size();
  known_.emplace(std::vector(words.begin(), words.end()), number);
  return {number, true};
}

void FormWriter::add(const TensorType& type) {
  words_.push_back(static_cast<int64_t>(type.dtype));
  words_.push_back(type.shape.rank());
  for (const Dim dim : type.shape) words_.push_back(static_cast<int64_t>(dim.word()));
}

// Values of the kernel count from 0 up, those from outside from -1 down.
void FormWriter::add(Value value, std::vector<Value>& outside) {
  if (const int32_t place = place_[static_cast<size_t>(value.node)]; place >= 0) {
    words_.push_back(int64_t{place} << 16 | value.result);
    return;
  }
  const auto found = std::find(outside.begin(), outside.end(), value);
  words_.push_back(-1 - (found - outside.begin()));
  if (found != outside.end()) return;
  outside.push_back(value);
  add(graph_.type(value));
}

void FormWriter::add(const Node& node, std::vector<Value>& outside) {
  const auto add_count = [&](size_t count) { words_.push_back(static_cast<int64_t>(count)); };
  words_.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(node.op)));
  add_count(node.attrs.words().size());
  for (const int64_t word : node.attrs.words()) words_.push_back(word);
  add_count(node.attrs.sizes().size());
  for (const Dim size : node.attrs.sizes()) words_.push_back(static_cast<int64_t>(size.word()));
  add_count(node.inputs.size());
  for (const Value input : node.inputs) add(input, outside);
  add_count(node.results.size());
  for (const TensorType& type : node.results) add(type);
}

std::span<const int64_t> FormWriter::write(std::span<const int32_t> nodes,
                                           std::span<const Value> results,
                                           std::vector<Value>& outside) {
  words_.clear();
  place_.resize(graph_.nodes.size(), -1);
  for (size_t i = 0; i < nodes.size(); ++i)
    place_[static_cast<size_t>(nodes[i])] = static_cast<int32_t>(i);
  words_.push_back(static_cast<int64_t>(nodes.size()));
  words_.push_back(static_cast<int64_t>(outside.size()));
  for (const Value value : outside) add(graph_.type(value));
  for (const int32_t number : nodes) add(graph_.nodes[static_cast<size_t>(number)], outside);
  for (const Value result : results) add(result, outside);
  for (const int32_t number : nodes) place_[static_cast<size_t>(number)] = -1;
  return words_;
}

}  // namespace tidemark::passes
