#include "tidemark/compile/pipeline.h"

#include "tidemark/base/interrupt.h"
#include "tidemark/compile/cpu/compute.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

namespace {

// The workspace of contractions, if their sizes are known. That of fusion groups is small.
class ContractionScratch {
 public:
  ContractionScratch(const Backend& backend, const Graph& graph,
                     std::optional<int64_t> most_scratch)
      : backend_(backend), views_(graph), most_scratch_(most_scratch) {}

  int64_t of(const Graph& graph, const Node& node) {
    if (node.op->family != Family::contract) return 0;
    const auto is_open = [](const TensorType& type) { return type.shape.is_open(); };
    std::vector<OperandLayout> operands;
    operands.reserve(node.inputs.size());
    for (const Value input : node.inputs) {
      if (is_open(graph.type(input))) return 0;
      operands.push_back({.layout = views_.of(input)});
    }
    if (is_open(node.results[0])) return 0;
    return known(node, operands);
  }

 private:
  // Equal contractions of equal layouts need the same.
  int64_t known(const Node& node, std::span<const OperandLayout> operands) {
    words_ = {static_cast<int64_t>(reinterpret_cast<intptr_t>(node.op))};
    words_.insert(words_.end(), node.attrs.words().begin(), node.attrs.words().end());
    for (const Dim size : node.attrs.sizes()) words_.push_back(size.number());
    for (const OperandLayout& operand : operands) add(operand.layout);
    const ArrayRef result = dense_layout(node.results[0]);
    add(result);
    const passes::FormTable::Found found = forms_.find(words_);
    if (!found.is_new) return bytes_[found.number];
    const auto bytes = [&](int threads) {
      return backend_.op_workspace({.op = *node.op,
                                    .operands = operands,
                                    .attrs = node.attrs,
                                    .results = {&result, 1},
                                    .threads = threads});
    };
    bytes_.push_back(bytes(threads_within(backend_.machine().threads, most_scratch_, bytes)));
    return bytes_.back();
  }
  void add(const ArrayRef& array) {
    words_.push_back(static_cast<int64_t>(array.dtype));
    words_.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(array.data)));
    words_.push_back(array.rank());
    for (const Dim dim : array.shape) words_.push_back(dim.number());
    words_.insert(words_.end(), array.strides.begin(), array.strides.end());
  }

  const Backend& backend_;
  passes::Views views_;
  std::optional<int64_t> most_scratch_;
  passes::FormTable forms_;
  std::vector<int64_t> words_;
  std::vector<int64_t> bytes_;  // By form.
};

}  // namespace

passes::Machine machine_of(const Backend& backend, std::optional<int64_t> most_scratch) {
  const auto scratch_in = [&backend, most_scratch](const Graph& graph) -> passes::Scratch {
    const auto scratch = std::make_shared<ContractionScratch>(backend, graph, most_scratch);
    return [scratch](const Graph& unordered, const Node& node) {
      return scratch->of(unordered, node);
    };
  };
  return {
      .cache_bytes = backend.machine().cache_bytes, .compute = compute, .scratch_in = scratch_in};
}

Graph optimise(Graph graph, const passes::PassOptions& options, const PassObserver& observe,
               const Backend& backend) {
  const passes::Machine machine = machine_of(backend);
  verify(graph);
  for (const passes::Pass& pass : passes::all_passes()) {
    if (pass.fuses && !options.fuse) continue;
    detail::poll_interrupt();
    pass.run(graph, machine, options);
#ifdef TIDEMARK_DEBUG
    verify(graph);
#endif
    if (observe) observe(pass.name, graph);
  }
  return compact(std::move(graph));
}

}  // namespace tidemark::compile
