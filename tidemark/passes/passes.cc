#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

constexpr Pass kPasses[] = {{"simplify", simplify}, {"merge", merge}, {"remove_dead", remove_dead}};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find(std::string_view name) {
  for (const Pass& pass : kPasses)
    if (pass.name == name) return &pass;
  return nullptr;
}

}  // namespace tidemark::passes
