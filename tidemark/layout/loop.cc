// Loops, forward and reverse: registers that advance from trip to trip.
#include <algorithm>

#include "tidemark/compile/scalar_loop.h"
#include "tidemark/compile/work.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/memory.h"
#include "tidemark/layout/builder.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/passes/passes.h"

namespace tidemark::compile {
namespace {

const TensorType kTrip{DType::i64, {}};
const TensorType kTest{DType::boolean, {}};

}  // namespace

// ---- shared by forward and reverse loops --------------------------------------------------------

// Each carry starts in its own bytes, or in those of an operand whose lifetime ends here. Carries
// are the first results of the node; `first_input` is the index of the first initial value.
std::vector<LayoutBuilder::CarryPlaces> LayoutBuilder::start_carries(
    Scope& scope, int32_t number, size_t first_input, std::vector<CarryPlaces> carried) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Source at = node.source;
  const bool may_throw = may_fail_from(node, scope);
  for (size_t k = 0; k < carried.size(); ++k) {
    const Value initial = node.inputs[first_input + k];
    const Value result{number, static_cast<int16_t>(k)};
    const TensorType& type = graph_.type(result);
    const int32_t from = is_constant(initial) ? kNone : memory_of(root(initial));
    const bool ends = ends_here(node, initial, scope);
    if (!is_marks(initial)) expect_in(interface_.home, initial, "the initial value of a carry", at);
    CarryPlaces& carry = carried[k];
    carry.wish = wish_[static_cast<size_t>(root(result))];
    if (carry.wish >= 0) {
      Destination& destination = scope.destinations[static_cast<size_t>(carry.wish)];
      const bool is_initial = destination.place_root >= 0 && !is_constant(initial) &&
                              destination.place_root == root(initial) && ends;
      const bool free = destination.place_root >= 0 &&
                        (is_initial || last_use(destination.place_root) < scope.position);
      // The initial value may have been computed there already.
      if (destination.held < 0) {
        const bool in_place = free && !may_throw;
        destination.held = in_place ? destination.place : destination.spare;
        if (!in_place && destination.place >= 0) destination.why_not = reason_against(scope, node);
      }
      carry.first = destination.held;
    } else if (carry.first < 0 && ends && memory(from).writable) {
      carry.first = from;
      memory_of(root(initial)) = kNone;
    }
    if (carry.first < 0)
      carry.first = new_buffer(type, bytes_of(type), ByteClass::temporaries, at, "loop carry");
    memory_for(carry.first, bytes_of(type));
    if (carry.first == from) continue;
    add_dense(initial, carry.first, at);
  }
  return carried;
}

// Whether the value has its root's bytes to itself, and this is its last and only read.
bool LayoutBuilder::ends_here(const Node& node, Value value, const Scope& scope) {
  const int32_t held = is_constant(value) ? kNone : memory_of(root(value));
  const bool whole = held >= 0 && view_of(value).layout.data == kNowhere &&
                     view_of(value).layout.is_contiguous() &&
                     memory(held).room.fits(bytes_of(graph_.type(value)));
  return whole && last_use(root(value)) == scope.position && reads_once(node, root(value));
}

bool LayoutBuilder::reads_once(const Node& node, int32_t root) {
  if (counted_ != &node) {
    reads_.clear();
    for (const Value input : node.inputs) ++reads_[this->root(input)];
    counted_ = &node;
  }
  return reads_[root] == 1;
}

// Allocates a register and a second buffer for each carry.
std::vector<run::Loop::Carry> LayoutBuilder::move_carries(const Node& node,
                                                          std::vector<CarryPlaces>& carried,
                                                          std::vector<int32_t>& kept) {
  std::vector<run::Loop::Carry> moved;
  for (size_t k = 0; k < carried.size(); ++k) {
    const TensorType& type = node.results[k];
    CarryPlaces& carry = carried[k];
    Memory inside = memory(carry.first);
    inside.address = {new_register(), run::kNoBuffer, 0};
    inside.writable = false;
    carry.inside = new_memory(std::move(inside));
    const int32_t second =
        new_buffer(type, bytes_of(type), ByteClass::temporaries, node.source, "loop carry, next");
    Memory spare = memory(second);
    moved.push_back({.now = memory(carry.inside).address.reg,
                     .next = new_register(),
                     .first = memory(carry.first).address,
                     .second = spare.address});
    spare.address = {moved.back().next, run::kNoBuffer, 0};
    spare.room = Room::at_either(spare.room, memory(carry.inside).room);  // The two alternate.
    spare.writable = false;
    carry.spare = new_memory(std::move(spare));
    kept.push_back(carry.first);
    kept.push_back(carry.spare);
  }
  return moved;
}

