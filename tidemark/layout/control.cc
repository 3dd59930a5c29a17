// Branches and maps: ranges of the program's list of steps, and registers that advance from trip to
// trip. Loops are in loop.cc.
#include <algorithm>
#include <map>
#include <set>

#include "tidemark/compile/group.h"
#include "tidemark/compile/work.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/memory.h"
#include "tidemark/layout/builder.h"
#include "tidemark/passes/passes.h"

namespace tidemark::compile {
// The parameter aliases the outer value, which is read-only inside.
void LayoutBuilder::hand_in(Value parameter, Value outer) {
  ValueView& shown = view_of(parameter);
  shown = {id(parameter), view_of(outer).layout};
  if (is_constant(outer)) {
    constant_[static_cast<size_t>(id(parameter))] = constant_[static_cast<size_t>(root(outer))];
    return;
  }
  Memory lent = memory(memory_of(root(outer)));
  lent.writable = false;
  placed_in_[static_cast<size_t>(id(parameter))] = lent.device;
  memory_of(id(parameter)) = new_memory(std::move(lent));
}

// The input of a cond that the result updates in place: a Variable or a carry of the loop around
// it. 0, which is the predicate, if there is none or if it has another reader.
size_t LayoutBuilder::updated_by(const Node& node, size_t result, Scope& scope) {
  const int32_t number = static_cast<int32_t>(&node - graph_.nodes.data());
  const int32_t wish = wish_[static_cast<size_t>(id({number, static_cast<int16_t>(result)}))];
  if (wish < 0) return 0;
  Destination& destination = scope.destinations[static_cast<size_t>(wish)];
  const bool may_throw = scope.is_body && scope.last_fallible >= scope.position;
  if (destination.place < 0 || destination.held >= 0 || may_throw ||
      last_use(destination.place_root) != scope.position)
    return 0;
  size_t found = 0;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (root(node.inputs[k]) != destination.place_root) continue;
    if (found != 0 || k == 0 || id(node.inputs[k]) != destination.place_root) return 0;
    found = k;
  }
  if (found == 0) return 0;
  destination.held = destination.place;
  memory_of(root({number, static_cast<int16_t>(result)})) = destination.place;
  return found;
}

void LayoutBuilder::add_cond(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  std::vector<int32_t> kept;
  const run::Address chosen = host_address(node.inputs[0], node.source, kept);
  struct Place {
    int32_t memory = kNone;
    size_t updates = 0;     // The capture that the result updates in place.
    int32_t spare = kNone;  // In that case, the memory for a branch that still reads the old value.
    bool spare_is_used = false;
  };
  std::vector<Place> places;
  for (size_t r = 0; r < node.results.size(); ++r) {
    Place& place = places.emplace_back();
    const Value result{number, static_cast<int16_t>(r)};
    place.updates = updated_by(node, r, scope);
    place.memory = place.updates > 0 ? memory_of(root(result)) : choose(node, result, scope);
    if (place.updates == 0) continue;
    const TensorType& type = graph_.type(result);
    place.spare = new_buffer(type, bytes_of(type), ByteClass::temporaries, node.source, "cond");
  }

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
    for (const Place& place : places) {
      Destination& destination = destinations.emplace_back();
      destination.spare = place.updates > 0 ? place.spare : place.memory;
      if (place.updates == 0) continue;
      destination.place_root = id(region.parameters[place.updates - 1]);
      destination.place = memory_of(destination.place_root);
    }
    Scope inner{.region = node.regions[side], .destinations = destinations};
    add_region(inner);
    for (size_t r = 0; r < places.size(); ++r) {
      if (places[r].updates == 0 || destinations[r].held != places[r].spare) continue;
      places[r].spare_is_used = true;
      const TensorType& type = node.results[r];
      const ArrayRef layout{kNowhere, type.dtype, type.shape, contiguous_strides(type.shape)};
      add_copy(memory(places[r].spare).address, layout, places[r].memory, node.source);
    }
    (side == 0 ? program_->steps[index].middle : program_->steps[index].end) = now();
  }
  for (const Place& place : places) {
    if (place.updates == 0) continue;
    extend_to_now(place.spare);
    if (place.spare_is_used) continue;
    for (const int32_t unused : memory(place.spare).buffers)
      program_->buffers[static_cast<size_t>(unused)].bytes = 0;
  }
  for (const int32_t copy : kept) extend_to_now(copy);
}

