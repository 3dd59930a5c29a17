#include "tidemark/layout/builder.h"

#include <algorithm>

#include "tidemark/base/interrupt.h"
#include "tidemark/compile/work.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/memory.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/lower.h"
#include "tidemark/passes/passes.h"

namespace tidemark::compile {

std::string group_name(const Graph& graph, const Node& group) {
  std::string text;
  size_t more = 0;
  for (const int32_t number : graph.regions[static_cast<size_t>(group.regions[0])].nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op->view != nullptr || node.op->family == Family::source) continue;
    if (text.size() > 40) {
      ++more;
      continue;
    }
    if (!text.empty()) text += " + ";
    text += node.op->name;
  }
  return more == 0 ? text : cat(text, " + ", more, " more");
}

LayoutBuilder::LayoutBuilder(const Graph& graph, const Interface& interface, Placements& placements)
    : graph_(graph),
      interface_(interface),
      placements_(placements),
      scheduler_(graph),
      program_(std::make_shared<run::Program>()),
      in_memory_(interface.home) {
  program_->home = interface.home;
  program_->threads = backend_of(device::kHostMemory).machine().threads;
  int32_t values = 0;
  std::vector<int32_t> contractions;
  first_value_.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    first_value_.push_back(values);
    values += static_cast<int32_t>(node.results.size());
    if (node.op != nullptr && node.op->family == Family::contract)
      contractions.push_back(static_cast<int32_t>(i));
  }
  const auto count = static_cast<size_t>(values);
  views_.resize(count);
  constant_.resize(count, kNone);
  memory_of_.resize(count, kNone);
  last_use_.resize(count, kNone);
  wish_.resize(count, kNone);
  placed_in_.resize(count, 0);
  shared_.resize(count, false);
  if (program_->threads > 1) find_shared(contractions);
  const auto steps = static_cast<size_t>(
      std::count_if(graph.body().nodes.begin(), graph.body().nodes.end(), [&](int32_t number) {
        const OpDef& op = *graph.nodes[static_cast<size_t>(number)].op;
        return op.view == nullptr && op.family != Family::source;
      }));
  program_->steps.reserve(steps);
  program_->buffers.reserve(steps);
  tasks_.reserve(steps);
  memories_.reserve(steps);
}

// Marks the operands and results of products that run on several threads, and views of them.
void LayoutBuilder::find_shared(std::span<const int32_t> contractions) {
  const auto share = [&](Value value) {
    const Node* node = &graph_.node(value);
    shared_[static_cast<size_t>(id(value))] = true;
    for (; node->op != nullptr && node->op->view != nullptr; node = &graph_.node(value)) {
      value = node->inputs[0];
      shared_[static_cast<size_t>(id(value))] = true;
    }
  };
  constexpr double worth = 1e6;
  for (const int32_t number : contractions) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    // The sizes are m x k, k x n and m x n; their product is (m x n x k) squared.
    double squared = static_cast<double>(node.results[0].shape.size());
    for (const Value input : node.inputs)
      squared *= static_cast<double>(graph_.type(input).shape.size());
    if (squared < worth * worth) continue;
    share({number, 0});
    for (const Value input : node.inputs) share(input);
  }
}

// ---- values -------------------------------------------------------------------------------------

uint64_t LayoutBuilder::constant_bits(Value value) {
  const Node& literal =
      graph_.nodes[static_cast<size_t>(constant_[static_cast<size_t>(root(value))])];
  Attrs::Reader read = literal.attrs.read();
  const DType dtype = read.dtype();
  const double real = read.number();
  return number_bits(real, read.integer(), is_float(dtype), dtype);
}

void LayoutBuilder::show_dense(Value value) {
  view_of(value) = {id(value), dense_layout(graph_.type(value))};
}

void LayoutBuilder::show_in(Value value, int32_t held) {
  show_dense(value);
  memory_of(id(value)) = held;
  placed_in_[static_cast<size_t>(id(value))] = memory(held).device;
}

int32_t LayoutBuilder::target_of(const Node& transfer) {
  if (transfer.inputs.size() == 1) return static_cast<int32_t>(transfer.attrs.read().integer());
  return is_constant(transfer.inputs[1]) ? interface_.home : device_of(transfer.inputs[1]);
}