// After the body is added: decides which carries stay in place and where the results are. Returns
// the carries whose results have another destination.
std::vector<size_t> LayoutBuilder::settle_carries(int32_t number,
                                                  const std::vector<CarryPlaces>& carried,
                                                  const std::vector<Destination>& destinations,
                                                  std::vector<run::Loop::Carry>& moved) {
  std::vector<size_t> copied;
  for (size_t k = 0; k < carried.size(); ++k) {
    const CarryPlaces& carry = carried[k];
    const bool in_place = destinations[k].held == carry.inside;
    Memory result = memory(carry.inside);
    if (in_place || carry.slice >= 0) {
      moved[k].next = moved[k].now;
      for (const int32_t unused : memory(carry.spare).buffers)
        program_->buffers[static_cast<size_t>(unused)].bytes = 0;
    } else {
      // After the last trip it is in no row of the stack.
      if (carry.stack >= 0) result.buffers = {};
      for (const int32_t second : memory(carry.spare).buffers) result.buffers.push_back(second);
      if (carry.wish >= 0) copied.push_back(k);
    }
    result.writable = carry.wish < 0 && carry.slice < 0;
    memory_of(root({number, static_cast<int16_t>(k)})) = new_memory(std::move(result));
  }
  return copied;
}

// With two alternating buffers the last trip may have written either of them.
void LayoutBuilder::copy_carries(int32_t number, const std::vector<CarryPlaces>& carried,
                                 const std::vector<size_t>& copied) {
  for (const size_t k : copied) {
    const Value result{number, static_cast<int16_t>(k)};
    add_copy(address_of(result), view_of(result).layout, carried[k].first,
             graph_.nodes[static_cast<size_t>(number)].source);
  }
}

namespace {

// Whether slices of the array can be read in place. A slice with repeated elements is copied: in a
// body it is a separate value, and a sum over repeated elements would be computed as a product.
bool is_read_in_place(const ArrayRef& array) {
  for (int64_t axis = 1; axis < array.rank(); ++axis)
    if (array.strides[static_cast<size_t>(axis)] == 0 && array.shape[axis] != 1) return false;
  return true;
}

}  // namespace

// Adds a register that addresses the slice of each trip.
LayoutBuilder::SliceView LayoutBuilder::walk_array(Value array, const TensorType& slice, Source at,
                                                   std::vector<run::Walk>& walks,
                                                   std::vector<int32_t>& kept, bool wants_dense) {
  const InMemory there(*this, is_constant(array) ? in_memory_ : device_of(array));
  const bool in_place =
      !is_constant(array) && (wants_dense ? view_of(array).layout.is_contiguous()
                                          : is_read_in_place(view_of(array).layout));
  if (!in_place) kept.push_back(materialise(array, at));
  SliceView walked{.layout = dense_layout(slice)};
  int64_t stride = bytes_of(slice);
  if (in_place) {
    const ArrayRef& whole = view_of(array).layout;
    stride = whole.strides[0] * size_of(whole.dtype);
    walked.layout.strides = whole.strides;
    walked.layout.strides.erase(0);
  }
  walks.push_back({.reg = new_register(),
                   .base = in_place ? address_of(array) : memory(kept.back()).address,
                   .stride = stride});
  walked.memory = new_memory({.address = {walks.back().reg, run::kNoBuffer, 0},
                              .room = Room::part(bytes_of(slice)),
                              .writable = false,
                              .buffers = {},
                              .device = in_memory_});
  return walked;
}

