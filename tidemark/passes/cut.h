// Cut: the set of nodes around a large value that can be computed part by part along one axis.
#pragma once

#include <map>
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

  RegionId region;
  std::vector<bool> is_result;  // By node.
  std::vector<bool>
      is_forward;  // By node: part of the forward pass, i.e. not computed from a gradient.

 private:
  std::vector<std::vector<Read>> readers_;
};

// Whether a node is a contraction whose result is much larger than its operands.
bool is_table(const Graph& graph, const Node& node);

class Cut {
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

  int64_t units() const { return where_.units; }
  int64_t table_bytes() const;
  int64_t axis() const { return where_.axis; }
  int32_t table() const { return where_.table; }
  const std::map<int32_t, Slicing>& members() const { return members_; }
  // Whether a node is computed part by part. Other members are views of outside values.
  bool computes(int32_t node) const;
  bool depends(int32_t node) const { return depends_[static_cast<size_t>(node)]; }
  bool is_large(Value value) const;
  // Whether any result of a node is.
  bool gives_large(int32_t node) const;
  bool is_read_outside(int32_t node) const;
  // The operand's producer, if it is a member that provides the parts the reader needs.
  bool is_made_inside(const Slicing& reader, size_t operand, Value value) const;

 private:
  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }
  bool add(int32_t number, const std::optional<Slicing>& slicing);
  bool add_around(int32_t number);
  bool is_shown_from_outside(Value value) const;
  bool close();
  bool add_between(int32_t number);
  bool is_consistent() const;
  void find_dependent();

  const Graph& graph_;
  const RegionFacts& facts_;
  const Where where_;
  int64_t table_size_ = 0;
  std::map<int32_t, Slicing> members_;
  std::vector<int32_t> to_visit_;
  std::vector<bool> computes_, depends_;  // By node.
};

}  // namespace tidemark::passes