// The parameter is the first slice of an array.
void LayoutBuilder::hand_in_slice(Value parameter, Value array) {
  hand_in(parameter, array);
  ArrayRef& layout = view_of(parameter).layout;
  layout.shape.erase(0);
  layout.strides.erase(0);
}

namespace {

// The only group of a map's body, if its results are the results of the body, each once.
const Node* only_group(const Graph& graph, const Region& body) {
  const Node* group = nullptr;
  for (const int32_t number : body.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op->view != nullptr) continue;
    if (group != nullptr || node.op->flow != Flow::group) return nullptr;
    group = &node;
  }
  if (group == nullptr || group->results.size() != body.results.size()) return nullptr;
  std::set<int16_t> given;
  for (const Value result : body.results) {
    if (&graph.node(result) != group || !given.insert(result.result).second) return nullptr;
  }
  return group;
}

}  // namespace

// A map whose body is one group becomes that group with a batch axis. Returns false if the body is
// something else.
bool LayoutBuilder::add_mapped_group(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Region& body = graph_.regions[static_cast<size_t>(node.regions[0])];
  const Node* const group = only_group(graph_, body);
  Attrs::Reader read = node.attrs.read();
  const auto slices = static_cast<size_t>(read.integer());
  TripAxis axis{.trips = read.size(), .strides = {}};
  if (group == nullptr || axis.trips == 0) return false;
  std::map<int32_t, int64_t> strides;  // By root.
  for (size_t k = 0; k < body.parameters.size(); ++k) {
    const Value parameter = body.parameters[k], outer = node.inputs[k];
    if (is_constant(outer)) return false;
    k < slices ? hand_in_slice(parameter, outer) : hand_in(parameter, outer);
    const ArrayRef& whole = view_of(outer).layout;
    strides[id(parameter)] = k < slices ? whole.strides[0] * size_of(whole.dtype) : 0;
  }
  analyse(node.regions[0]);
  if (device_of(body.results[0]) != interface_.home) return false;
  std::vector<ArrayRef> layouts, results;
  std::vector<run::Address> places;
  for (const Value input : group->inputs) {
    const auto found = strides.find(root(input));
    if (found == strides.end()) return false;  // A view that needs a copy.
    layouts.push_back(view_of(input).layout);
    places.push_back(address_of(input));
    axis.strides.push_back(found->second);
  }
  for (const TensorType& type : group->results) {
    results.push_back({kNowhere, type.dtype, type.shape, contiguous_strides(type.shape)});
    axis.strides.push_back(bytes_of(type));
  }
  std::optional<GroupWork> work = mapped_group_work(scheduler_, *group, layouts, results, axis);
  if (!work) return false;
  work->threads = threads();
  const size_t first_result = places.size();
  places.resize(first_result + results.size());
  for (size_t r = 0; r < body.results.size(); ++r) {
    const int32_t place = choose(node, {number, static_cast<int16_t>(r)}, scope);
    places[first_result + static_cast<size_t>(body.results[r].result)] = memory(place).address;
  }
  const auto trips = static_cast<double>(int64_t{axis.trips});
  add_step(backend().group(std::move(*work)), places, cat("map of ", group_name(graph_, *group)),
           node.source);
  set_work(work_of(graph_, *group) * trips);
  return true;
}

namespace {

// The default number of bodies of a map that run at once. Each has its own memory and one thread,
// and every thread gets at least two. A few large bodies run one after another on all threads,
// which takes the least memory. The number never decreases with more threads.
int64_t bodies_at_once(const Graph& graph, RegionId body, int64_t trips, int threads) {
  constexpr int64_t few_trips = 8;
  constexpr int64_t large_bytes = int64_t{256} << 10;  // Enough work for several threads.
  const std::vector<int32_t>& nodes = graph.regions[static_cast<size_t>(body)].nodes;
  const bool is_large = std::any_of(nodes.begin(), nodes.end(), [&](int32_t number) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    return node.op->view == nullptr &&
           std::any_of(node.results.begin(), node.results.end(),
                       [](const TensorType& type) { return bytes_of(type) >= large_bytes; });
  });
  if (is_large && trips < few_trips) return 1;
  return std::clamp<int64_t>(trips / 2, 1, threads);
}

}  // namespace

