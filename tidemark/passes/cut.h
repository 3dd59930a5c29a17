// Cut: the set of nodes around a large value that can be computed part by part along one axis.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "tidemark/ir/graph.h"
#include "tidemark/passes/slicing.h"

namespace tidemark::passes {

// Facts about a region, computed once.
struct RegionFacts {
  RegionFacts(const Graph& graph, RegionId region);

  struct Read {
    int32_t node = -1;
    size_t operand = 0;
  };
  const std::vector<Read>& readers(int32_t node) const {
    return readers_[static_cast<size_t>(node)];
  }
  // In the list of the region.
  size_t position(int32_t node) const { return position_[static_cast<size_t>(node)]; }

  RegionId region;
  std::vector<bool> is_result;  // By node.
  std::vector<bool>
      is_forward;  // By node: part of the forward pass, i.e. not computed from a gradient.

 private:
  std::vector<std::vector<Read>> readers_;
  std::vector<size_t> position_;
};

// Whether a node is a contraction whose result is much larger than its operands.
bool is_table(const Graph& graph, const Node& node);

// The slicing of each member of a set of nodes.
class Members {
 public:
  explicit Members(size_t nodes) : place_(nodes, -1) { list_.reserve(kUsual); }

  // Nodes that were added since are no members.
  bool contains(int32_t node) const {
    return static_cast<size_t>(node) < place_.size() && place_[static_cast<size_t>(node)] >= 0;
  }
  const Slicing& at(int32_t node) const {
    return list_[static_cast<size_t>(place_[static_cast<size_t>(node)])].second;
  }
  // A node that is a member keeps the slicing it has.
  void add(int32_t node, const Slicing& slicing) {
    if (contains(node)) return;
    place_[static_cast<size_t>(node)] = static_cast<int32_t>(list_.size());
    list_.emplace_back(node, slicing);
  }
  size_t size() const { return list_.size(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  static constexpr size_t kUsual = 64;

  std::vector<int32_t> place_;  // By node: its index in the list, or -1.
  std::vector<std::pair<int32_t, Slicing>> list_;
};

// Nodes of a region that are computed part by part along one axis, which is cut into units.
class CutSet {
 public:
  const Members& members() const { return members_; }
  int64_t units() const { return units_; }
  // Whether a node is computed part by part. Other members are views of outside values.
  bool computes(int32_t node) const { return computes_[static_cast<size_t>(node)] != 0; }
  // Whether it is no member and depends on members that compute; for nodes before the last member.
  bool depends(int32_t node) const { return depends_[static_cast<size_t>(node)] != 0; }
  bool is_read_outside(int32_t node) const;
  // The operand's producer, if it is a member that provides the parts the reader needs.
  bool is_made_inside(const Slicing& reader, size_t operand, Value value) const;
  // Whether sums over parts of this many units have the bits of the whole sum.
  bool adds_up(int32_t node, const Slicing& slicing, int64_t units) const;

 protected:
  CutSet(const Graph& graph, const RegionFacts& facts, int64_t units)
      : graph_(graph), facts_(facts), units_(units), members_(graph.nodes.size()) {}

  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }

  const Graph& graph_;
  const RegionFacts& facts_;
  const int64_t units_;
  Members members_;
  std::vector<uint8_t> computes_, depends_;  // By node: flags.
};

// The set around a table: it grows until no large value is read outside it.
class Cut : public CutSet {
 public:
  // The cut along an axis of the result of `table`, in this many units. With `forward_only`, reads
  // by gradients are ignored. With `joins_views`, nodes that read a large view of an outside value
  // join if possible, since their results may be large.
  struct Where {
    int32_t table = -1;
    int64_t axis = 0, units = 1;
    bool forward_only = false;
    bool joins_views = true;
  };
  Cut(const Graph& graph, const RegionFacts& facts, const Where& where);

  // Whether the set is valid: no large value is read outside it, and no input of it depends on it.
  bool grow();

  int64_t axis() const { return where_.axis; }
  int32_t table() const { return where_.table; }
  // Whether `joins_views` made a difference, or could have.
  bool has_met_views() const { return has_met_views_; }
  bool is_large(Value value) const;
  // Whether any result of a node is.
  bool gives_large(int32_t node) const;

 private:
  bool add(int32_t number, const std::optional<Slicing>& slicing);
  bool add_around(int32_t number);
  bool is_shown_from_outside(Value value) const;
  bool close();
  bool add_between(int32_t number);
  bool is_consistent() const;
  void find_dependent();
  // The nodes of the region from the first member to the last.
  std::span<const int32_t> stretch() const;

  const Where where_;
  int64_t table_size_ = 0;
  std::vector<int32_t> to_visit_;
  size_t first_, last_;  // The positions of the first member and the last.
  bool has_met_views_ = false;
};

}  // namespace tidemark::passes
