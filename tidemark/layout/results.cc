// Results of regions: where each is computed, and copies of those that are computed elsewhere.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tidemark/compile/workspace.h"
#include "tidemark/device/memory.h"
#include "tidemark/layout/builder.h"

namespace tidemark::compile {

// Whether the whole value fits both places of the destination. The result may be a view of its
// first elements.
bool LayoutBuilder::can_hold(const Destination& destination, int32_t root) {
  const int64_t bytes = whole_bytes(root);
  const auto fits = [&](int32_t place) { return memory(place).room.fits(bytes); };
  return destination.spare >= 0 && fits(destination.spare) &&
         (destination.place < 0 || fits(destination.place));
}

// Checks that each result is in the memory it must be in: results of the program where they are
// computed, results of regions where their reader wants them. Marks may be elsewhere: they are
// copied.
void LayoutBuilder::expect_results(Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  for (size_t k = 0; k < region.results.size(); ++k) {
    const Value result = region.results[k];
    const Destination& destination = scope.destinations[k];
    const Source at = graph_.node(result).source;
    if (scope.is_body && destination.place >= 0 &&
        !lies_in(memory(destination.place).device, result))
      expect_in(memory(destination.place).device, result,
                cat("the new value of ", interface_.results[k].name), at);
    if (destination.spare < 0 || destination.crosses) continue;
    Memory& spare = memory(destination.spare);
    if (!scope.is_body && !is_marks(result))
      expect_in(spare.device, result, "a result of control flow", at);
    else if (scope.is_body && !is_constant(result))
      spare.device = device_of(result);
    else if (scope.is_body && destination.place >= 0)
      spare.device = memory(destination.place).device;
  }
}

// A result of the program that is a view of a value, such as a transposed gradient, is copied after
// the last reader of that value, so that the value does not live until the end.
void LayoutBuilder::find_early_copies(Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  std::unordered_map<int32_t, int32_t> given, last_reader;  // By root.
  for (const Value result : region.results)
    if (!is_constant(result)) ++given[root(result)];
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const Node& node = graph_.nodes[static_cast<size_t>(region.nodes[i])];
    const Value first{region.nodes[i], 0};
    if (node.op->view != nullptr && root(first) != id(first)) continue;  // It reads nothing.
    const auto note = [&](Value value) {
      if (given.contains(root(value))) last_reader[root(value)] = static_cast<int32_t>(i);
    };
    for (const Value input : node.inputs) note(input);
    for (size_t r = 0; r < node.results.size(); ++r)
      note({region.nodes[i], static_cast<int16_t>(r)});
  }
  for (size_t k = 0; k < region.results.size(); ++k) {
    const Value result = region.results[k];
    Destination& destination = scope.destinations[k];
    if (is_constant(result) || destination.place >= 0 || destination.spare < 0) continue;
    const int32_t self = root(result);
    const bool is_made_here = memory_of(self) < 0 && wish_[static_cast<size_t>(self)] < 0;
    if (!is_made_here || given[self] > 1) continue;
    destination.is_copied_early = true;
    scope.early_copies.emplace_back(last_reader[self], static_cast<int32_t>(k));
  }
  std::sort(scope.early_copies.rbegin(), scope.early_copies.rend());
}

void LayoutBuilder::copy_early(Scope& scope) {
  std::vector<std::pair<int32_t, int32_t>>& copies = scope.early_copies;
  for (; !copies.empty() && copies.back().first == scope.position; copies.pop_back()) {
    const auto k = static_cast<size_t>(copies.back().second);
    const Value result = graph_.regions[static_cast<size_t>(scope.region)].results[k];
    Destination& destination = scope.destinations[k];
    destination.held = destination.spare;
    add_dense(result, destination.held, graph_.node(result).source);
    extend_to_now(memory_of(root(result)));
  }
}