// Adds the step of a loop or a map, whose steps follow, and returns its number.
size_t LayoutBuilder::begin_control(run::Step::Kind kind, size_t control, std::string_view name,
                                    Source at) {
  const auto number = static_cast<size_t>(now());
  run::Step step;
  step.kind = kind;
  step.control = static_cast<int32_t>(control);
  step.source = at;
  step.name = std::string(name);
  program_->steps.push_back(std::move(step));
  return number;
}

// Reserves the arenas of a map's bodies in one memory. Their size is set after the body is added.
run::Map::BodyArena LayoutBuilder::new_body_arena(int32_t memory_number, Source at,
                                                  std::vector<int32_t>& kept) {
  const InMemory there(*this, memory_number);
  kept.push_back(new_buffer({DType::u8, {0}}, 0, ByteClass::temporaries, at, "map bodies"));
  return {.memory = memory_number, .reg = new_register(), .arenas = memory(kept.back()).address};
}

void LayoutBuilder::add_map(Scope& scope, int32_t number) {
  if (add_mapped_group(scope, number)) return;
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Source at = node.source;
  Attrs::Reader read = node.attrs.read();
  const auto slices = static_cast<size_t>(read.integer());
  run::Map map;
  map.trips = read.size();
  const Dim written = read.size();
  map.automatic = written.is_any();
  const int64_t alive = map.automatic ? interface_.bodies_at_once.value_or(0) : int64_t{written};
  map.alive = alive == 0 ? bodies_at_once(graph_, node.regions[0], map.trips, threads())
                         : std::clamp<int64_t>(alive, 1, std::max<int64_t>(1, map.trips));
  const std::span<const int64_t> why = read.integers();
  const Region& body = graph_.regions[static_cast<size_t>(node.regions[0])];
  std::vector<int32_t> kept;
  for (size_t k = 0; k < slices; ++k) {
    const Value parameter = body.parameters[k];
    show_slice(parameter, walk_array(node.inputs[k], graph_.type(parameter), at, map.walks, kept));
  }
  for (size_t i = slices; i < body.parameters.size(); ++i)
    hand_in(body.parameters[i], node.inputs[i]);
  std::vector<Destination> destinations;
  for (size_t r = 0; r < node.results.size(); ++r) {
    const int32_t place = choose(node, {number, static_cast<int16_t>(r)}, scope);
    kept.push_back(place);
    destinations.push_back(stack_element(place, graph_.type(body.results[r]), map.walks));
  }
  map.arenas.push_back(new_body_arena(device::kHostMemory, at, kept));
  if (interface_.home != device::kHostMemory)
    map.arenas.push_back(new_body_arena(interface_.home, at, kept));

  std::string name = "map";
  if (map.automatic) name += cat(", ", map.alive, map.alive == 1 ? " body" : " bodies at once");
  if (!why.empty()) name += cat(", slice by slice: ", std::string(why.begin(), why.end()));
  const size_t step = begin_control(run::Step::Kind::map, program_->maps.size(), name, at);
  program_->steps[step].middle = now();
  program_->maps.push_back(map);
  const int32_t outer_arena = std::exchange(arena_, static_cast<int32_t>(program_->maps.size()));
  program_->maps.back().arena = arena_;
  const bool outer_side_by_side = std::exchange(side_by_side_, side_by_side_ || map.alive > 1);
  Scope inner{.region = node.regions[0], .destinations = destinations};
  add_region(inner);
  side_by_side_ = outer_side_by_side;
  arena_ = outer_arena;
  program_->steps[step].end = now();
  for (const int32_t number_kept : kept) extend_to_now(number_kept);
}

}  // namespace tidemark::compile
