// What is measured beside the peers: one function a case, in the table of cases.cc. The files
// *_cases.py say the same in each peer's words.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <tidemark/tidemark.h>

namespace tidemark::bench {

// A case with its inputs made and nothing of it run yet.
struct Prepared {
  std::function<std::vector<Tensor>()> call;
  std::function<int64_t()> planned_bytes = {};  // Empty where nothing is planned: eager code.
};

struct PeerCase {
  std::string_view name;
  Prepared (*prepare)();
};

const std::vector<PeerCase>& peer_cases();

}  // namespace tidemark::bench