void LayoutBuilder::show_slice(Value parameter, const SliceView& walked) {
  show_in(parameter, walked.memory);
  view_of(parameter).layout = walked.layout;
}

// The destination of each trip's element of a stacked result.
LayoutBuilder::Destination LayoutBuilder::stack_element(int32_t place, const TensorType& element,
                                                        std::vector<run::Walk>& walks) {
  walks.push_back(
      {.reg = new_register(), .base = memory(place).address, .stride = bytes_of(element)});
  return {.spare = new_memory({.address = {walks.back().reg, run::kNoBuffer, 0},
                               .room = Room::part(bytes_of(element)),
                               .writable = false,
                               .buffers = memory(place).buffers,
                               .device = memory(place).device})};
}

void LayoutBuilder::count_as_saved(int32_t number) {
  for (const int32_t buffer : memory(number).buffers)
    program_->buffers[static_cast<size_t>(buffer)].byte_class = ByteClass::saved;
}

run::Address LayoutBuilder::new_trip(LoopPlaces& places) {
  places.trip = new_host_buffer(kTrip, places.node.source, "trip");
  places.kept.push_back(places.trip);
  return memory(places.trip).address;
}

// The slices that trips read of scanned arrays, which are the node's inputs from `first_input` on;
// captures follow them.
void LayoutBuilder::walk_slices(LoopPlaces& places, size_t first_input,
                                std::span<const Value> parameters, std::vector<run::Walk>& walks) {
  const Node& node = places.node;
  for (size_t k = 0; k < parameters.size(); ++k) {
    const bool is_next_state =
        std::any_of(places.carried.begin(), places.carried.end(),
                    [&](const CarryPlaces& each) { return each.slice == static_cast<int32_t>(k); });
    places.slices.push_back(walk_array(node.inputs[first_input + k], graph_.type(parameters[k]),
                                       node.source, walks, places.kept, is_next_state));
  }
  places.first_capture = first_input + parameters.size();
}

void LayoutBuilder::expect_carries(LoopPlaces& places, std::span<const Value> parameters) {
  for (size_t k = 0; k < parameters.size(); ++k)
    places.destinations.push_back({.place = places.carried[k].inside,
                                   .place_root = id(parameters[k]),
                                   .spare = places.carried[k].spare});
}

// Adds the steps of one region of a loop.
void LayoutBuilder::add_part(LoopPlaces& places, const LoopPart& part,
                             std::vector<Destination>& destinations) {
  const RegionId region = places.node.regions[part.region];
  const std::vector<Value>& parameters = graph_.regions[static_cast<size_t>(region)].parameters;
  show_in(parameters[0],
          trip_seen(parameters[0], region, places.trip, places.kept, places.node.source));
  size_t next = 1;
  for (const int32_t state : part.states) show_in(parameters[next++], state);
  if (part.takes_slices)
    for (const SliceView& slice : places.slices) show_slice(parameters[next++], slice);
  for (size_t i = next; i < parameters.size(); ++i)
    hand_in(parameters[i], places.node.inputs[places.first_capture + i - next]);
  Scope inner{.region = region, .destinations = destinations};
  add_region(inner);
}

void LayoutBuilder::end_loop(const LoopPlaces& places, const std::vector<size_t>& copied) {
  copy_carries(places.number, places.carried, copied);
  for (const int32_t number : places.kept) extend_to_now(number);
}

// ---- forward ------------------------------------------------------------------------------------

