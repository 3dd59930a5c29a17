// Fusion: merges clusters of nodes that can share loops, by the bytes that this saves.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/work.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/passes/form.h"
#include "tidemark/passes/labelled_list.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::passes {
namespace {

constexpr int64_t kNumberBytes =
    64;  // Values up to a cache line are as cheap to pass on as one number.
constexpr int64_t kVanishing = 5;  // The weight of a value that is no longer stored at all.

using WorkList = SmallVec<int32_t, 6>;

// The numbers of two sorted lists, sorted.
WorkList merged(const WorkList& a, const WorkList& b) {
  WorkList both(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin());
  return both;
}

// Clusters of nodes in topological order. Merging two moves the clusters between them that depend
// on the first behind the second; if that is impossible, they cannot be merged.
class ClusterOrder {
 public:
  // Initially cluster i is node i; `next[i]` are the clusters that must come after it.
  explicit ClusterOrder(std::vector<WorkList> next)
      : next_(std::move(next)),
        owner_(next_.size()),
        seen_(next_.size()),
        order_(next_.size()),
        budget_(kSteps + kStepsPerNode * next_.size()) {
    std::iota(owner_.begin(), owner_.end(), 0);
    members_.reserve(next_.size());
    for (size_t i = 0; i < next_.size(); ++i) members_.push_back({static_cast<int32_t>(i)});
  }

  int32_t owner(int32_t node) const { return owner_[static_cast<size_t>(node)]; }
  const WorkList& members(int32_t cluster) const { return members_[static_cast<size_t>(cluster)]; }
  bool is_before(int32_t a, int32_t b) const { return order_.is_before(a, b); }
  // The remaining clusters, in order.
  std::vector<int32_t> order() const { return order_.all(); }

  // Whether the two can be merged; stores what `merge` needs. Gives up if the search becomes too
  // long, so that the total time is linear in the number of nodes.
  bool can_merge(int32_t a, int32_t b) {
    first_ = order_.is_before(a, b) ? a : b;
    second_ = first_ == a ? b : a;
    behind_.clear();
    const size_t allowed = std::max(budget_, kLeastSteps);
    size_t left = allowed;
    const bool clear = look_between(left);
    budget_ -= std::min(budget_, allowed - left);
    Work::add(static_cast<int64_t>(1 + allowed - left));
    for (const int32_t cluster : behind_) seen_[static_cast<size_t>(cluster)] = false;
    return clear;
  }

  // Merges the two of the last `can_merge` into the second.
  int32_t merge() {
    order_.remove(first_);
    std::sort(behind_.begin(), behind_.end(),
              [&](int32_t a, int32_t b) { return order_.is_before(a, b); });
    for (size_t i = behind_.size(); i-- > 0;) order_.move_behind(behind_[i], second_);
    WorkList& to = members_[static_cast<size_t>(second_)];
    WorkList& from = members_[static_cast<size_t>(first_)];
    for (const int32_t member : from) owner_[static_cast<size_t>(member)] = second_;
    to = merged(to, from);
    from.clear();
    return second_;
  }

 private:
  // The total number of search steps; enough for functions of thousands of nodes.
  static constexpr size_t kSteps = 2'000'000, kStepsPerNode = 100;
  static constexpr size_t kLeastSteps = 200;  // Per search, once the total is used up.

  // Finds the clusters that depend on the first and come before the second; false if the second
  // depends on one of them, or if it takes too many steps.
  bool look_between(size_t& left) {
    stack_ = {first_};
    while (!stack_.empty()) {
      const int32_t from = stack_.back();
      stack_.pop_back();
      for (const int32_t member : members(from)) {
        for (const int32_t node : next_[static_cast<size_t>(member)]) {
          if (left == 0) return false;
          --left;
          const int32_t to = owner(node);
          if (to == first_ || seen_[static_cast<size_t>(to)] || order_.is_before(second_, to))
            continue;
          if (to == second_) {
            if (from != first_) return false;
            continue;
          }
          seen_[static_cast<size_t>(to)] = true;
          behind_.push_back(to);
          stack_.push_back(to);
        }
      }
    }
    return true;
  }