int32_t LayoutBuilder::memory_number(const Node& node) {
  if (node.op->transfers) return target_of(node);
  int32_t common = kNone;
  for (const Value input : node.inputs) {
    if (is_constant(input)) continue;
    const int32_t memory = device_of(input);
    if (common < 0) common = memory;
    if (memory != common) {
      throw UserError(
          cat(node.op->name, ": an operand lies in ", device::memory_text(common), ", another in ",
              device::memory_text(memory)),
          node.source,
          cat("ops compute where their operands lie: copy one of them, td::transfer(x, ",
              std::max(common, memory), ")"));
    }
  }
  return common < 0 ? interface_.home : common;
}

void LayoutBuilder::expect_in(int32_t wanted, Value value, std::string_view what, Source at) {
  if (lies_in(wanted, value)) return;
  throw UserError(cat(what, " lies in ", device::memory_text(device_of(value)),
                      ", and must lie in ", device::memory_text(wanted)),
                  at, cat("copy it there first: td::transfer(x, ", wanted, ")"));
}

// Determines the memory of a node's results. Those of control flow are in the program's own memory;
// the marks of a loop are on the host.
void LayoutBuilder::place_results(const Node& node, int32_t number) {
  const bool has_body = !node.regions.empty() && node.op->flow != Flow::group;
  const int32_t memory = has_body ? interface_.home : memory_number(node);
  for (size_t r = 0; r < node.results.size(); ++r)
    placed_in_[static_cast<size_t>(root({number, static_cast<int16_t>(r)}))] = memory;
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value result{number, static_cast<int16_t>(r)};
    if (is_marks(result)) placed_in_[static_cast<size_t>(id(result))] = device::kHostMemory;
  }
}

bool LayoutBuilder::is_marks(Value value) const {
  const Node& node = graph_.node(value);
  return node.op != nullptr && node.op->flow == Flow::loop && value.result != 0 &&
         LoopAttrs(node).marks == value.result;
}

void LayoutBuilder::analyse(RegionId region_id) {
  const Region& region = graph_.regions[static_cast<size_t>(region_id)];
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const int32_t number = region.nodes[i];
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    for (const Value input : node.inputs) last_use(root(input)) = static_cast<int32_t>(i);
    for (size_t r = 0; r < node.results.size(); ++r) show_dense({number, static_cast<int16_t>(r)});
    const Value result{number, 0};
    if (node.op->literal == Literal::number) constant_[static_cast<size_t>(id(result))] = number;
    if (node.op->view != nullptr) {
      ArrayRef view = dense_layout(graph_.type(result));
      if (node.op->view(view_of(node.inputs[0]).layout, node.attrs, view))
        view_of(result) = {root(node.inputs[0]), view};
    }
    if (node.op->family == Family::effect) {
      for (const Value input : node.inputs)
        expect_in(device::kHostMemory, input, cat("an operand of ", node.op->name), node.source);
    } else {
      place_results(node, number);
    }
    // The lifetime of an unread result ends at its own node.
    for (size_t r = 0; r < node.results.size(); ++r) {
      const Value made{number, static_cast<int16_t>(r)};
      last_use(root(made)) = static_cast<int32_t>(i);
    }
  }
  for (const Value result : region.results) last_use(root(result)) = kEnd;
}

int64_t LayoutBuilder::whole_bytes(int32_t root) const {
  const ArrayRef& whole = views_[static_cast<size_t>(root)].layout;
  return whole.size() * size_of(whole.dtype);
}

// ---- memory -------------------------------------------------------------------------------------

int32_t LayoutBuilder::new_memory(Memory made) {
  memories_.push_back(std::move(made));
  return static_cast<int32_t>(memories_.size() - 1);
}

LayoutBuilder::Memory& LayoutBuilder::memory_for(int32_t number, int64_t bytes) {
  Memory& found = memory(number);
  TIDEMARK_CHECK(found.room.holds(bytes), bytes, " bytes were placed where there are fewer");
  return found;
}

// The register of the arena in which buffers are currently allocated.
int32_t LayoutBuilder::arena_register() {
  if (in_memory_ == device::kHostMemory && arena_ == 0) return run::kArena;
  if (arena_ != 0) {
    for (const run::Map::BodyArena& arena : program_->maps[static_cast<size_t>(arena_ - 1)].arenas)
      if (arena.memory == in_memory_) return arena.reg;
    throw UserError(cat("the body of a map works in memory ", in_memory_), Source::none(),
                    "bodies of maps work in the memory of the program: transfer before the map");
  }
  std::vector<run::DeviceArena>& arenas = program_->device_arenas;
  const auto found = std::find_if(arenas.begin(), arenas.end(), [&](const run::DeviceArena& arena) {
    return arena.memory == in_memory_;
  });
  if (found != arenas.end()) return found->reg;
  arenas.push_back({.memory = in_memory_, .reg = new_register()});
  return arenas.back().reg;
}