// A carry whose state is stacked at the start of every trip is computed in the rows of the stack. A
// carry that is a slice of a scanned array in the next trip aliases that slice. Appends the memory
// of stacked results to `stacks`.
std::vector<LayoutBuilder::CarryPlaces> LayoutBuilder::carries_of_loop(
    Scope& scope, int32_t number, std::vector<int32_t>& stacks) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const LoopAttrs attrs(node);
  const Region& body = graph_.regions[static_cast<size_t>(node.regions[0])];
  const auto carries = static_cast<size_t>(attrs.carries);
  const std::vector<size_t> kept = attrs.kept_carries();
  const bool is_exact = !attrs.counted && node.regions.size() == 1;
  for (int64_t e = 0; e < attrs.stacked; ++e) {
    const size_t result = attrs.stacked_result(static_cast<size_t>(e));
    stacks.push_back(choose(node, {number, static_cast<int16_t>(result)}, scope));
    if (e + attrs.saved >= attrs.stacked) count_as_saved(stacks.back());
  }
  std::vector<CarryPlaces> carried(carries);
  for (size_t k = 0; k < carries; ++k) {
    const int32_t self = id({number, static_cast<int16_t>(k)});
    const bool is_wanted = wish_[static_cast<size_t>(self)] >= 0;
    if (is_wanted || std::find(kept.begin(), kept.end(), k) != kept.end()) continue;
    // The lifetime of the array may end before the last state is read.
    const bool is_read = last_use(self) != scope.position;
    for (size_t s = 0; s < static_cast<size_t>(attrs.slices) && !is_read; ++s)
      if (body.results[k] == body.parameters[1 + carries + s])
        carried[k].slice = static_cast<int32_t>(s);
    // The last state is not the initial state of any trip.
    if (carried[k].slice >= 0 || attrs.trips < 1 || !is_exact) continue;
    for (size_t e = 0; e < stacks.size() && carried[k].stack < 0; ++e) {
      if (body.results[carries + e] != body.parameters[1 + k]) continue;
      const int64_t bytes = bytes_of(node.results[k]);
      Memory slot = memory(stacks[e]);
      slot.address.offset += attrs.reverse ? (int64_t{attrs.trips} - 1) * bytes : 0;
      slot.room = Room::part(bytes);
      slot.writable = false;
      carried[k].stack = static_cast<int32_t>(e);
      carried[k].first = new_memory(std::move(slot));
    }
  }
  return carried;
}

// Stacked results, and the last states that are rows of them.
void LayoutBuilder::place_stacks(std::span<const int32_t> stacks, LoopPlaces& places,
                                 run::Loop& loop) {
  const Region& body = graph_.regions[static_cast<size_t>(places.node.regions[0])];
  const size_t carries = places.carried.size();
  for (size_t e = 0; e < stacks.size(); ++e) {
    places.kept.push_back(stacks[e]);
    const TensorType& element = graph_.type(body.results[carries + e]);
    places.destinations.push_back(stack_element(stacks[e], element, loop.walks));
    for (size_t k = 0; k < carries; ++k) {
      if (places.carried[k].stack != static_cast<int32_t>(e)) continue;
      loop.carries[k].stack = static_cast<int32_t>(loop.walks.size() - 1);
      places.destinations.back().place = places.carried[k].inside;
    }
  }
}

// Carries, slices and results of a loop's body.
void LayoutBuilder::place_loop(Scope& scope, LoopPlaces& places, run::Loop& loop) {
  const Node& node = places.node;
  const LoopAttrs attrs(node);
  const auto carries = static_cast<size_t>(attrs.carries);
  const std::span<const Value> parameters =
      graph_.regions[static_cast<size_t>(node.regions[0])].parameters;
  if (loop.counted) loop.count = host_address(node.inputs[0], node.source, places.kept);
  std::vector<int32_t> stacks;
  places.carried = start_carries(scope, places.number, attrs.first_carry(),
                                 carries_of_loop(scope, places.number, stacks));
  loop.carries = move_carries(node, places.carried, places.kept);
  loop.trip = new_trip(places);
  walk_slices(places, attrs.first_carry() + carries,
              parameters.subspan(1 + carries, static_cast<size_t>(attrs.slices)), loop.walks);
  expect_carries(places, parameters.subspan(1, carries));
  // The initial state of a trip still exists after it.
  for (const size_t k : attrs.kept_carries()) places.destinations[k].place = kNone;
  for (size_t k = 0; k < carries; ++k) {
    const CarryPlaces& carry = places.carried[k];
    Destination& destination = places.destinations[k];
    if (carry.stack >= 0) destination.place = kNone;
    if (carry.slice < 0) continue;
    destination.place = places.slices[static_cast<size_t>(carry.slice)].memory;
    loop.carries[k].follows = memory(destination.place).address.reg;
  }
  place_stacks(stacks, places, loop);
  keep_checkpoints(scope, places.number, loop, places.kept);
}