// Copies results that are not at their destination yet: parameters, views, literals, and values
// that are several results.
void LayoutBuilder::finish_results(Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  std::unordered_set<int32_t> given;  // Roots.
  for (const Value result : region.results)
    if (!is_constant(result)) given.insert(root(result));
  for (size_t k = 0; k < region.results.size(); ++k) {
    const Value result = region.results[k];
    Destination& destination = scope.destinations[k];
    const int32_t self = root(result);
    if (destination.is_copied_early) continue;
    const bool in_place = !is_constant(result) && memory_of(self) == destination.place &&
                          destination.place >= 0 &&
                          same_layout(view_of(result).layout, dense_layout(graph_.type(result)));
    if (in_place && destination.held < 0) destination.held = destination.place;
    if (destination.held >= 0 &&
        (in_place || wish_[static_cast<size_t>(self)] == static_cast<int32_t>(k)))
      continue;
    if (destination.spare < 0) continue;  // The caller uses the result at its own address.
    // All steps have run: nothing can fail any more, and only results still read the old value.
    const bool is_read = given.contains(destination.place_root);
    destination.held = destination.place >= 0 && !is_read ? destination.place : destination.spare;
    if (is_read) destination.why_not = "its old value is a result too";
    add_dense(result, destination.held, graph_.node(result).source);
  }
  for (size_t k = 0; k < region.results.size(); ++k) {
    const Value result = region.results[k];
    const int32_t held = is_constant(result) ? kNone : memory_of(root(result));
    if (held >= 0 && !scope.destinations[k].is_copied_early) extend_to_now(held);
  }
}

// ---- results of the program ---------------------------------------------------------------------

std::vector<LayoutBuilder::Destination> LayoutBuilder::destinations_of_results() {
  const Region& body = graph_.body();
  std::vector<Destination> destinations(body.results.size());
  for (size_t k = 0; k < body.results.size(); ++k) {
    const TensorType& type = graph_.type(body.results[k]);
    Destination& destination = destinations[k];
    destination.spare = new_memory(
        {.address = {program_->result_register(static_cast<int32_t>(k)), run::kNoBuffer, 0},
         .room = Room::owned(bytes_of(type)),
         .writable = false,
         .buffers = {},
         .device = interface_.home});
    if (const int32_t updated = interface_.results[k].updates; updated >= 0) {
      destination.place_root = id(body.parameters[static_cast<size_t>(updated)]);
      destination.place = memory_of(destination.place_root);
    }
  }
  return destinations;
}

// A result that is a parameter aliases it: nothing is copied. By result: the parameter, or kNone.
std::vector<int32_t> LayoutBuilder::pass_parameters_on(std::vector<Destination>& destinations) {
  const Region& body = graph_.body();
  std::vector<int32_t> passed(body.results.size(), kNone);
  std::unordered_map<int32_t, int32_t> parameters;
  for (size_t i = 0; i < body.parameters.size(); ++i)
    parameters[id(body.parameters[i])] = static_cast<int32_t>(i);
  for (size_t k = 0; k < body.results.size(); ++k) {
    const auto found = parameters.find(id(body.results[k]));
    if (found == parameters.end()) continue;
    passed[k] = found->second;
    destinations[k].held = destinations[k].spare;  // No node computes it.
    destinations[k].spare = kNone;
  }
  return passed;
}

run::Result LayoutBuilder::result_in(const Destination& destination, size_t number,
                                     int32_t passed) {
  const Value value = graph_.body().results[number];
  const Interface::Result& said = interface_.results[number];
  const TensorType& type = graph_.type(value);
  run::Result result;
  result.dtype = type.dtype;
  result.shape = type.shape;
  result.bytes = granted_bytes(bytes_of(type));
  result.memory = passed >= 0 ? interface_.parameters[static_cast<size_t>(passed)].memory
                              : memory(destination.held).device;
  result.byte_class = ByteClass::outputs;
  result.source = graph_.node(value).source;
  result.name = said.name;
  const bool in_place = destination.place >= 0 && destination.held == destination.place;
  result.parameter = in_place ? said.updates : passed;
  const int32_t held = destination.held;
  if (!in_place && passed < 0 && held >= 0 && held != destination.spare)
    // It is in the bytes of a donated parameter.
    result.parameter = memory(held).address.reg - 1;
  if (!in_place && said.updates >= 0) {
    result.byte_class = ByteClass::shadow;
    result.why_not_in_place = destination.why_not;
  }
  return result;
}

void LayoutBuilder::list_results(const std::vector<Destination>& destinations,
                                 const std::vector<int32_t>& passed) {
  for (size_t k = 0; k < destinations.size(); ++k)
    program_->results.push_back(result_in(destinations[k], k, passed[k]));
  for (const run::Result& result : program_->results) {
    if (result.parameter >= 0 || result.memory == device::kHostMemory) continue;
    const InMemory there(*this, result.memory);
    (void)arena_register();  // Plans list the memory even if nothing is placed there.
  }
}

}  // namespace tidemark::compile