  std::vector<WorkList> next_;
  std::vector<int32_t> owner_;
  std::vector<WorkList> members_;
  std::vector<bool> seen_;
  LabelledList order_;
  size_t budget_;
  int32_t first_ = 0, second_ = 0;
  std::vector<int32_t> behind_;
  std::vector<int32_t> stack_;  // Of the search.
};

// The kernel of a cluster.
struct Kernel {
  SmallVec<int32_t, 8> nodes;  // Its members and the free nodes they read, in order.
  SmallVec<Value, 2> results;
};

// Which kernels have loops within the limits, by form: each form is scheduled once. A long program
// tries many that never come again, so the table starts again where it is full.
class KernelFits {
 public:
  struct Fit {
    bool runs = false;
    std::vector<int32_t> loads;  // What it loads: positions in the outside values of the form.
  };
  KernelFits(const Graph& graph, Scheduler& scheduler, const GroupLimits& limits)
      : scheduler_(scheduler), limits_(limits), write_(graph) {}

  // Valid until the next call. `outside` gets the values that the kernel reads from elsewhere.
  const Fit& of(const Kernel& kernel, std::vector<Value>& outside) {
    if (words_ > kMostWords) clear();
    outside.clear();
    const auto words = write_.write(kernel.nodes, kernel.results, outside);
    const FormTable::Found form = forms_.find(words);
    if (!form.is_new) return fits_[form.number];
    words_ += words.size();
    return fits_.emplace_back(scheduled(kernel, outside));
  }

 private:
  Fit scheduled(const Kernel& kernel, const std::vector<Value>& outside) {
    const auto found = scheduler_.run(kernel.nodes, kernel.results, limits_);
    if (!found.has_value()) return {};
    Fit fit{.runs = true, .loads = {}};
    for (const Load& load : found->loads)
      fit.loads.push_back(static_cast<int32_t>(
          std::find(outside.begin(), outside.end(), load.value) - outside.begin()));
    return fit;
  }

  void clear() {
    forms_ = {};
    fits_.clear();
    words_ = 0;
  }

  static constexpr size_t kMostWords = size_t{1} << 20;

  Scheduler& scheduler_;
  const GroupLimits& limits_;
  FormWriter write_;
  FormTable forms_;
  std::vector<Fit> fits_;  // By form.
  size_t words_ = 0;       // Of all forms.
};

// Facts about nodes, by number; one table for the graph.
struct NodeTables {
  std::vector<bool> free;
  std::vector<Value>
      root;  // For a free node: the value behind its views that is not free, or none.
  std::vector<int32_t> work_of;  // Or -1.
  std::vector<bool> marked, placed;
  std::vector<Value> moved;   // The result of a group that replaces its first result, or none.
  std::vector<Value> inside;  // What stands for it in the group that is being made, or none.

  // Extends the tables after the graph has grown.
  void resize(size_t nodes) {
    free.resize(nodes);
    root.resize(nodes);
    work_of.resize(nodes, -1);
    marked.resize(nodes);
    placed.resize(nodes);
    moved.resize(nodes);
    inside.resize(nodes);
  }
};

class Fuser {
 public:
  Fuser(Graph& graph, RegionId region, const GroupLimits& limits, NodeTables& tables,
        Scheduler& scheduler, KernelFits& fits)
      : graph_(graph),
        region_(region),
        limits_(limits),
        nodes_(tables),
        scheduler_(scheduler),
        fits_(fits) {}

  // Finds what to join.
  Fusions::OfRegion run() {
    find_nodes();
    find_readers();
    ClusterOrder order(dependences());
    order_ = &order;
    kernels_.resize(works_.size());
    for (size_t i = 0; i < works_.size(); ++i) {
      const auto cluster = static_cast<int32_t>(i);
      if (is_kernel_op(node(works_[i]))) can_run({&cluster, 1}, kernels_[i]);
    }
    join_readers_with_writers();
    join_siblings();
    emit();
    return {works_.size(), std::move(joins_)};
  }

  // Repeats recorded fusions; returns false, and changes nothing, if that is impossible.
  bool run_again(const Fusions::OfRegion& known) {
    find_nodes();
    if (works_.size() != known.nodes) return false;
    find_readers();
    ClusterOrder order(dependences());
    order_ = &order;
    kernels_.resize(works_.size());
    for (const auto& [a, b] : known.joins) {
      const bool can = is_kernel_op(node(works_[static_cast<size_t>(a)])) &&
                       is_kernel_op(node(works_[static_cast<size_t>(b)])) &&
                       order.can_merge(order.owner(a), order.owner(b));
      if (!can) return false;
      order.merge();
    }
    for (const int32_t cluster : order.order()) {
      if (!is_kernel_op(node(works_[static_cast<size_t>(cluster)]))) continue;
      const WorkList& members = order.members(cluster);
      const bool runs = can_run(members, kernels_[static_cast<size_t>(cluster)]) != nullptr;
      if (!runs && members.size() > 1) return false;
    }
    emit();
    return true;
  }

