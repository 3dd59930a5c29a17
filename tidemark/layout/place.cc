// Assigns offsets to the buffers of all arenas, innermost arenas first.
#include "tidemark/device/memory.h"
#include "tidemark/layout/builder.h"
#include "tidemark/plan/plan.h"

namespace tidemark::compile {
namespace {

// Keeps the relative positions of the known placement if lifetimes are equal; places from scratch
// if they are not, or if a small program would waste memory.
plan::Placement place_arena(const plan::Problem& problem, int64_t load_bytes,
                            std::optional<int64_t> enough, Placements::Arena& known) {
  constexpr double most_waste = 1.02;
  constexpr size_t small = 2'000;
  const bool lives_alike = std::equal(
      problem.buffers.begin(), problem.buffers.end(), known.lifetimes.begin(),
      known.lifetimes.end(), [](const plan::Buffer& buffer, const plan::Lifetime& lifetime) {
        return buffer.lifetime.begin == lifetime.begin && buffer.lifetime.end == lifetime.end;
      });
  std::vector<int64_t> sizes;
  sizes.reserve(problem.buffers.size());
  for (const plan::Buffer& buffer : problem.buffers) sizes.push_back(buffer.size_bytes);
  const auto is_good = [&](const plan::Placement& placed) {
    return problem.buffers.size() > small || static_cast<double>(placed.tidemark_bytes) <=
                                                 most_waste * static_cast<double>(load_bytes);
  };
  if (lives_alike && !known.relation.starts.empty()) {
    plan::Placement moved = plan::resized(known.relation, sizes);
    if (is_good(moved)) return moved;
  }
  plan::Limits limits{.nodes = 20'000};
  if (enough) {
    limits.capacity_bytes = std::max<int64_t>(1, *enough);
    limits.nodes = load_bytes > *enough ? 1 : 2'000;
  }
  plan::Placement placed = plan::place(problem, limits).placement;
  if (lives_alike && !known.relation.starts.empty()) return placed;
  known.relation = plan::below_relation(problem, placed);
  known.lifetimes.clear();
  for (const plan::Buffer& buffer : problem.buffers) known.lifetimes.push_back(buffer.lifetime);
  // Placed by the relation, so that the same sizes get the same offsets later.
  plan::Placement moved = plan::resized(known.relation, sizes);
  return is_good(moved) ? moved : placed;
}

}  // namespace

LayoutBuilder::ArenaSize LayoutBuilder::place_those(
    const std::function<bool(const run::Buffer&)>& is_there, size_t arena, bool is_program_arena) {
  plan::Problem problem;
  std::vector<size_t> which;
  for (size_t i = 0; i < program_->buffers.size(); ++i) {
    const run::Buffer& buffer = program_->buffers[i];
    if (!is_there(buffer)) continue;
    which.push_back(i);
    problem.buffers.push_back(
        {.lifetime = {buffer.lower, buffer.upper}, .size_bytes = buffer.bytes});
  }
  const int64_t load_bytes = plan::load_bytes(problem);
  std::optional<int64_t> enough;
  if (is_program_arena && placements_.enough_bytes)
    enough = *placements_.enough_bytes - program_->result_bytes(program_->home);
  const plan::Placement placed =
      place_arena(problem, load_bytes, enough, placements_.arenas[arena]);
  for (size_t i = 0; i < which.size(); ++i) program_->offsets[which[i]] = placed.offsets[i];
  return {placed.tidemark_bytes, load_bytes};
}

// A map's arenas are one buffer of the arena around it, in each memory: innermost first. Placements
// are numbered by arena, then by memory.
void LayoutBuilder::place_arenas() {
  const auto arenas = static_cast<int32_t>(program_->maps.size() + 1);
  const size_t memories = program_->device_arenas.size() + 1;
  const size_t all = static_cast<size_t>(arenas) * memories;
  if (placements_.arenas.size() < all) placements_.arenas.resize(all);
  program_->offsets.assign(program_->buffers.size(), 0);
  const auto place = [&](int32_t arena, int32_t memory, size_t number) {
    return place_those(
        [&](const run::Buffer& buffer) { return buffer.arena == arena && buffer.memory == memory; },
        static_cast<size_t>(arena) * memories + number, arena == 0 && memory == program_->home);
  };
  for (int32_t arena = arenas - 1; arena > 0; --arena) {
    run::Map& map = program_->maps[static_cast<size_t>(arena - 1)];
    for (size_t i = 0; i < map.arenas.size(); ++i) {
      run::Map::BodyArena& body = map.arenas[i];
      body.bytes = place(arena, body.memory, i).tidemark_bytes;
      run::Buffer& bodies = program_->buffers[static_cast<size_t>(body.arenas.buffer)];
      bodies.bytes = body.bytes * map.alive;
      bodies.shape = {bodies.bytes};
    }
  }
  for (size_t i = 0; i < program_->device_arenas.size(); ++i) {
    run::DeviceArena& arena = program_->device_arenas[i];
    const ArenaSize placed = place(0, arena.memory, 1 + i);
    arena.bytes = placed.tidemark_bytes;
    arena.load_bytes = placed.load_bytes;
  }
  const ArenaSize placed = place(0, device::kHostMemory, 0);
  program_->arena_bytes = placed.tidemark_bytes;
  program_->load_bytes = placed.load_bytes;
}

}  // namespace tidemark::compile