void LayoutBuilder::add_loop(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const LoopAttrs attrs(node);
  run::Loop loop;
  loop.trips = attrs.trips.known_or(-1);
  loop.reverse = attrs.reverse;
  loop.counted = attrs.counted;
  loop.tested = node.regions.size() > 1;
  loop.memory = interface_.home;
  list_kept(node);
  if (add_scalar_loop(scope, number, loop)) return;
  LoopPlaces places{.node = node, .number = number};
  place_loop(scope, places, loop);
  std::vector<Destination> tests;
  if (loop.tested) {
    places.kept.push_back(new_host_buffer(kTest, node.source, "loop condition"));
    loop.condition = memory(places.kept.back()).address;
    tests.push_back({.spare = places.kept.back(), .crosses = true});
  }

  const size_t own = program_->loops.size();
  const size_t step = begin_control(run::Step::Kind::loop, own, "loop", node.source);
  program_->loops.emplace_back();
  std::vector<int32_t> states;
  for (const CarryPlaces& carry : places.carried) states.push_back(carry.inside);
  if (loop.tested) add_part(places, {.region = 1, .states = states}, tests);
  program_->steps[step].middle = now();
  add_part(places, {.region = 0, .states = states, .takes_slices = true}, places.destinations);
  program_->steps[step].end = now();

  const std::vector<size_t> copied =
      settle_carries(number, places.carried, places.destinations, loop.carries);
  program_->loops[own] = std::move(loop);
  end_loop(places, copied);
}

// Adds the loop to the plan's list of loops that keep values for a gradient.
void LayoutBuilder::list_kept(const Node& node) {
  const LoopAttrs attrs(node);
  run::KeptTrips kept{.source = node.source};
  kept.trips = attrs.trips.known_or(-1);
  kept.is_exact = !attrs.counted && node.regions.size() == 1;
  if (attrs.kept != 0) {
    kept.slots = slots_of_marks(node.results[static_cast<size_t>(attrs.marks)]);
    if (attrs.save == LoopAttrs::Save::every) kept.every = attrs.amount;
    for (const size_t k : attrs.kept_carries()) kept.state_bytes += bytes_of(node.results[k]);
    kept.bytes = kept.slots * kept.state_bytes;
    if (attrs.save == LoopAttrs::Save::all) kept.slots = 0;
  } else {
    for (size_t k = 0; k < static_cast<size_t>(attrs.carries); ++k)
      kept.state_bytes += bytes_of(node.results[k]);
    for (int64_t e = attrs.stacked - attrs.saved; e < attrs.stacked; ++e)
      kept.bytes += bytes_of(node.results[attrs.stacked_result(static_cast<size_t>(e))]);
  }
  if (kept.bytes > 0) program_->kept.push_back(kept);
}

// Allocates the checkpoints that a loop saves for its gradient.
void LayoutBuilder::keep_checkpoints(Scope& scope, int32_t number, run::Loop& loop,
                                     std::vector<int32_t>& kept) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const LoopAttrs attrs(node);
  if (attrs.marks == 0) return;
  const auto place = [&](size_t result) {
    kept.push_back(choose(node, {number, static_cast<int16_t>(result)}, scope));
    count_as_saved(kept.back());
    return memory(kept.back()).address;
  };
  loop.marked = true;
  {
    const InMemory host(*this, device::kHostMemory);
    loop.marks = place(static_cast<size_t>(attrs.marks));
  }
  if (attrs.kept == 0) return;
  loop.slots = slots_of_marks(node.results[static_cast<size_t>(attrs.marks)]);
  if (attrs.save == LoopAttrs::Save::every) loop.every = attrs.amount;
  size_t next = attrs.first_checkpoint();
  for (const size_t k : attrs.kept_carries())
    loop.kept.push_back({.carry = k, .rows = place(next++), .bytes = bytes_of(node.results[k])});
}