 private:
  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }
  Region& region() { return graph_.regions[static_cast<size_t>(region_)]; }

  // ---- What there is

  // Numbers every node that is not free; the number is called its work.
  void find_nodes() {
    nodes_.resize(graph_.nodes.size());
    for (const int32_t number : region().nodes) {
      if (scheduler_.views().is_free_in_kernel(number)) {
        nodes_.free[static_cast<size_t>(number)] = true;
        find_root(number);
        continue;
      }
      nodes_.work_of[static_cast<size_t>(number)] = static_cast<int32_t>(works_.size());
      works_.push_back(number);
    }
  }

  void find_root(int32_t number) {
    const Node& view = node(number);
    if (view.inputs.empty()) return;
    const Value from = view.inputs[0];
    const auto before = static_cast<size_t>(from.node);
    nodes_.root[static_cast<size_t>(number)] = nodes_.free[before] ? nodes_.root[before] : from;
  }

  // Calls visit(root) with the value behind free nodes, if any; `value` itself if it is not free.
  template <class Visit>
  void visit_root(Value value, Visit visit) const {
    if (nodes_.free[static_cast<size_t>(value.node)])
      value = nodes_.root[static_cast<size_t>(value.node)];
    if (value.node >= 0) visit(value);
  }

  void find_readers() {
    readers_.resize(works_.size());
    escapes_.assign(works_.size(), false);
    is_given_.assign(works_.size(), false);
    is_forward_.assign(works_.size(), true);
    for (size_t i = 0; i < works_.size(); ++i) {
      is_forward_[i] = node(works_[i]).gradient_of == nullptr;
      for (const Value input : node(works_[i]).inputs) {
        visit_root(input, [&](Value root) {
          const int32_t work = nodes_.work_of[static_cast<size_t>(root.node)];
          if (work < 0) {
            outer_readers_.push_back({root, static_cast<int32_t>(i)});
            return;
          }
          is_forward_[i] = is_forward_[i] && is_forward_work(work);
          WorkList& list = readers_[static_cast<size_t>(work)];
          if (list.empty() || list.back() != static_cast<int32_t>(i))
            list.push_back(static_cast<int32_t>(i));
        });
      }
    }
    for (const Value result : region().results) {
      visit_root(result, [&](Value root) {
        const int32_t work = nodes_.work_of[static_cast<size_t>(root.node)];
        if (work >= 0) escapes_[static_cast<size_t>(work)] = true;
      });
      const int32_t work = nodes_.work_of[static_cast<size_t>(result.node)];
      if (work >= 0) is_given_[static_cast<size_t>(work)] = true;
    }
  }

  // Readers come after writers, and effects after each other.
  std::vector<WorkList> dependences() const {
    std::vector<WorkList> next = readers_;
    int32_t last = -1;
    for (size_t i = 0; i < works_.size(); ++i) {
      if (!has_effect(graph_, node(works_[i]))) continue;
      if (last >= 0) next[static_cast<size_t>(last)].push_back(static_cast<int32_t>(i));
      last = static_cast<int32_t>(i);
    }
    return next;
  }

  // ---- What can be one kernel

  void add_free(Value value, SmallVec<int32_t, 8>& nodes, bool with_ranges) {
    if (!nodes_.free[static_cast<size_t>(value.node)] ||
        nodes_.marked[static_cast<size_t>(value.node)])
      return;
    const Node& n = node(value.node);
    if (!with_ranges && n.inputs.empty() && n.op->family == Family::random) return;
    for (const Value input : n.inputs) add_free(input, nodes, with_ranges);
    nodes_.marked[static_cast<size_t>(value.node)] = true;
    nodes.push_back(value.node);
  }

