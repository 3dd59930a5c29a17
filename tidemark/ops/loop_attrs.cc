#include "tidemark/ops/loop_attrs.h"

#include "tidemark/ops/op_def.h"

namespace tidemark {

LoopAttrs::LoopAttrs(const Node& node) {
  Attrs::Reader read = node.attrs.read();
  carries = read.integer();
  slices = read.integer();
  stacked = read.integer();
  trips = read.size();
  reverse = read.boolean();
  counted = read.boolean();
  save = static_cast<Save>(read.integer());
  amount = read.integer();
  saved = read.integer();
  marks = read.integer();
  kept = read.integer();
}

Attrs LoopAttrs::attrs() const {
  return Attrs()
      .add(carries)
      .add(slices)
      .add(stacked)
      .add(trips)
      .add(reverse)
      .add(counted)
      .add(static_cast<int64_t>(save))
      .add(amount)
      .add(saved)
      .add(marks)
      .add(kept);
}

std::vector<size_t> LoopAttrs::kept_carries() const {
  std::vector<size_t> list;
  for (int64_t k = 0; k < carries; ++k)
    if (kept == -1 || (k < 63 && (kept >> k & 1) != 0)) list.push_back(static_cast<size_t>(k));
  return list;
}

size_t LoopAttrs::stacked_result(size_t number) const {
  const size_t plain = static_cast<size_t>(carries) + number;
  if (marks == 0 || plain < static_cast<size_t>(marks)) return plain;
  return plain + 1 + kept_carries().size();
}

int64_t slots_of_marks(const TensorType& marks) { return marks.shape[0] / 2; }

bool keeps_online(const Graph& graph, const Node& reverse_loop) {
  const Node& loop = graph.node(reverse_loop.inputs[0]);
  return loop.op != nullptr && loop.op->flow == Flow::loop && loop.regions.size() > 1;
}

ReverseAttrs::ReverseAttrs(const Node& node) {
  Attrs::Reader read = node.attrs.read();
  carries = read.integer();
  backs = read.integer();
  slices = read.integer();
  stacked = read.integer();
  trips = read.size();
  reverse = read.boolean();
  counted = read.boolean();
  linear = read.boolean();
  seeds = read.integer();
  save = static_cast<LoopAttrs::Save>(read.integer());
  amount = read.integer();
}

Attrs ReverseAttrs::attrs() const {
  return Attrs()
      .add(carries)
      .add(backs)
      .add(slices)
      .add(stacked)
      .add(trips)
      .add(reverse)
      .add(counted)
      .add(linear)
      .add(seeds)
      .add(static_cast<int64_t>(save))
      .add(amount);
}

}  // namespace tidemark