int32_t LayoutBuilder::new_buffer(const TensorType& type, int64_t bytes, ByteClass byte_class,
                                  Source at, std::string_view name) {
  const int32_t reg = arena_register();
  const auto buffer = static_cast<int32_t>(program_->buffers.size());
  program_->buffers.push_back({.bytes = granted_bytes(bytes),
                               .lower = now(),
                               .upper = now() + 1,
                               .byte_class = byte_class,
                               .arena = arena_,
                               .memory = in_memory_,
                               .dtype = type.dtype,
                               .shape = type.shape,
                               .source = at,
                               .name = std::string(name)});
  return new_memory({.address = {reg, buffer, 0},
                     .room = Room::owned(bytes),
                     .writable = true,
                     .buffers = {buffer},
                     .device = in_memory_});
}

int32_t LayoutBuilder::new_host_buffer(const TensorType& type, Source at, std::string_view name) {
  const InMemory host(*this, device::kHostMemory);
  return new_buffer(type, bytes_of(type), ByteClass::temporaries, at, name);
}

void LayoutBuilder::extend_to_now(int32_t number) {
  for (const int32_t buffer : memory(number).buffers) {
    run::Buffer& kept = program_->buffers[static_cast<size_t>(buffer)];
    kept.upper = std::max(kept.upper, now());
  }
}

run::Address LayoutBuilder::address_of(Value value) {
  const ValueView& shown = view_of(value);
  const int32_t number = memory_of(shown.root);
  TIDEMARK_CHECK(number >= 0, "value of node ", value.node, " has no memory");
  run::Address address = memory(number).address;
  address.offset += shown.layout.data - kNowhere;
  return address;
}

int32_t LayoutBuilder::materialise(Value value, Source at) {
  const TensorType& type = graph_.type(value);
  const int32_t copy = new_buffer(type, bytes_of(type), ByteClass::temporaries, at,
                                  is_constant(value) ? "fill" : "copy");
  add_dense(value, copy, at);
  return copy;
}

// ---- steps --------------------------------------------------------------------------------------

TaskPlan LayoutBuilder::plan_op(const Node& node, std::span<const OperandLayout> operands,
                                std::span<const ArrayRef> results) const {
  OpWork work{.op = *node.op,
              .operands = operands,
              .attrs = node.attrs,
              .results = results,
              .at = node.source,
              .threads = threads()};
  const int fewer = threads_within(threads(), interface_.most_scratch, [&](int count) {
    work.threads = count;
    return backend().op_workspace(work);
  });
  work.threads = fewer;
  TaskPlan task = backend().op(work);
  if (fewer < threads()) task.threads = fewer;
  return task;
}

void LayoutBuilder::add_step(TaskPlan task, std::span<const run::Address> operands,
                             std::string_view name, Source at, bool fallible) {
  TIDEMARK_CHECK(fallible || operands.size() <= static_cast<size_t>(run::kMostOperands), name,
                 " has ", operands.size(), " operands");
  run::Step step;
  step.first_operand = static_cast<int32_t>(program_->addresses.size());
  step.operands = static_cast<int32_t>(operands.size());
  step.memory = in_memory_;
  step.fallible = fallible;
  step.threads = task.threads;
  step.source = at;
  step.name = std::string(name);
  program_->addresses.insert(program_->addresses.end(), operands.begin(), operands.end());
  if (task.workspace_bytes > 0) {
    const TensorType bytes{DType::u8, {task.workspace_bytes}};
    const int32_t workspace =
        new_buffer(bytes, task.workspace_bytes, ByteClass::workspace, at, name);
    step.workspace = memory(workspace).address;
  }
  tasks_.push_back(std::move(task));
  program_->steps.push_back(std::move(step));
}

void LayoutBuilder::add_copy(const run::Address& from, const ArrayRef& layout, int32_t to,
                             Source at) {
  const InMemory there(*this, memory(to).device);
  const TensorType type{layout.dtype, layout.shape};
  const run::Address places[] = {from, memory_for(to, bytes_of(type)).address};
  add_step(copy_task(backend(), layout, dense_layout(type), threads()), places, "copy", at);
  set_work(copy_work(type));
}