  // The kernel with all this work, and how it fits; null if it has no loops.
  const KernelFits::Fit* fit(std::span<const int32_t> works, bool with_ranges, Kernel& kernel) {
    kernel = {};
    inside_.resize(works_.size());
    for (const int32_t work : works) inside_[static_cast<size_t>(work)] = true;
    for (const int32_t work : works) {
      const int32_t number = works_[static_cast<size_t>(work)];
      for (const Value input : node(number).inputs) add_free(input, kernel.nodes, with_ranges);
      kernel.nodes.push_back(number);
      const WorkList& readers = readers_[static_cast<size_t>(work)];
      const bool read_elsewhere = escapes_[static_cast<size_t>(work)] ||
                                  std::any_of(readers.begin(), readers.end(), [&](int32_t reader) {
                                    return !inside_[static_cast<size_t>(reader)];
                                  });
      if (read_elsewhere) kernel.results.push_back({number, 0});
    }
    for (const int32_t work : works) inside_[static_cast<size_t>(work)] = false;
    for (const int32_t number : kernel.nodes) nodes_.marked[static_cast<size_t>(number)] = false;
    if (kernel.results.empty()) return nullptr;
    const KernelFits::Fit& found = fits_.of(kernel, outside_);
    return found.runs ? &found : nullptr;
  }

  // Ranges are computed inside the kernel if its loops have an index for them, else loaded.
  const KernelFits::Fit* can_run(std::span<const int32_t> works, Kernel& kernel) {
    const KernelFits::Fit* found = fit(works, true, kernel);
    if (found == nullptr) found = fit(works, false, kernel);
    if (found == nullptr) kernel = {};
    return found;
  }

  bool is_kernel(int32_t cluster) const {
    return !kernels_[static_cast<size_t>(cluster)].nodes.empty();
  }

  // Of the members alone: a lower bound.
  int64_t exprs_of(int32_t cluster) {
    int64_t exprs = 0;
    for (const int32_t work : order_->members(cluster))
      exprs += scheduler_.cost(works_[static_cast<size_t>(work)]).exprs;
    return exprs;
  }

  // `shared`: a value that both read, in the same order, or none.
  bool join(int32_t a, int32_t b, Value shared = {}) {
    if (a == b || !is_kernel(a) || !is_kernel(b)) return false;
    if (exprs_of(a) + exprs_of(b) > limits_.exprs || !order_->can_merge(a, b)) return false;
    const WorkList works = merged(order_->members(a), order_->members(b));
    Kernel kernel;
    const KernelFits::Fit* const found = can_run(works, kernel);
    if (found == nullptr) return false;
    const auto reads = std::count_if(found->loads.begin(), found->loads.end(), [&](int32_t load) {
      return outside_[static_cast<size_t>(load)] == shared;
    });
    if (shared.node >= 0 && reads != 1) return false;
    if (keeps_more(a, b, works, kernel)) return false;
    joins_.emplace_back(order_->members(a)[0], order_->members(b)[0]);
    kernels_[static_cast<size_t>(order_->merge())] = std::move(kernel);
    return true;
  }

  // ---- What stays in memory

  bool is_forward_work(int32_t work) const { return is_forward_[static_cast<size_t>(work)]; }
  bool has_forward(int32_t cluster) const {
    const WorkList& works = order_->members(cluster);
    return std::any_of(works.begin(), works.end(),
                       [&](int32_t work) { return is_forward_work(work); });
  }

  // Calls visit(work) for every work that a cluster reads.
  template <class Visit>
  void for_each_read(std::span<const int32_t> works, Visit visit) const {
    for (const int32_t work : works) {
      for (const Value input : node(works_[static_cast<size_t>(work)]).inputs) {
        visit_root(input, [&](Value root) {
          const int32_t read = nodes_.work_of[static_cast<size_t>(root.node)];
          if (read >= 0) visit(read);
        });
      }
    }
  }

  // Whether a cluster belongs to the backward pass but reads only forward values, so that it could
  // run earlier.
  bool is_early_gradient(int32_t cluster) const {
    if (has_forward(cluster)) return false;
    bool early = true;
    for_each_read(order_->members(cluster), [&](int32_t read) {
      early &= is_forward_work(read) || order_->owner(read) == cluster;
    });
    return early;
  }

