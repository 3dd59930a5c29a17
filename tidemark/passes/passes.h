// The passes: from graph to graph, one file and one function each. passes.cc has the list, in
// execution order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// Replaces `call` nodes by the nodes of their regions.
void inline_calls(Graph& graph);

// Replaces complex values by pairs of reals on one more axis, so that no other pass knows complex
// numbers. Parameters and results of the function keep their types, as do operands of prints: views
// lie between.
void use_pairs(Graph& graph);

// Recreates broadcasts and literals inside the regions that capture them.
void sink_views(Graph& graph);

// Computes the attributes of the constant that a pointwise node of constants equals. The compiler
// provides it and uses the kernels, so that a folded number has the same bits as a computed one.
using Compute = std::function<Attrs(const Node& node, std::span<const Node* const> operands)>;

// Constant folding, for values of one number: larger ones stay computed and take no memory of the
// program. Without `compute` nothing is folded.
void fold(Graph& graph, const Compute& compute);

// Replaces sums of padded parts that do not overlap, such as the gradient of an array by slices of
// it, by concatenation: one array of the full size instead of one for each part.
void join_pads(Graph& graph);

// Replaces a node by a cheaper one with the same bits: composed views, products with 1, selections
// whose condition is known. Only rewrites that are exact for all inputs, including NaN, infinities
// and -0. Nodes that become unused stay until `remove_dead`.
void simplify(Graph& graph);

// Common subexpression elimination: merges nodes of a region with the same op, attributes, inputs
// and types. Nodes with regions or effects are not merged.
void merge(Graph& graph);

// Whether a node has a side effect, itself or in a region.
bool has_effect(const Graph& graph, const Node& node);

// The bytes of a value; 0 if a size is open.
int64_t known_bytes(const TensorType& type);

// Drops unused nodes, inside regions too; effects stay.
void remove_dead(Graph& graph);

// Removes unused results, carries and captures of control-flow nodes: a carry is unused if only
// itself reads it. Drops dead nodes too.
void trim(Graph& graph);

// Fusion: puts nodes that can share loops into `group` nodes, each of which becomes one kernel.
// Regions of control flow are fused separately. `cache_bytes` is the size of a core's L2 cache:
// rows that several sweeps read should fit into half of it.
//
// There is one rule and no list of patterns. For every value that one kernel writes and another
// reads, largest first, the two are fused if `schedule.h` finds loops for both and no cycle arises;
// then kernels that read the same value are fused, if one of them writes little. No value is
// computed more often than before, and fewer bytes are written and read.
//
// `fusions`, if given, records the decisions: the same graph at other sizes is then fused in the
// same way, which takes a fraction of the time, unless that is impossible there.
struct Fusions {
  // For each region, in the order of fusion: the number of nodes, and the pairs of nodes that were
  // fused.
  struct OfRegion {
    size_t nodes = 0;
    std::vector<std::pair<int32_t, int32_t>> joins;
  };
  std::vector<OfRegion> regions;
};
void fuse(Graph& graph, int64_t cache_bytes, Fusions* fusions = nullptr);

// Rematerializes, for gradients, values that are a few elementwise operations away from values that
// the gradients read anyway, so that they need not be kept. Reads no more memory than the values
// would.
void recompute(Graph& graph);

// Computes the nodes around a large table part by part along one axis, so that the whole table
// never exists: as a map, or as a loop if sums go over the axis. If a gradient reads a table of the
// forward pass, it computes its own copy, if that is cheap. Requires all sizes to be known.
struct SplitOptions {
  int64_t table_bytes = int64_t{1} << 20;   // The smallest table that is worth it.
  int64_t part_bytes = int64_t{512} << 10;  // Of a part of it, if the bits allow.
};
void split(Graph& graph, const SplitOptions& options = {});

// Computes the forward pass and its gradients for a part of the batch at a time, so that the
// activations of only one part exist at once; gradients are added up in place. Does nothing if that
// is not worth it. Requires all sizes to be known.
struct MicroBatches {
  // The share of the forward pass, from its beginning, that is left as it is, with its gradients:
  // the sums that a loop carries take bytes too.
  double skipped = 0;
  struct Made {
    int64_t parts = 0;   // 0 if nothing was done.
    size_t skipped = 0;  // Contractions of the forward pass.
  };
  Made* made = nullptr;  // Gets what was made, if given.
};
MicroBatches::Made micro_batches(Graph& graph, const MicroBatches& options = {});

// Accumulates a product directly into the sum that a loop carries, such as gradients of weights, if
// no rounding changes. The product itself is then never stored.
void accumulate(Graph& graph);

// Whether a node may throw at run time: prints, checks, indices.
bool can_fail(const Graph& graph, const Node& node);
// The same for each node of a region, whose nodes are in topological order: an index that an
// earlier node has checked is in range.
std::vector<bool> fallible_nodes(const Graph& graph, const Region& region);

// Reorders the nodes of every region to reduce the peak of live bytes. `updates` maps each result
// to the parameter (a Variable) whose new value it is, if any: Variables are written after
// everything that may fail, as far as dependencies allow.
using Scratch = std::function<int64_t(const Graph& graph, const Node& node)>;
using BytesNeeded = std::function<int64_t(const Graph& graph)>;
struct OrderOptions {
  Scratch scratch = {};  // The workspace of a node.
  // The bytes that the whole graph needs in the order it has: a small graph never gets an order
  // that needs more.
  BytesNeeded needed = {};
  // Among orders of the same peak, the one with the fewest bytes in use over time: a budget below
  // the peak has other steps that matter.
  bool frees_early = false;
  // Takes this order of the body whatever its peak: one that is worse may become the best once
  // values are dropped.
  enum class Only : uint8_t { best, greedy, depth_first, depth_first_from_last } only = Only::best;
};
void order(Graph& graph, std::span<const int32_t> updates = {}, const OrderOptions& options = {});

// Properties of the target machine that passes need; compile/pipeline.h has those of this one. The
// default cache size is a typical one.
struct Machine {
  int64_t cache_bytes = int64_t{1} << 20;
  Compute compute = {};
  std::function<Scratch(const Graph& graph)> scratch_in = {};  // See `order`.
};

// Properties of the program that passes need; layout/layout.h has those of an interface.
struct PassOptions {
  bool fuse = true;                                // False: every op is a separate step.
  Fusions* fusions = nullptr;                      // Of the same graph at other sizes; see `fuse`.
  std::vector<int32_t> updates = {};               // See `order`.
  BytesNeeded needed = {};                         // See `order`.
  bool frees_early = false;                        // See `order`.
  std::optional<MicroBatches> micro_batches = {};  // Nothing: the batch stays whole.
  std::optional<SplitOptions> split = SplitOptions();  // Nothing: tables stay whole.
};

struct Pass {
  std::string_view name;
  void (*run)(Graph& graph, const Machine& machine, const PassOptions& options) = nullptr;
  bool fuses = false;  // Skipped if ops are not fused.
};

// In execution order.
std::span<const Pass> all_passes();
// Null if there is none of this name.
const Pass* find(std::string_view name);

}  // namespace tidemark::passes