// A loop on few numbers becomes one step. Returns false for other loops. Carries stay in place.
bool LayoutBuilder::add_scalar_loop(Scope& scope, int32_t number, const run::Loop& loop) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const LoopAttrs attrs(node);
  if (attrs.marks != 0) return false;
  const auto slices = static_cast<size_t>(attrs.slices);
  const auto carries = static_cast<size_t>(attrs.carries);
  const size_t first_slice = attrs.first_carry() + carries;
  std::vector<OperandLayout> captures;
  for (size_t i = first_slice; i < node.inputs.size(); ++i) {
    const Value input = node.inputs[i];
    const bool is_number = is_constant(input);
    if (!is_number && device_of(input) != interface_.home) return false;
    if (i < first_slice + slices) continue;
    captures.push_back({.is_number = is_number,
                        .number = is_number ? constant_bits(input) : 0,
                        .layout = view_of(input).layout});
  }
  const std::optional<ScalarLoop> scalar = scalar_loop(graph_, node, captures);
  if (!scalar) return false;
  std::optional<TaskPlan> made = backend().loop(*scalar, loop.trips, loop.counted);
  if (!made) return false;
  const std::vector<CarryPlaces> carried =
      start_carries(scope, number, attrs.first_carry(), std::vector<CarryPlaces>(carries));
  std::vector<int32_t> kept;
  std::vector<run::Address> places;
  if (loop.counted) {
    const Value count = node.inputs[0];
    if (is_constant(count)) kept.push_back(materialise(count, node.source));
    places.push_back(kept.empty() ? address_of(count) : memory(kept.back()).address);
  }
  for (const CarryPlaces& carry : carried) places.push_back(memory(carry.first).address);
  for (size_t k = 0; k < slices; ++k) {
    const Value array = node.inputs[first_slice + k];
    const bool is_dense = !is_constant(array) && view_of(array).layout.is_contiguous();
    if (!is_dense) kept.push_back(materialise(array, node.source));
    places.push_back(is_dense ? address_of(array) : memory(kept.back()).address);
  }
  for (size_t i = 0; i < captures.size(); ++i) {
    if (!captures[i].is_number) places.push_back(address_of(node.inputs[first_slice + slices + i]));
  }
  for (size_t r = carries; r < node.results.size(); ++r) {
    const int32_t place = choose(node, {number, static_cast<int16_t>(r)}, scope);
    if (r + static_cast<size_t>(attrs.saved) >= node.results.size()) count_as_saved(place);
    places.push_back(memory(place).address);
  }
  add_step(std::move(*made), places, "loop", node.source, passes::can_fail(graph_, node));
  set_work(work_of(graph_, node.regions[0]) * static_cast<double>(loop.trips < 0 ? 1 : loop.trips));
  for (size_t k = 0; k < carries; ++k) {
    memory_of(root({number, static_cast<int16_t>(k)})) = carried[k].first;
    extend_to_now(carried[k].first);
  }
  for (const int32_t copy : kept) extend_to_now(copy);
  return true;
}

// ---- reverse ------------------------------------------------------------------------------------

// Memory with the value that this node may overwrite: its own if its lifetime ends here, else a
// copy.
int32_t LayoutBuilder::own(const Node& node, Value value, const Scope& scope) {
  if (ends_here(node, value, scope) && memory(memory_of(root(value))).writable &&
      device_of(value) == in_memory_)
    return std::exchange(memory_of(root(value)), kNone);
  const int32_t copy = materialise(value, node.source);
  count_as_saved(copy);
  return copy;
}

// A state is read through one register and written through another.
run::Reverse::State LayoutBuilder::state_of(const Node& node, size_t number, const Scope& scope,
                                            std::vector<int32_t>& kept) {
  const auto carries = static_cast<size_t>(ReverseAttrs(node).carries);
  const Value start = node.inputs[1 + carries + number];
  const TensorType& type = graph_.type(start);
  run::Reverse::State state;
  state.now = new_register();
  state.next = new_register();
  state.bytes = bytes_of(type);
  kept.push_back(own(node, node.inputs[1 + number], scope));
  state.rows = memory(kept.back()).address;
  const bool is_dense = !is_constant(start) && view_of(start).layout.is_contiguous();
  if (!is_dense) kept.push_back(materialise(start, node.source));
  state.start = is_dense ? address_of(start) : memory(kept.back()).address;
  kept.push_back(new_buffer(type, state.bytes, ByteClass::temporaries, node.source, "state"));
  state.other = memory(kept.back()).address;
  return state;
}