  // The live bytes after a kernel, placed at the last of its clusters: its results, and operands
  // that later kernels read.
  int64_t bytes_behind(std::span<const int32_t> works, const Kernel& kernel, int32_t last) const {
    int64_t bytes = 0;
    for (const Value result : kernel.results) bytes += known_bytes(graph_.type(result));
    std::vector<int32_t> reads;
    for_each_read(works, [&](int32_t read) { reads.push_back(read); });
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (const int32_t read : reads) {
      if (std::binary_search(works.begin(), works.end(), read)) continue;
      const WorkList& readers = readers_[static_cast<size_t>(read)];
      const bool read_later = std::any_of(readers.begin(), readers.end(), [&](int32_t reader) {
        return !std::binary_search(works.begin(), works.end(), reader) &&
               order_->is_before(last, order_->owner(reader));
      });
      if (read_later) bytes += known_bytes(node(works_[static_cast<size_t>(read)]).results[0]);
    }
    return bytes;
  }

  // Whether fusing both would compute in the forward pass what the backward pass can compute from
  // stored values, and so extend lifetimes.
  bool keeps_more(int32_t a, int32_t b, std::span<const int32_t> works, const Kernel& both) const {
    const bool a_early = is_early_gradient(a);
    if (a_early == is_early_gradient(b)) return false;
    const int32_t forward = a_early ? b : a;
    if (!has_forward(forward)) return false;
    const int64_t alone =
        bytes_behind(order_->members(forward), kernels_[static_cast<size_t>(forward)], forward);
    return bytes_behind(works, both, order_->is_before(a, b) ? b : a) > alone + alone / kLittle;
  }

  // ---- In order of bytes

  // Whether a cluster reads and computes only scalars.
  bool is_of_numbers(int32_t cluster) const {
    const auto is_number = [&](Value value) {
      const TensorType& type = graph_.type(value);
      return !type.shape.is_open() && known_bytes(type) <= kNumberBytes;
    };
    const WorkList& members = order_->members(cluster);
    return std::all_of(members.begin(), members.end(), [&](int32_t member) {
      const int32_t number = works_[static_cast<size_t>(member)];
      const auto& inputs = graph_.nodes[static_cast<size_t>(number)].inputs;
      return is_number({number, 0}) && std::all_of(inputs.begin(), inputs.end(), is_number);
    });
  }

  // A value with one reader vanishes: it is neither written nor read and needs no buffer, so it has
  // more weight. For other values one read is saved. So a value that the backward pass computes
  // from a stored one (such as a mask) is computed where it is used, and not stored.
  //
  // Scalars that several kernels read (such as a learning rate) are left alone: nothing would be
  // saved, and all the others would have to wait for the fused kernel's other operands.
  void join_readers_with_writers() {
    struct Edge {
      int64_t bytes;  // The bytes that fusing saves.
      int32_t writer, reader;
      bool is_gone;
    };
    std::vector<Edge> edges;
    for (size_t i = 0; i < works_.size(); ++i) {
      const auto writer = static_cast<int32_t>(i);
      if (!is_kernel(writer)) continue;
      const bool is_gone = readers_[i].size() == 1 && !is_given_[i];
      for (const int32_t reader : readers_[i]) {
        if (is_kernel(reader))
          edges.push_back({known_bytes(node(works_[i]).results[0]) * (is_gone ? kVanishing : 1),
                           writer, reader, is_gone});
      }
    }
    std::stable_sort(edges.begin(), edges.end(),
                     [](const Edge& a, const Edge& b) { return a.bytes > b.bytes; });
    // A pair that could not be fused may become possible after others are.
    for (int round = 0; round < kRounds && !edges.empty(); ++round) {
      const size_t before = edges.size();
      std::erase_if(edges, [&](const Edge& edge) {
        const int32_t writer = order_->owner(edge.writer), reader = order_->owner(edge.reader);
        if (writer == reader) return true;
        if (!edge.is_gone && is_of_numbers(writer) && !is_of_numbers(reader)) return false;
        return join(writer, reader);
      });
      if (edges.size() == before) break;
    }
  }

  int64_t written_bytes(int32_t cluster) const {
    int64_t bytes = 0;
    for (const Value result : kernels_[static_cast<size_t>(cluster)].results)
      bytes += known_bytes(graph_.type(result));
    return bytes;
  }