// Writes the value, which may be a literal, densely to the beginning of a memory.
void LayoutBuilder::add_dense(Value value, int32_t to, Source at) {
  const TensorType& type = graph_.type(value);
  const int32_t device = memory(to).device;
  if (!is_constant(value) && device_of(value) != device) {
    const InMemory there(*this, device_of(value));
    const int32_t copy = view_of(value).layout.is_contiguous() ? kNone : materialise(value, at);
    add_crossing(copy < 0 ? address_of(value) : memory(copy).address, device_of(value), to,
                 bytes_of(type), at);
    if (copy >= 0) extend_to_now(copy);
    return;
  }
  if (!is_constant(value)) return add_copy(address_of(value), view_of(value).layout, to, at);
  const InMemory there(*this, device);
  const run::Address place[] = {memory_for(to, bytes_of(type)).address};
  add_step(fill_task(backend(), constant_bits(value), dense_layout(type), threads()), place, "fill",
           at);
  set_work(fill_work(type));
}

void LayoutBuilder::add_crossing(const run::Address& from, int32_t from_device, int32_t to,
                                 int64_t bytes, Source at) {
  const Memory& target = memory_for(to, bytes);
  if (from_device != device::kHostMemory && target.device != device::kHostMemory) {
    throw UserError(cat("transfer: from ", device::memory_text(from_device), " to ",
                        device::memory_text(target.device)),
                    at, "copy it to the host between them: td::transfer(x, 0)");
  }
  run::Step step;
  step.kind = run::Step::Kind::copy;
  step.first_operand = static_cast<int32_t>(program_->addresses.size());
  step.operands = 2;
  step.memory = std::max(from_device, target.device);
  step.to_host = target.device == device::kHostMemory;
  step.bytes = bytes;
  step.work.bytes_moved = 2 * static_cast<double>(bytes);
  step.source = at;
  step.name = step.to_host ? "copy to the host" : "copy to the device";
  program_->addresses.push_back(from);
  program_->addresses.push_back(target.address);
  program_->steps.push_back(std::move(step));
}

run::Address LayoutBuilder::host_address(Value value, Source at, std::vector<int32_t>& kept) {
  if (!is_constant(value) && device_of(value) == device::kHostMemory) return address_of(value);
  const InMemory host(*this, device::kHostMemory);
  kept.push_back(materialise(value, at));
  return memory(kept.back()).address;
}

int32_t LayoutBuilder::last_fallible(RegionId region_id) const {
  const Region& region = graph_.regions[static_cast<size_t>(region_id)];
  const std::vector<bool> fallible = passes::fallible_nodes(graph_, region);
  for (size_t i = fallible.size(); i-- > 0;)
    if (fallible[i]) return static_cast<int32_t>(i);
  return kNone;
}

void LayoutBuilder::add_region(Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  analyse(scope.region);
  expect_results(scope);
  scope.last_fallible = last_fallible(scope.region);
  // A result that is a whole value is computed at its destination; each value at most once.
  for (size_t k = 0; k < region.results.size(); ++k) {
    const Value result = region.results[k];
    const int32_t self = root(result);
    const bool made_here = !is_constant(result) && memory_of(self) < 0;
    if (made_here && wish_[static_cast<size_t>(self)] < 0 &&
        same_layout(view_of(result).layout, dense_layout(graph_.type(result))) &&
        can_hold(scope.destinations[k], self) &&
        memory(scope.destinations[k].spare).device == device_of(result))
      wish_[static_cast<size_t>(self)] = static_cast<int32_t>(k);
  }
  // The initial carry of a loop is computed at the destination of the loop's result.
  for (size_t i = region.nodes.size(); i-- > 0;) {
    wish_for_carries(region.nodes[i], i);
    wish_for_operand(region.nodes[i], i, scope);
  }
  make_in_concat(scope);
  make_in_padding(scope);
  if (scope.is_body) find_early_copies(scope);
  for (const int32_t number : region.nodes) {
    if (scope.is_body) {
      count_what_is_saved_for(number);
      first_step_.push_back(now());
    }
    const int64_t first = now();
    add_node(scope, number);
    if (scope.is_body) copy_early(scope);
    if (scope.is_body) note_in_place(scope, first);
    ++scope.position;
  }
  const int64_t first = now();
  finish_results(scope);
  if (scope.is_body) note_in_place(scope, first);
}

// Notes the first steps that write over a parameter: a Variable, or a donated argument.
void LayoutBuilder::note_in_place(const Scope& scope, int64_t first) {
  if (program_->first_in_place != INT32_MAX) return;
  for (const Destination& destination : scope.destinations)
    if (destination.held >= 0 && destination.held != destination.spare)
      program_->first_in_place = static_cast<int32_t>(first);
}

// ---- the program --------------------------------------------------------------------------------

