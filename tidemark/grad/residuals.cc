#include "tidemark/grad/residuals.h"

#include <algorithm>

namespace tidemark::detail {

passes::Residuals residuals_of(const Graph& graph, int32_t forward_end) {
  std::vector<bool> is_forward(graph.nodes.size());
  std::fill_n(is_forward.begin(),
              std::min<size_t>(is_forward.size(), static_cast<size_t>(forward_end)), true);
  return {graph, Graph::kBody, std::move(is_forward)};
}

}  // namespace tidemark::detail
