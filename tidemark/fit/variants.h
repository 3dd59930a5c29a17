// The variants that a frontier chooses from: each alternative in all orders that are worth a
// search.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tidemark/fit/variant.h"

namespace tidemark::fit {

// A graph that computes the results, optimised and ordered.
struct Alternative {
  std::shared_ptr<const Graph> graph;
  std::string change = {};  // How it differs from the usual one: "loops keep 23 states".
};

using VariantList = std::vector<std::unique_ptr<Variant>>;

// The first is the first alternative as it is. The interface must outlive the variants.
VariantList variants_of(std::vector<Alternative> alternatives, const compile::Interface& interface);

// The least bytes that any program of these variants could need.
int64_t least_bytes(const VariantList& variants);

}  // namespace tidemark::fit
