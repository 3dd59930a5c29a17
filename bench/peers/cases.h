// The cases that are compared with peers: one function each, in the table of cases.cc. The files
// *_cases.py implement the same cases in each peer.
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