  // Kernels that read the same value. If both write much, fusing them would make both results live
  // at once, so they stay separate.
  void join_siblings() {
    std::vector<std::pair<Value, WorkList>> shared;
    for (size_t i = 0; i < works_.size(); ++i) {
      if (readers_[i].size() > 1) shared.push_back({{works_[i], 0}, readers_[i]});
    }
    std::stable_sort(
        outer_readers_.begin(), outer_readers_.end(), [](const auto& a, const auto& b) {
          return std::pair(a.first.node, a.first.result) < std::pair(b.first.node, b.first.result);
        });
    for (size_t i = 0; i < outer_readers_.size();) {
      WorkList readers;
      const Value value = outer_readers_[i].first;
      for (; i < outer_readers_.size() && outer_readers_[i].first == value; ++i)
        readers.push_back(outer_readers_[i].second);
      if (readers.size() > 1) shared.push_back({value, std::move(readers)});
    }
    std::stable_sort(shared.begin(), shared.end(), [&](const auto& a, const auto& b) {
      return known_bytes(graph_.type(a.first)) > known_bytes(graph_.type(b.first));
    });
    for (const auto& [value, readers] : shared) {
      const int64_t little = known_bytes(graph_.type(value)) / kLittle;
      for (size_t i = 0; i + 1 < readers.size(); ++i) {
        for (size_t k = i + 1; k < std::min(readers.size(), i + 1 + kNeighbours); ++k) {
          const int32_t a = order_->owner(readers[i]), b = order_->owner(readers[k]);
          if (a == b || !is_kernel(a) || !is_kernel(b)) continue;
          if (std::min(written_bytes(a), written_bytes(b)) <= little) join(a, b, value);
        }
      }
    }
  }

  // ---- The new region

  Value moved(Value value) const {
    const Value to = nodes_.moved[static_cast<size_t>(value.node)];
    return value.result != 0 || to.node < 0 ? value : to;
  }

  void emit() {
    Region old = std::move(region());
    region() = {};
    region().parameters = old.parameters;
    for (const int32_t cluster : order_->order()) {
      if (is_kernel(cluster)) {
        emit_group(kernels_[static_cast<size_t>(cluster)]);
        continue;
      }
      for (const int32_t work : order_->members(cluster)) {
        const int32_t number = works_[static_cast<size_t>(work)];
        place_inputs(number);
        region().nodes.push_back(number);
      }
    }
    for (Value& result : old.results) {
      place_free(result);
      result = moved(result);
    }
    region().results = std::move(old.results);
  }

  // Free nodes that are read outside groups are placed before their first reader.
  void place_free(Value value) {
    if (!nodes_.free[static_cast<size_t>(value.node)] ||
        nodes_.placed[static_cast<size_t>(value.node)])
      return;
    nodes_.placed[static_cast<size_t>(value.node)] = true;
    place_inputs(value.node);
    region().nodes.push_back(value.node);
  }
  void place_inputs(int32_t number) {
    for (size_t i = 0; i < node(number).inputs.size(); ++i) {
      const Value input = node(number).inputs[i];
      place_free(input);
      graph_.nodes[static_cast<size_t>(number)].inputs[i] = moved(input);
    }
  }

  void emit_group(const Kernel& kernel) {
    const RegionId inner = graph_.add_region();
    graph_.regions[static_cast<size_t>(inner)].nodes.reserve(kernel.nodes.size());
    std::vector<Value> read;  // The inputs before they were moved.
    Node group;
    group.op = &def_of(&ops::group);
    group.regions.push_back(inner);
    group.source = graph_.node(kernel.results[0]).source;
    for (const int32_t number : kernel.nodes) {
      Node copy = node(number);
      for (Value& input : copy.inputs) {
        const Value made = nodes_.inside[static_cast<size_t>(input.node)];
        input = made.node >= 0 ? made : handed_in(input, inner, read, group);
      }
      nodes_.inside[static_cast<size_t>(number)] = {graph_.add_node(inner, std::move(copy)), 0};
    }
    for (const Value result : kernel.results) {
      graph_.regions[static_cast<size_t>(inner)].results.push_back(
          nodes_.inside[static_cast<size_t>(result.node)]);
      group.results.push_back(graph_.type(result));
    }
    for (const int32_t number : kernel.nodes) nodes_.inside[static_cast<size_t>(number)] = {};
    const int32_t number = graph_.add_node(region_, std::move(group));
    for (size_t r = 0; r < kernel.results.size(); ++r)
      nodes_.moved[static_cast<size_t>(kernel.results[r].node)] = {number, static_cast<int16_t>(r)};
    nodes_.resize(graph_.nodes.size());
  }