// The registers through which a trip reads the states, and those through which it writes the next
// ones.
void LayoutBuilder::place_states(Scope& scope, const Node& node, run::Reverse& walk,
                                 std::vector<int32_t>& kept, ReverseStates& states) {
  const auto carries = static_cast<size_t>(ReverseAttrs(node).carries);
  for (size_t k = 0; k < carries; ++k) {
    walk.states.push_back(state_of(node, k, scope, kept));
    const run::Reverse::State& state = walk.states.back();
    const auto behind = [&](int32_t reg) {
      return new_memory({.address = {reg, run::kNoBuffer, 0},
                         .room = Room::part(state.bytes),
                         .writable = false,
                         .buffers = {},
                         .device = interface_.home});
    };
    states.now.push_back(behind(state.now));
    states.next.push_back({.spare = behind(state.next)});
  }
}

// Carries, slices and results of the part that goes back.
void LayoutBuilder::place_reverse(Scope& scope, LoopPlaces& places, run::Reverse& walk) {
  const Node& node = places.node;
  const ReverseAttrs attrs(node);
  const auto carries = static_cast<size_t>(attrs.carries), backs = static_cast<size_t>(attrs.backs);
  const Region& body = graph_.regions[static_cast<size_t>(node.regions[0])];
  const Region& back = graph_.regions[static_cast<size_t>(node.regions[1])];
  const size_t first_back = 1 + 2 * carries;
  places.carried = start_carries(scope, places.number, first_back, std::vector<CarryPlaces>(backs));
  walk.backs = move_carries(node, places.carried, places.kept);
  walk.trip = new_trip(places);
  walk_slices(places, first_back + backs,
              std::span<const Value>(body.parameters)
                  .subspan(1 + carries, static_cast<size_t>(attrs.slices)),
              walk.walks);
  expect_carries(places, std::span<const Value>(back.parameters).subspan(1 + carries, backs));
  for (size_t r = backs; r < node.results.size(); ++r) {
    places.kept.push_back(choose(node, {places.number, static_cast<int16_t>(r)}, scope));
    places.destinations.push_back(
        stack_element(places.kept.back(), graph_.type(back.results[r]), walk.walks));
  }
}

void LayoutBuilder::add_reverse(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const ReverseAttrs attrs(node);
  LoopPlaces places{.node = node, .number = number};
  run::Reverse walk;
  walk.reverse = attrs.reverse;
  walk.slots = slots_of_marks(graph_.type(node.inputs[0]));
  {
    const InMemory host(*this, device::kHostMemory);
    places.kept.push_back(own(node, node.inputs[0], scope));
    walk.marks = memory(places.kept.back()).address;
  }
  ReverseStates states;
  place_states(scope, node, walk, places.kept, states);
  place_reverse(scope, places, walk);
  walk.trips = attrs.trips.known_or(-1);
  if (attrs.save == LoopAttrs::Save::every) walk.every = attrs.amount;
  walk.online = walk.every == 0 && keeps_online(graph_, node);

  const size_t own_number = program_->reverses.size();
  const size_t step = begin_control(run::Step::Kind::reverse, own_number, "reverse", node.source);
  program_->reverses.emplace_back();
  add_part(places, {.region = 0, .states = states.now, .takes_slices = true}, states.next);
  program_->steps[step].middle = now();
  std::vector<int32_t> read = states.now;
  for (const CarryPlaces& carry : places.carried) read.push_back(carry.inside);
  add_part(places, {.region = 1, .states = read, .takes_slices = true}, places.destinations);
  program_->steps[step].end = now();

  const std::vector<size_t> copied =
      settle_carries(number, places.carried, places.destinations, walk.backs);
  program_->reverses[own_number] = std::move(walk);
  end_loop(places, copied);
}

}  // namespace tidemark::compile