namespace {

int map_depth(const run::Program& program) {
  std::vector<int32_t> ends;  // Of the maps that enclose the step.
  size_t most = 0;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    while (!ends.empty() && ends.back() <= static_cast<int32_t>(i)) ends.pop_back();
    const run::Step& step = program.steps[i];
    if (step.kind != run::Step::Kind::map) continue;
    ends.push_back(step.end);
    most = std::max(most, ends.size());
  }
  return static_cast<int>(most);
}

}  // namespace

void LayoutBuilder::take_parameters() {
  const Region& body = graph_.body();
  for (size_t i = 0; i < body.parameters.size(); ++i) {
    const Value parameter = body.parameters[i];
    const TensorType& type = graph_.type(parameter);
    const Interface::Parameter& said = interface_.parameters[i];
    program_->parameters.push_back({.dtype = type.dtype,
                                    .shape = type.shape,
                                    .bytes = granted_bytes(bytes_of(type)),
                                    .memory = said.memory,
                                    .byte_class = said.byte_class,
                                    .source = graph_.node(parameter).source,
                                    .name = said.name});
    show_dense(parameter);
    if (!said.strides.empty()) view_of(parameter).layout.strides = said.strides;
    memory_of(id(parameter)) =
        new_memory({.address = {static_cast<int32_t>(1 + i), run::kNoBuffer, 0},
                    .room = Room::part(bytes_of(type)),
                    .writable = said.donated,
                    .buffers = {},
                    .device = said.memory});
    placed_in_[static_cast<size_t>(id(parameter))] = said.memory;
  }
}

// Copies the numbers that are read, if the program computes in another memory than the host's.
void LayoutBuilder::copy_numbers_in() {
  const Region& body = graph_.body();
  for (size_t i = 0; i < body.parameters.size(); ++i) {
    const Value parameter = body.parameters[i];
    if (!interface_.parameters[i].is_number || !is_read(parameter, Graph::kBody)) continue;
    const TensorType& type = graph_.type(parameter);
    const run::Address word = memory(memory_of(id(parameter))).address;
    const Source at = graph_.node(parameter).source;
    const int32_t copy =
        new_buffer(type, bytes_of(type), ByteClass::temporaries, at, "copy to the device");
    add_crossing(word, device::kHostMemory, copy, bytes_of(type), at);
    show_in(parameter, copy);
    memory(copy).writable = false;
    numbers_.push_back(copy);
  }
}

bool LayoutBuilder::is_read(Value value, RegionId region_id) const {
  const Region& region = graph_.regions[static_cast<size_t>(region_id)];
  return std::any_of(region.nodes.begin(), region.nodes.end(), [&](int32_t number) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    return std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
  });
}

int32_t LayoutBuilder::trip_seen(Value parameter, RegionId region, int32_t trip,
                                 std::vector<int32_t>& kept, Source at) {
  const std::vector<Value>& results = graph_.regions[static_cast<size_t>(region)].results;
  const bool is_given = std::find(results.begin(), results.end(), parameter) != results.end();
  if (interface_.home == device::kHostMemory || (!is_read(parameter, region) && !is_given))
    return trip;
  const int64_t bytes = bytes_of(graph_.type(parameter));
  kept.push_back(
      new_buffer(graph_.type(parameter), bytes, ByteClass::temporaries, at, "copy to the device"));
  add_crossing(memory(trip).address, device::kHostMemory, kept.back(), bytes, at);
  return kept.back();
}

Layout LayoutBuilder::run() {
  const Region& body = graph_.body();
  take_parameters();
  program_->registers = static_cast<int32_t>(1 + body.parameters.size() + body.results.size());
  std::vector<Destination> destinations = destinations_of_results();
  Scope scope{.region = Graph::kBody, .destinations = destinations, .is_body = true};
  const std::vector<int32_t> passed = pass_parameters_on(destinations);
  if (interface_.home != device::kHostMemory) copy_numbers_in();
  add_region(scope);
  for (const int32_t number : numbers_) extend_to_now(number);
  list_results(destinations, passed);
  place_arenas();
  program_->map_depth = map_depth(*program_);
  first_step_.push_back(now());
  return {std::move(program_), std::move(tasks_), std::move(first_step_)};
}

Layout layout(const Graph& graph, const Interface& interface, Placements& placements) {
  detail::poll_interrupt();
  return LayoutBuilder(graph, interface, placements).run();
}

passes::PassOptions pass_options(const Interface& interface, bool fuse, passes::Fusions* fusions) {
  return {.fuse = fuse,
          .fusions = fusions,
          .updates = interface.updates(),
          .needed = [&interface](const Graph& graph) {
            return layout(graph, interface).program->peak_bytes();
          }};
}

}  // namespace tidemark::compile
