// Branches and maps: ranges of the one list of steps, and registers that move as a body is run
// again. Loops are in lower_loop.cc.
#include <algorithm>

#include "tidemark/compile/lowerer.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/program.h"

namespace tidemark::compile {
namespace {

int64_t bytes_of(const TensorType& type) { return type.shape.size() * size_of(type.dtype); }

}  // namespace

// The parameter shows what the outer value shows, and may not write there.
void Lowerer::hand_in(Value parameter, Value outer) {
  Seen& shown = seen(parameter);
  shown = {id(parameter), seen(outer).layout};
  if (is_constant(outer)) {
    constant_[static_cast<size_t>(id(parameter))] = constant_[static_cast<size_t>(root(outer))];
    return;
  }
  Memory lent = memory(memory_of(root(outer)));
  lent.writable = false;
  memory_of(id(parameter)) = new_memory(std::move(lent));
}

void Lowerer::emit_cond(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Value test = node.inputs[0];
  const int32_t literal = is_constant(test) ? materialise(test, node.source) : kNone;
  const run::Address chosen = literal < 0 ? address_of(test) : memory(literal).address;
  std::vector<int32_t> places;
  for (size_t r = 0; r < node.results.size(); ++r)
    places.push_back(choose(node, {number, static_cast<int16_t>(r)}, scope));

  const auto index = static_cast<size_t>(now());
  run::Step branch;
  branch.kind = run::Step::Kind::branch;
  branch.first_operand = static_cast<int32_t>(program_->addresses.size());
  branch.operands = 1;
  branch.source = node.source;
  branch.name = "cond";
  program_->addresses.push_back(chosen);
  program_->steps.push_back(std::move(branch));
  for (size_t side = 0; side < 2; ++side) {
    const Region& region = graph_.regions[static_cast<size_t>(node.regions[side])];
    for (size_t i = 0; i < region.parameters.size(); ++i)
      hand_in(region.parameters[i], node.inputs[1 + i]);
    std::vector<Destination> destinations;
    for (const int32_t place : places) destinations.push_back({.spare = place});
    Scope inner{.region = node.regions[side], .destinations = destinations};
    emit_region(inner);
    (side == 0 ? program_->steps[index].middle : program_->steps[index].end) = now();
  }
  if (literal >= 0) extend_to_now(literal);
}

void Lowerer::emit_map(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Source at = node.source;
  Attrs::Reader read = node.attrs.read();
  const auto slices = static_cast<size_t>(read.integer());
  run::Map map;
  map.trips = read.integer();
  map.alive = std::clamp<int64_t>(read.integer(), 1, std::max<int64_t>(1, map.trips));
  const Region& body = graph_.regions[static_cast<size_t>(node.regions[0])];
  std::vector<int32_t> kept;
  for (size_t k = 0; k < slices; ++k) {
    const Value array = node.inputs[k];
    const bool dense = !is_constant(array) && seen(array).layout.is_contiguous();
    if (!dense) kept.push_back(materialise(array, at));
    const TensorType& type = graph_.type(body.parameters[k]);
    map.walks.push_back({.reg = new_register(),
                         .base = dense ? address_of(array) : memory(kept.back()).address,
                         .stride = bytes_of(type)});
    show_dense(body.parameters[k]);
    memory_of(id(body.parameters[k])) =
        new_memory({.address = {map.walks.back().reg, run::kNoBuffer, 0},
                    .bytes = granted_bytes(bytes_of(type)),
                    .writable = false,
                    .buffers = {}});
  }
  for (size_t i = slices; i < body.parameters.size(); ++i)
    hand_in(body.parameters[i], node.inputs[i]);
  std::vector<Destination> destinations;
  for (size_t r = 0; r < node.results.size(); ++r) {
    const int32_t place = choose(node, {number, static_cast<int16_t>(r)}, scope);
    kept.push_back(place);
    const TensorType& type = graph_.type(body.results[r]);
    map.walks.push_back(
        {.reg = new_register(), .base = memory(place).address, .stride = bytes_of(type)});
    destinations.push_back(
        {.spare = new_memory({.address = {map.walks.back().reg, run::kNoBuffer, 0},
                              .bytes = granted_bytes(bytes_of(type)),
                              .writable = false,
                              .buffers = memory(place).buffers})});
  }
  const int32_t arenas = new_buffer({DType::u8, {0}}, 0, ByteClass::temporaries, at, "map bodies");
  kept.push_back(arenas);
  map.arenas = memory(arenas).address;
  map.arena_reg = new_register();

  const auto index = static_cast<size_t>(now());
  run::Step step;
  step.kind = run::Step::Kind::map;
  step.control = static_cast<int32_t>(program_->maps.size());
  step.source = at;
  step.name = "map";
  step.middle = now() + 1;
  program_->steps.push_back(std::move(step));
  program_->maps.push_back(map);
  const int32_t outer_arena = std::exchange(arena_, static_cast<int32_t>(program_->maps.size()));
  const int32_t outer_reg = std::exchange(arena_reg_, map.arena_reg);
  program_->maps.back().arena = arena_;
  {
    // Bodies that are under way together have one thread each.
    const device::ThreadsScope threads(map.alive > 1 ? 1 : num_threads());
    Scope inner{.region = node.regions[0], .destinations = destinations};
    emit_region(inner);
  }
  arena_ = outer_arena;
  arena_reg_ = outer_reg;
  program_->steps[index].end = now();
  for (const int32_t number_kept : kept) extend_to_now(number_kept);
}

}  // namespace tidemark::compile
