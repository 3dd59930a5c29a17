// Graph to graph, one file and one function each. passes.cc has the list, in the order they run.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// Puts the nodes of their regions in the place of `call` nodes.
void inline_calls(Graph& graph);

// Makes views that repeat elements, and literals, inside the regions that capture them.
void sink_views(Graph& graph);

// Gives the attributes of the constant that a pointwise node makes of constants. Kernels do it:
// whoever knows them hands this in, so that a folded number has the bits that it has when computed.
using Compute = std::function<Attrs(const Node& node, std::span<const Node* const> operands)>;

// Makes a constant of what depends on constants alone, where it is one number: larger ones stay
// computed, and take no bytes of the program. Without `compute` nothing is folded.
void fold(Graph& graph, const Compute& compute);

// Puts in place of a node what gives the same bits for less: composed views, products with 1,
// selections whose condition is known. Only rewrites that are exact for all inputs, NaN,
// infinities and -0 included. What is no longer read stays; `remove_dead` drops it.
void simplify(Graph& graph);

// Makes one node of those in a region that compute the same: same op, attributes, inputs and types.
// Nodes with regions and effects stay apart.
void merge(Graph& graph);

// Whether a node does something besides giving results, itself or in a region.
bool has_effect(const Graph& graph, const Node& node);

// Of a value; 0 where a size is open.
int64_t known_bytes(const TensorType& type);

// Drops nodes nobody reads, inside regions too; effects stay.
void remove_dead(Graph& graph);

// Takes off nodes of control flow what nobody wants: unread results, carries that only serve
// themselves, inputs that no region reads. Drops dead nodes too.
void trim(Graph& graph);

// Puts nodes that can share loops into `group` nodes, each of which becomes one kernel; regions of
// control flow too, each by itself. `cache_bytes` is a core's own cache (the second): rows that
// several sweeps go over are to stay in half of it.
//
// There is one rule and no list of patterns: of every value that one kernel writes and another
// reads, the largest first, the two become one where `schedule.h` finds loops for both and no cycle
// arises; then those that read the same value, where one of them writes little. So what is computed
// is computed as often as before, and written and read less.
//
// `fusions`, if any, keeps what was joined: the same graph at other sizes is then joined the same
// way, which takes a fraction of the time, unless that gives no loops there.
struct Fusions {
  // Of each region, in the order they are fused: how many nodes there are, and which of them were
  // joined, a pair for each join.
  struct OfRegion {
    size_t nodes = 0;
    std::vector<std::pair<int32_t, int32_t>> joins;
  };
  std::vector<OfRegion> regions;
};
void fuse(Graph& graph, int64_t cache_bytes, Fusions* fusions = nullptr);

// Makes again, for gradients, what takes a few operations by element from values that they read
// anyway, so that it is not kept until then. Reads no more memory than the values did.
void recompute(Graph& graph);

// Computes what is around a large table part by part along one axis, so that the table never
// exists: a map, or a loop where sums go over the axis. Where a gradient reads a table of the way
// there, each makes its own, if that is little work. Only where all sizes are known.
void split(Graph& graph);

// Adds a product straight to the sum that a loop carries, as of the gradients of weights, where no
// rounding changes. The product itself is never written then.
void accumulate(Graph& graph);

// Whether a node may throw when it runs: prints, checks, indices out of range.
bool can_fail(const Graph& graph, const Node& node);
// The same of each node of a region, which are in an order they can run in, where all of it is
// known: an index that was looked at before is in range.
std::vector<bool> fallible_nodes(const Graph& graph, const Region& region);

// Puts the nodes of every region in an order in which few bytes are alive at once. `updates` says
// of each result which parameter it is the new value of, if any: Variables, which are written after
// all that may fail, where their values allow it. `scratch` says how many bytes a node needs
// besides while it runs. `needed` says how many bytes the whole graph needs in the order it has: a
// small graph never gets one that needs more.
using Scratch = std::function<int64_t(const Graph& graph, const Node& node)>;
using BytesNeeded = std::function<int64_t(const Graph& graph)>;
void order(Graph& graph, std::span<const int32_t> updates = {}, const Scratch& scratch = {},
           const BytesNeeded& needed = {});

// What passes ask of the machine that will run the graph; compile/pipeline.h has this one's. The
// cache is a usual one where nobody says otherwise.
struct Machine {
  int64_t cache_bytes = int64_t{1} << 20;
  Compute compute = {};
  std::function<Scratch(const Graph& graph)> scratch_in = {};  // See `order`.
};

// What they ask of the program; layout/layout.h has that of an interface.
struct PassOptions {
  bool fuse = true;                   // False: every op a step of its own.
  Fusions* fusions = nullptr;         // Of the same graph at other sizes; see `fuse`.
  std::vector<int32_t> updates = {};  // See `order`.
  BytesNeeded needed = {};            // See `order`.
};

struct Pass {
  std::string_view name;
  void (*run)(Graph& graph, const Machine& machine, const PassOptions& options) = nullptr;
  bool fuses = false;  // Left out where ops stay apart.
};

// In the order in which they run.
std::span<const Pass> all_passes();
// Null where there is none of this name.
const Pass* find(std::string_view name);

}  // namespace tidemark::passes