  // The parameter for a value that a group reads from outside. `read` lists those it has.
  Value handed_in(Value input, RegionId inner, std::vector<Value>& read, Node& group) {
    const auto known = std::find(read.begin(), read.end(), input);
    if (known != read.end())
      return graph_.regions[static_cast<size_t>(inner)]
          .parameters[static_cast<size_t>(known - read.begin())];
    place_free(input);
    read.push_back(input);
    group.inputs.push_back(moved(input));
    return graph_.add_parameter(inner, graph_.type(input), graph_.node(input).source);
  }

  // The number of rounds over all edges.
  static constexpr int kRounds = 3;
  // A kernel that writes at most an eighth of what it reads "writes little".
  static constexpr int64_t kLittle = 8;
  // The number of readers of a value that are tried in pairs.
  static constexpr size_t kNeighbours = 4;

  Graph& graph_;
  const RegionId region_;
  const GroupLimits& limits_;
  NodeTables& nodes_;
  Scheduler& scheduler_;
  KernelFits& fits_;
  std::vector<Value> outside_;    // Read from elsewhere by the kernel that was fitted last.
  std::vector<int32_t> works_;    // Nodes.
  std::vector<bool> is_forward_;  // By work: part of the forward pass.
  std::vector<WorkList> readers_;
  std::vector<bool> escapes_;   // Results of the region, directly or through views.
  std::vector<bool> is_given_;  // Direct results of the region.
  std::vector<std::pair<Value, int32_t>> outer_readers_;
  std::vector<bool> inside_;  // By work.
  ClusterOrder* order_ = nullptr;
  std::vector<Kernel> kernels_;                     // By cluster; without nodes: not a kernel.
  std::vector<std::pair<int32_t, int32_t>> joins_;  // Works, one of each cluster.
};

struct Fusing {
  Fusing(Graph& graph, int64_t row_bytes)
      : limits{.row_bytes = row_bytes}, scheduler(graph), fits(graph, scheduler, limits) {}
  const GroupLimits limits;
  NodeTables tables;
  Scheduler scheduler;
  KernelFits fits;
  Fusions made;
  const Fusions* known = nullptr;
};

// The parts of a graph that fusing changes: it adds nodes and regions, changes the lists of regions
// and the inputs of nodes.
class GraphBefore {
 public:
  explicit GraphBefore(const Graph& graph) : regions_(graph.regions) {
    inputs_.reserve(graph.nodes.size());
    for (const Node& node : graph.nodes) inputs_.push_back(node.inputs);
  }
  void restore(Graph& graph) {
    graph.nodes.resize(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) graph.nodes[i].inputs = std::move(inputs_[i]);
    graph.regions = std::move(regions_);
  }

 private:
  std::vector<Region> regions_;
  std::vector<SmallVec<Value, 3>> inputs_;
};

// False if the recorded fusions do not apply.
bool fuse_region(Graph& graph, RegionId region, Fusing& fusing) {
  // By index, since the graph grows meanwhile.
  const std::vector<int32_t> nodes = graph.regions[static_cast<size_t>(region)].nodes;
  for (const int32_t number : nodes) {
    if (graph.nodes[static_cast<size_t>(number)].op->flow == Flow::group) continue;
    const SmallVec<RegionId, 2> inner = graph.nodes[static_cast<size_t>(number)].regions;
    for (const RegionId id : inner)
      if (!fuse_region(graph, id, fusing)) return false;
  }
  expand_rows(graph, region, fusing.limits.row_bytes);
  Fuser fuser(graph, region, fusing.limits, fusing.tables, fusing.scheduler, fusing.fits);
  std::vector<Fusions::OfRegion>& made = fusing.made.regions;
  if (fusing.known == nullptr) {
    made.push_back(fuser.run());
    return true;
  }
  if (made.size() == fusing.known->regions.size()) return false;
  made.push_back(fusing.known->regions[made.size()]);
  return fuser.run_again(made.back());
}

}  // namespace

void fuse(Graph& graph, int64_t cache_bytes, Fusions* fusions) {
  if (fusions != nullptr && !fusions->regions.empty()) {
    GraphBefore before(graph);
    Fusing fusing(graph, cache_bytes / 2);
    fusing.known = fusions;
    if (fuse_region(graph, Graph::kBody, fusing)) return;
    before.restore(graph);
  }
  Fusing fusing(graph, cache_bytes / 2);
  fuse_region(graph, Graph::kBody, fusing);
  if (fusions != nullptr && fusions->regions.empty()) *fusions = std::move(fusing.made);
}

}  // namespace tidemark::passes
