// What is measured beside the peers: one function a case, in the table of cases.cc. The files
// *_cases.py say the same in each peer's words.
#pragma once

#include <string_view>
#include <vector>

#include "bench/prepared.h"

namespace tidemark::bench {

struct PeerCase {
  std::string_view name;
  Prepared (*prepare)();
};

const std::vector<PeerCase>& peer_cases();

}  // namespace tidemark::bench
