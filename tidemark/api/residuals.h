// What a gradient keeps of the way to the results it is of. Internal to api/.
#pragma once

#include <set>
#include <vector>

#include "tidemark/api/differentiate.h"

namespace tidemark::detail {

// Of a graph whose results are gradients and whose nodes below `forward_end` are the way to what
// they are of: the values of that way that the gradient takes. It makes the rest again: views,
// literals and draws always, and what is computed by element from what is there anyway.
class Residuals {
 public:
  Residuals(const Graph& graph, int32_t forward_end);
  const std::vector<Value>& list() const { return list_; }

 private:
  void need(Value value);
  void drop_what_others_give();
  bool is_free(Value value, int depth) const;

  const Graph& graph_;
  int32_t end_;
  std::set<int32_t> parameters_;
  std::vector<Value> list_;
};

// What the gradient of a `call` that is run again would keep of it if it were not, and what it
// keeps of its inputs only to run it again. `gradients` says of which results there are any,
// `wanted` by which inputs.
RecomputeMark mark_of(const Graph& graph, const Node& call, const Tensors& gradients,
                      const std::vector<bool>& wanted, Source at);

}  // namespace tidemark::detail
