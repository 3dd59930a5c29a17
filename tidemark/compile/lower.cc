#include "tidemark/compile/lower.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "tidemark/compile/group.h"
#include "tidemark/compile/lowerer.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/passes.h"
#include "tidemark/plan/plan.h"

namespace tidemark::compile {
namespace {

int64_t bytes_of(const TensorType& type) { return type.shape.size() * size_of(type.dtype); }

// Where an array lies in itself padded; nothing where its elements lie apart there.
std::optional<ArrayRef> part_of_padded(ArrayRef whole, const TensorType& type, const Node& pad) {
  Attrs::Reader read = pad.attrs.read();
  const AxisList low(read.integers());
  read.integers();
  for (const int64_t gap : read.integers())
    if (gap != 0) return {};
  for (size_t axis = 0; axis < low.size(); ++axis) {
    if (low[axis] < 0) return {};
    whole.data += low[axis] * whole.strides[axis] * size_of(type.dtype);
  }
  whole.shape = type.shape;
  return whole;
}

bool same_layout(const ArrayRef& a, const ArrayRef& b) {
  return a.data == b.data && a.shape == b.shape && a.strides == b.strides &&
         size_of(a.dtype) == size_of(b.dtype);
}

}  // namespace

std::string group_name(const Graph& graph, const Node& group) {
  std::string text;
  size_t more = 0;
  for (const int32_t number : graph.regions[static_cast<size_t>(group.regions[0])].nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op->view != nullptr || node.op->family == Family::source) continue;
    if (text.size() > 40)
      ++more;
    else
      text += cat(text.empty() ? "" : " + ", node.op->name);
  }
  return more == 0 ? text : cat(text, " + ", more, " more");
}

Lowerer::Lowerer(const Graph& graph, const Interface& interface, Placements& placements,
                 KernelBatch* batch)
    : graph_(graph),
      interface_(interface),
      placements_(placements),
      batch_(batch),
      program_(std::make_shared<run::Program>()) {
  program_->threads = num_threads();
  int32_t values = 0;
  for (const Node& node : graph.nodes) {
    first_value_.push_back(values);
    values += static_cast<int32_t>(node.results.size());
  }
  const auto count = static_cast<size_t>(values);
  seen_.resize(count);
  constant_.resize(count, kNone);
  memory_of_.resize(count, kNone);
  last_use_.resize(count, kNone);
  wish_.resize(count, kNone);
  placed_in_.resize(count, 0);
}

// ---- values -------------------------------------------------------------------------------------

uint64_t Lowerer::constant_bits(Value value) {
  const Node& literal =
      graph_.nodes[static_cast<size_t>(constant_[static_cast<size_t>(root(value))])];
  Attrs::Reader read = literal.attrs.read();
  const DType dtype = read.dtype();
  const double real = read.number();
  return number_bits(real, read.integer(), is_float(dtype), dtype);
}

void Lowerer::show_dense(Value value) {
  seen(value) = {id(value), dense_layout(graph_.type(value))};
}

int32_t Lowerer::memory_number(const Node& node) {
  if (node.op->self == &ops::transfer) return static_cast<int32_t>(node.attrs.read().integer());
  int32_t common = kNone;
  for (const Value input : node.inputs) {
    if (is_constant(input)) continue;
    const int32_t memory = placed_in_[static_cast<size_t>(root(input))];
    if (common < 0) common = memory;
    if (memory != common) {
      throw UserError(
          cat(node.op->name, ": its operands lie in memories ", common, " and ", memory),
          node.source, "a node computes where its operands lie: transfer one of them");
    }
  }
  return std::max(common, 0);
}

void Lowerer::expect_on_host(Value value, std::string_view what, Source at) {
  const int32_t memory = placed_in_[static_cast<size_t>(root(value))];
  if (memory == 0 || is_constant(value)) return;
  throw UserError(cat(what, " lies in memory ", memory, ", where the host cannot read it"), at,
                  "transfer it to memory 0 before");
}

void Lowerer::analyse(RegionId region_id) {
  const Region& region = graph_.regions[static_cast<size_t>(region_id)];
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const int32_t number = region.nodes[i];
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    for (const Value input : node.inputs) last_use(root(input)) = static_cast<int32_t>(i);
    for (size_t r = 0; r < node.results.size(); ++r) show_dense({number, static_cast<int16_t>(r)});
    const Value result{number, 0};
    if (node.op->self == &ops::constant) constant_[static_cast<size_t>(id(result))] = number;
    if (node.op->view != nullptr) {
      ArrayRef view = dense_layout(graph_.type(result));
      if (node.op->view(seen(node.inputs[0]).layout, node.attrs, view))
        seen(result) = {root(node.inputs[0]), view};
    }
    const bool by_host = !node.regions.empty() && node.op->self != &ops::group;
    if (by_host || node.op->family == Family::effect) {
      for (const Value input : node.inputs)
        expect_on_host(input, cat("an operand of ", node.op->name), node.source);
    } else {
      const int32_t memory = memory_number(node);
      for (size_t r = 0; r < node.results.size(); ++r)
        placed_in_[static_cast<size_t>(root({number, static_cast<int16_t>(r)}))] = memory;
    }
    // What a node gives and nobody reads dies where it is made.
    for (size_t r = 0; r < node.results.size(); ++r) {
      const Value made{number, static_cast<int16_t>(r)};
      last_use(root(made)) = static_cast<int32_t>(i);
    }
  }
  for (const Value result : region.results) {
    expect_on_host(result, "a result", graph_.node(result).source);
    last_use(root(result)) = kEnd;
  }
}

int64_t Lowerer::whole_bytes(int32_t root) const {
  const ArrayRef& whole = seen_[static_cast<size_t>(root)].layout;
  return whole.size() * size_of(whole.dtype);
}

// ---- memory -------------------------------------------------------------------------------------

int32_t Lowerer::new_memory(Memory made) {
  memories_.push_back(std::move(made));
  return static_cast<int32_t>(memories_.size() - 1);
}

// Of the arena that buffers are taken from now.
int32_t Lowerer::arena_register() {
  if (in_memory_ == 0) return arena_reg_;
  if (arena_ != 0) {
    throw UserError(cat("the body of a map works in memory ", in_memory_), Source::none(),
                    "bodies of maps work in the host's memory: transfer before the map");
  }
  std::vector<run::DeviceArena>& arenas = program_->device_arenas;
  const auto found = std::find_if(arenas.begin(), arenas.end(), [&](const run::DeviceArena& arena) {
    return arena.memory == in_memory_;
  });
  if (found != arenas.end()) return found->reg;
  arenas.push_back({.memory = in_memory_, .reg = new_register()});
  return arenas.back().reg;
}

int32_t Lowerer::new_buffer(const TensorType& type, int64_t bytes, ByteClass byte_class, Source at,
                            std::string_view name) {
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
                     .bytes = granted_bytes(bytes),
                     .writable = true,
                     .buffers = {buffer}});
}

void Lowerer::extend_to_now(int32_t number) {
  for (const int32_t buffer : memory(number).buffers) {
    run::Buffer& kept = program_->buffers[static_cast<size_t>(buffer)];
    kept.upper = std::max(kept.upper, now());
  }
}

run::Address Lowerer::address_of(Value value) {
  const Seen& shown = seen(value);
  const int32_t number = memory_of(shown.root);
  TIDEMARK_CHECK(number >= 0, "value of node ", value.node, " has no memory");
  run::Address address = memory(number).address;
  address.offset += shown.layout.data - kNowhere;
  return address;
}

// Which operand's bytes each op may write its result to: it reads an element before it writes
// there.
bool Lowerer::overwrites(const Node& node, size_t operand, size_t result) {
  const Value input = node.inputs[operand];
  const ArrayRef wanted = dense_layout(node.results[result]);
  if (is_constant(input) || !same_layout(seen(input).layout, wanted)) return false;
  // Another operand that shows the same bytes otherwise would see them change.
  for (const Value other : node.inputs) {
    if (root(other) == root(input) && !same_layout(seen(other).layout, wanted)) return false;
  }
  if (node.op->self == &ops::group) {
    // One result in the bytes of an input; others of the group are stored apart. An array may come
    // in twice, and be read the second time when the result is there already.
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (root(node.inputs[k]) == root(input) &&
          !may_overwrite(graph_, node, static_cast<int32_t>(k), static_cast<int32_t>(result)))
        return false;
    }
    return true;
  }
  if (node.op->family == Family::pointwise || node.op->family == Family::row) return true;
  return updates_first_operand(*node.op) && operand == 0 &&
         std::count_if(node.inputs.begin(), node.inputs.end(),
                       [&](Value other) { return root(other) == root(input); }) == 1;
}

// Whether the bytes of `place_root` may take this node's result.
bool Lowerer::is_free(int32_t place_root, size_t result, const Scope& scope, const Node& node) {
  if (place_root < 0 || last_use(place_root) < scope.position) return true;
  if (last_use(place_root) > scope.position) return false;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (root(node.inputs[k]) == place_root && !overwrites(node, k, result)) return false;
  }
  return true;
}

// A donated parameter that this node reads for the last time, and whose bytes its result may take.
int32_t Lowerer::dying_parameter(const Node& node, Value result, const Scope& scope) {
  const int64_t bytes = granted_bytes(bytes_of(graph_.type(result)));
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const int32_t operand = root(node.inputs[k]);
    const int32_t held = memory_of(operand);
    const auto parameters = static_cast<int32_t>(program_->parameters.size());
    // Another result of this node may be wanted there.
    const int32_t promised = wish_[static_cast<size_t>(operand)];
    if (held < 0 || !memory(held).writable || last_use(operand) != scope.position ||
        memory(held).bytes != bytes || memory(held).address.reg < 1 ||
        memory(held).address.reg > parameters ||
        (promised >= 0 && promised != wish_[static_cast<size_t>(id(result))]) ||
        !overwrites(node, k, static_cast<size_t>(result.result)))
      continue;
    memory_of(operand) = kNone;
    return held;
  }
  return kNone;
}

// Whether a Variable written by this node may be wanted back. An index is looked at before anything
// is written.
bool Lowerer::may_fail_from(const Node& node, const Scope& scope) const {
  if (!scope.is_body) return false;
  return scope.last_fallible > scope.position ||
         (scope.last_fallible == scope.position && node.op->family != Family::index);
}

// Why a node's result does not become a Variable's bytes.
std::string Lowerer::reason_against(const Scope& scope, const Node& node) const {
  if (!may_fail_from(node, scope))
    return cat("its old value is read by ", node.op->name, " or later (", node.source.text(), ")");
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  const int32_t number = region.nodes[static_cast<size_t>(scope.last_fallible)];
  const Node& fallible = graph_.nodes[static_cast<size_t>(number)];
  return cat(fallible.op->name, " may fail after it (", fallible.source.text(), ")");
}

// Which of its places a destination becomes.
void Lowerer::settle(Destination& destination, const Node& node, Value result, const Scope& scope) {
  const bool may_throw_later = may_fail_from(node, scope);
  const bool free =
      destination.place >= 0 &&
      is_free(destination.place_root, static_cast<size_t>(result.result), scope, node);
  if (free && !may_throw_later) {
    destination.held = destination.place;
    return;
  }
  if (destination.place >= 0) destination.why_not = reason_against(scope, node);
  if (scope.is_body) destination.held = dying_parameter(node, result, scope);
  if (destination.held < 0) destination.held = destination.spare;
}

int32_t Lowerer::choose(const Node& node, Value result, Scope& scope) {
  const int32_t self = root(result);
  if (memory_of(self) >= 0) return memory_of(self);  // What it is padded from was made there.
  if (self != id(result)) return memory_of(self) = choose_whole(node, self, scope);
  const TensorType& type = graph_.type(result);
  const int64_t bytes = granted_bytes(bytes_of(type));
  int32_t chosen = kNone;
  if (const int32_t wish = wish_[static_cast<size_t>(self)]; wish >= 0) {
    Destination& destination = scope.destinations[static_cast<size_t>(wish)];
    // An operand that ends here may have been made there: then that is settled.
    if (destination.held < 0) settle(destination, node, result, scope);
    chosen = destination.held;
  }
  for (size_t k = 0; k < node.inputs.size() && chosen < 0; ++k) {
    const int32_t operand = root(node.inputs[k]);
    const int32_t held = memory_of(operand);
    // It may lie where another result of this node is wanted.
    const int32_t promised = wish_[static_cast<size_t>(operand)];
    if (held < 0 || !memory(held).writable || last_use(operand) != scope.position ||
        memory(held).bytes != bytes || !overwrites(node, k, static_cast<size_t>(result.result)) ||
        (promised >= 0 && promised != wish_[static_cast<size_t>(self)]))
      continue;
    chosen = held;
    memory_of(operand) = kNone;  // It is the result's now.
  }
  if (chosen < 0) {
    const bool is_group = node.op->self == &ops::group;
    chosen = new_buffer(type, bytes_of(type), ByteClass::temporaries, node.source,
                        is_group ? group_name(graph_, node) : std::string(node.op->name));
  }
  memory_of(self) = chosen;
  return chosen;
}

int32_t Lowerer::choose_whole(const Node& node, int32_t whole, Scope& scope) {
  if (const int32_t wish = wish_[static_cast<size_t>(whole)]; wish >= 0) {
    Destination& destination = scope.destinations[static_cast<size_t>(wish)];
    return destination.held = destination.spare;
  }
  const ArrayRef& layout = seen_[static_cast<size_t>(whole)].layout;
  return new_buffer({layout.dtype, layout.shape}, whole_bytes(whole), ByteClass::temporaries,
                    node.source, node.op->name);
}

int32_t Lowerer::materialise(Value value, Source at) {
  const TensorType& type = graph_.type(value);
  const int32_t copy = new_buffer(type, bytes_of(type), ByteClass::temporaries, at,
                                  is_constant(value) ? "fill" : "copy");
  const ArrayRef layout = dense_layout(type);
  if (is_constant(value)) {
    const run::Address to[] = {memory(copy).address};
    emit(fill_task(constant_bits(value), layout), to, "fill", at);
  } else {
    emit_copy(address_of(value), seen(value).layout, memory(copy).address, at);
  }
  return copy;
}

// ---- steps --------------------------------------------------------------------------------------

void Lowerer::emit(MadeTask made, std::span<const run::Address> operands, std::string_view name,
                   Source at, bool fallible) {
  TIDEMARK_CHECK(operands.size() <= static_cast<size_t>(run::kMostOperands), name, " has ",
                 operands.size(), " operands");
  run::Step step;
  step.task = made.task.get();
  step.first_operand = static_cast<int32_t>(program_->addresses.size());
  step.operands = static_cast<int32_t>(operands.size());
  step.memory = in_memory_;
  step.fallible = fallible;
  step.source = at;
  step.name = std::string(name);
  program_->addresses.insert(program_->addresses.end(), operands.begin(), operands.end());
  if (made.workspace_bytes > 0) {
    const TensorType bytes{DType::u8, {made.workspace_bytes}};
    const int32_t workspace =
        new_buffer(bytes, made.workspace_bytes, ByteClass::workspace, at, name);
    step.workspace = memory(workspace).address;
  }
  program_->tasks.push_back(std::move(made.task));
  program_->steps.push_back(std::move(step));
}

void Lowerer::emit_copy(const run::Address& from, const ArrayRef& layout, const run::Address& to,
                        Source at) {
  const run::Address places[] = {from, to};
  emit(copy_task(layout, dense_layout({layout.dtype, layout.shape})), places, "copy", at);
}

int32_t Lowerer::last_fallible(RegionId region_id) const {
  const Region& region = graph_.regions[static_cast<size_t>(region_id)];
  const std::vector<bool> fallible = passes::fallible_nodes(graph_, region);
  for (size_t i = fallible.size(); i-- > 0;)
    if (fallible[i]) return static_cast<int32_t>(i);
  return kNone;
}

void Lowerer::wish_for_carries(int32_t number, size_t position) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  size_t first = 0, carries = 0;
  if (node.op->self == &ops::loop) {
    const LoopAttrs attrs(node);
    first = attrs.first_carry();
    carries = static_cast<size_t>(attrs.carries);
  } else if (node.op->self == &ops::reverse_loop) {
    const ReverseAttrs attrs(node);
    first = static_cast<size_t>(1 + 2 * attrs.carries);
    carries = static_cast<size_t>(attrs.backs);
  }
  for (size_t k = 0; k < carries; ++k) {
    const Value initial = node.inputs[first + k];
    const int32_t start = root(initial);
    const int32_t wish = wish_[static_cast<size_t>(id({number, static_cast<int16_t>(k)}))];
    const bool whole = same_layout(seen(initial).layout, dense_layout(graph_.type(initial))) &&
                       start == id(initial);
    const bool once = std::count_if(node.inputs.begin(), node.inputs.end(),
                                    [&](Value other) { return root(other) == start; }) == 1;
    if (wish >= 0 && whole && once && !is_constant(initial) && memory_of(start) < 0 &&
        wish_[static_cast<size_t>(start)] < 0 && last_use(start) == static_cast<int32_t>(position))
      wish_[static_cast<size_t>(start)] = wish;
  }
}

// What ends in the bytes of a result is made there. Not where a Variable is written: its old value
// may still be read when the operand is made. Nor where the result can take the bytes of a
// parameter given away: then it needs none of its own.
void Lowerer::wish_for_operand(int32_t number, size_t position, const Scope& scope) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value result{number, static_cast<int16_t>(r)};
    const int32_t wish = wish_[static_cast<size_t>(id(result))];
    if (wish < 0 || scope.destinations[static_cast<size_t>(wish)].place >= 0) continue;
    const auto is_given = [&](size_t k) {
      const int32_t held = memory_of(root(node.inputs[k]));
      return held >= 0 && memory(held).writable &&
             last_use(root(node.inputs[k])) == static_cast<int32_t>(position) &&
             overwrites(node, k, r);
    };
    bool takes_given = false;
    for (size_t k = 0; k < node.inputs.size(); ++k) takes_given = takes_given || is_given(k);
    for (size_t k = 0; k < node.inputs.size() && !takes_given; ++k) {
      const int32_t operand = root(node.inputs[k]);
      const bool made_here = operand == id(node.inputs[k]) && memory_of(operand) < 0 &&
                             !is_constant(node.inputs[k]) &&
                             last_use(operand) == static_cast<int32_t>(position);
      const bool loops = graph_.node(node.inputs[k]).op != nullptr &&
                         graph_.node(node.inputs[k]).op->self == &ops::loop;
      if (!made_here || loops || wish_[static_cast<size_t>(operand)] >= 0 ||
          whole_bytes(operand) != bytes_of(graph_.type(result)) || !overwrites(node, k, r))
        continue;
      wish_[static_cast<size_t>(operand)] = wish;
      break;
    }
  }
}

// What is only padded is made inside the padded array, which then needs no copy and no bytes beside
// it. Not where those would wait long for little, nor where they are a Variable's.
void Lowerer::make_in_padding(const Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  std::unordered_map<int32_t, int32_t> uses;
  for (const int32_t number : region.nodes)
    for (const Value input : graph_.nodes[static_cast<size_t>(number)].inputs) ++uses[id(input)];
  for (const Value result : region.results) ++uses[id(result)];
  for (size_t i = 1; i < region.nodes.size(); ++i) {
    const Node& node = graph_.nodes[static_cast<size_t>(region.nodes[i])];
    if (node.op->self != &ops::pad) continue;
    const Value inner = node.inputs[0];
    const Node& maker = graph_.node(inner);
    const int32_t whole = id({region.nodes[i], 0}), wish = wish_[static_cast<size_t>(whole)];
    const bool is_made = maker.op != nullptr &&
                         (maker.op->self == &ops::group || maker.op->family == Family::pointwise);
    const bool at_once = inner.node == region.nodes[i - 1];
    if (!is_made || uses[id(inner)] != 1 || root(inner) != id(inner) || is_constant(inner) ||
        memory_of(id(inner)) >= 0 || wish_[static_cast<size_t>(id(inner))] >= 0 ||
        (wish >= 0 && scope.destinations[static_cast<size_t>(wish)].place >= 0) ||
        (!at_once && 4 * whole_bytes(whole) > 5 * whole_bytes(id(inner))))
      continue;
    if (const auto part = part_of_padded(dense_layout(node.results[0]), graph_.type(inner), node))
      seen(inner) = {whole, *part};
  }
}

void Lowerer::emit_region(Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  analyse(scope.region);
  scope.last_fallible = last_fallible(scope.region);
  // A result that is a whole value is made where it is wanted; each value at most once. The first
  // elements of a larger one look alike, and need more room.
  for (size_t k = 0; k < region.results.size(); ++k) {
    const Value result = region.results[k];
    const int32_t self = root(result);
    const bool made_here = !is_constant(result) && memory_of(self) < 0;
    if (made_here && wish_[static_cast<size_t>(self)] < 0 &&
        same_layout(seen(result).layout, dense_layout(graph_.type(result))) &&
        scope.destinations[k].spare >= 0 &&
        memory(scope.destinations[k].spare).bytes == granted_bytes(whole_bytes(self)))
      wish_[static_cast<size_t>(self)] = static_cast<int32_t>(k);
  }
  // What a loop starts from is made where its result is wanted.
  for (size_t i = region.nodes.size(); i-- > 0;) {
    wish_for_carries(region.nodes[i], i);
    wish_for_operand(region.nodes[i], i, scope);
  }
  make_in_padding(scope);
  for (const int32_t number : region.nodes) {
    if (scope.is_body) count_what_is_saved_for(number);
    emit_node(scope, number);
    ++scope.position;
  }
  finish_results(scope);
}

// Results that are not yet where they are wanted: parameters, views, literals, one value twice.
void Lowerer::finish_results(Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  for (size_t k = 0; k < region.results.size(); ++k) {
    const Value result = region.results[k];
    Destination& destination = scope.destinations[k];
    const int32_t self = root(result);
    const bool in_place = !is_constant(result) && memory_of(self) == destination.place &&
                          destination.place >= 0 &&
                          same_layout(seen(result).layout, dense_layout(graph_.type(result)));
    if (in_place && destination.held < 0) destination.held = destination.place;
    if (destination.held >= 0 &&
        (in_place || wish_[static_cast<size_t>(self)] == static_cast<int32_t>(k)))
      continue;
    if (destination.spare < 0) continue;  // Whoever asked takes it where it lies.
    // All steps have run: nothing can fail any more, and only results read what was there.
    const bool is_read = std::any_of(
        region.results.begin(), region.results.end(),
        [&](Value other) { return !is_constant(other) && root(other) == destination.place_root; });
    destination.held = destination.place >= 0 && !is_read ? destination.place : destination.spare;
    if (is_read) destination.why_not = "its old value is a result too";
    const run::Address to = memory(destination.held).address;
    const Source at = graph_.node(result).source;
    if (is_constant(result)) {
      emit(fill_task(constant_bits(result), dense_layout(graph_.type(result))), {&to, 1}, "fill",
           at);
    } else {
      emit_copy(address_of(result), seen(result).layout, to, at);
    }
  }
  for (const Value result : region.results) {
    const int32_t held = is_constant(result) ? kNone : memory_of(root(result));
    if (held >= 0) extend_to_now(held);
  }
}

void Lowerer::emit_node(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Value result{number, 0};
  if (node.op->self == &ops::constant) return;
  in_memory_ = node.results.empty() ? 0 : placed_in_[static_cast<size_t>(root(result))];
  if (node.op->view != nullptr && root(result) != id(result)) {
    // A view keeps its bytes: nothing to do, and nothing ends but by its last reader.
  } else if (node.op->view != nullptr) {
    emit_view_copy(number);
  } else if (node.op->self == &ops::transfer) {
    emit_transfer(scope, number);
  } else if (node.op->self == &ops::cond) {
    emit_cond(scope, number);
  } else if (node.op->self == &ops::loop) {
    emit_loop(scope, number);
  } else if (node.op->self == &ops::reverse_loop) {
    emit_reverse(scope, number);
  } else if (node.op->self == &ops::map) {
    emit_map(scope, number);
  } else if (node.op->self == &ops::group) {
    emit_group(scope, number);
  } else if (node.op->family == Family::effect) {
    emit_effect(number);
  } else if (node.op->family == Family::pointwise) {
    emit_pointwise(scope, number);
  } else {
    emit_op(scope, number);
  }
  in_memory_ = 0;
  for (const Value input : node.inputs) {
    const int32_t held = memory_of(root(input));
    if (held >= 0) extend_to_now(held);
  }
  for (size_t r = 0; r < node.results.size(); ++r) {
    const int32_t held = memory_of(root({number, static_cast<int16_t>(r)}));
    if (held >= 0) extend_to_now(held);
  }
}

void Lowerer::emit_pointwise(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Value result{number, 0};
  const TensorType& type = node.results[0];
  std::vector<PointwiseOperand> operands;
  std::vector<OperandType> types;
  std::vector<run::Address> places;
  for (const Value input : node.inputs) {
    types.push_back({.dtype = graph_.type(input).dtype});
    if (is_constant(input)) {
      operands.push_back({.is_number = true, .number = constant_bits(input), .layout = {}});
    } else {
      operands.push_back({.layout = stretched(seen(input).layout, type.shape)});
      places.push_back(address_of(input));
    }
  }
  PointwiseType inferred;
  if (node.op->value != nullptr) {
    inferred = infer_pointwise(*node.op, types, node.source);
  } else {  // cast
    inferred = {.compute = {types[0].dtype}, .result = type.dtype};
  }
  choose(node, result, scope);
  places.push_back(address_of(result));
  emit(pointwise_task(*node.op, operands, inferred, seen(result).layout), places, node.op->name,
       node.source);
}

// Where a node's operands lie; literals are written out for it.
void Lowerer::read_operands(const Node& node, std::vector<ArrayRef>& layouts,
                            std::vector<run::Address>& places, std::vector<int32_t>& literals) {
  for (const Value input : node.inputs) {
    layouts.push_back(seen(input).layout);
    if (is_constant(input)) {
      literals.push_back(materialise(input, node.source));
      layouts.back() = dense_layout(graph_.type(input));
      places.push_back(memory(literals.back()).address);
    } else {
      places.push_back(address_of(input));
    }
  }
}

void Lowerer::emit_op(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  std::vector<ArrayRef> layouts;
  std::vector<run::Address> places;
  std::vector<int32_t> literals;
  read_operands(node, layouts, places, literals);
  const int32_t held = choose(node, {number, 0}, scope);
  places.push_back(memory(held).address);
  emit(op_task(*node.op, layouts, node.attrs, dense_layout(node.results[0]), node.source), places,
       node.op->name, node.source, passes::can_fail(graph_, node));
  for (const int32_t literal : literals) extend_to_now(literal);
}

// A view that needs its operand dense: the copy is the result's memory.
void Lowerer::emit_view_copy(int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  memory_of(id({number, 0})) = materialise(node.inputs[0], node.source);
}

// Dense bytes to dense bytes; what is not dense is made so where it lies.
void Lowerer::emit_transfer(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Value input = node.inputs[0];
  const int32_t to = in_memory_;
  const int32_t from = is_constant(input) ? to : placed_in_[static_cast<size_t>(root(input))];
  if (from == to) {
    memory_of(id({number, 0})) = materialise(input, node.source);
    return;
  }
  if (from != 0 && to != 0) {
    throw UserError(cat("transfer: from memory ", from, " to memory ", to), node.source,
                    "transfer to the host's, 0, between them");
  }
  in_memory_ = from;
  const int32_t copy = seen(input).layout.is_contiguous() ? kNone : materialise(input, node.source);
  const run::Address source = copy < 0 ? address_of(input) : memory(copy).address;
  in_memory_ = to;
  run::Step step;
  step.kind = run::Step::Kind::copy;
  step.first_operand = static_cast<int32_t>(program_->addresses.size());
  step.operands = 2;
  step.memory = std::max(from, to);
  step.to_host = to == 0;
  step.bytes = bytes_of(node.results[0]);
  step.source = node.source;
  step.name = to == 0 ? "copy to the host" : "copy to the device";
  program_->addresses.push_back(source);
  program_->addresses.push_back(memory(choose(node, {number, 0}, scope)).address);
  program_->steps.push_back(std::move(step));
  if (copy >= 0) extend_to_now(copy);
}

void Lowerer::emit_effect(int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  std::vector<ArrayRef> layouts;
  std::vector<run::Address> places;
  std::vector<int32_t> literals;
  read_operands(node, layouts, places, literals);
  emit(effect_task(*node.op, layouts, node.attrs, node.source), places, node.op->name, node.source,
       true);
  for (const int32_t literal : literals) extend_to_now(literal);
}

void Lowerer::emit_group(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  std::vector<ArrayRef> layouts, results;
  std::vector<run::Address> places;
  std::vector<int32_t> literals;
  read_operands(node, layouts, places, literals);
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value result{number, static_cast<int16_t>(r)};
    choose(node, result, scope);
    places.push_back(address_of(result));
    results.push_back(seen(result).layout);
  }
  emit(group_task(graph_, node, layouts, results, batch_), places, group_name(graph_, node),
       node.source);
  for (const int32_t literal : literals) extend_to_now(literal);
}

// ---- the whole ----------------------------------------------------------------------------------

namespace {

// As the first program of the graph lies, moved to these sizes; anew where that wastes memory and
// the program is small.
plan::Placement place_arena(const plan::Problem& problem, size_t arena, Placements& placements) {
  constexpr double most_waste = 1.02;
  constexpr size_t small = 2'000;
  Placements::Arena& known = placements.arenas[arena];
  const bool lives_alike = std::equal(
      problem.buffers.begin(), problem.buffers.end(), known.lifetimes.begin(),
      known.lifetimes.end(), [](const plan::Buffer& buffer, const plan::Lifetime& lifetime) {
        return buffer.lifetime.begin == lifetime.begin && buffer.lifetime.end == lifetime.end;
      });
  std::vector<int64_t> sizes;
  for (const plan::Buffer& buffer : problem.buffers) sizes.push_back(buffer.size_bytes);
  const auto is_good = [&](const plan::Placement& placed) {
    return problem.buffers.size() > small ||
           static_cast<double>(placed.tidemark_bytes) <=
               most_waste * static_cast<double>(plan::load_bytes(problem));
  };
  if (lives_alike && !known.relation.starts.empty()) {
    plan::Placement moved = plan::replace(known.relation, sizes);
    if (is_good(moved)) return moved;
  }
  plan::Placement placed = plan::place(problem, {.nodes = 20'000}).placement;
  if (!known.relation.starts.empty()) return placed;
  known.relation = plan::below_relation(problem, placed);
  for (const plan::Buffer& buffer : problem.buffers) known.lifetimes.push_back(buffer.lifetime);
  // What the relation gives, so that the same sizes lie the same way later.
  plan::Placement moved = plan::replace(known.relation, sizes);
  return is_good(moved) ? moved : placed;
}

}  // namespace

Lowerer::Placed Lowerer::place_those(const std::function<bool(const run::Buffer&)>& is_there,
                                     size_t arena) {
  plan::Problem problem;
  std::vector<size_t> which;
  for (size_t i = 0; i < program_->buffers.size(); ++i) {
    const run::Buffer& buffer = program_->buffers[i];
    if (!is_there(buffer)) continue;
    which.push_back(i);
    problem.buffers.push_back(
        {.lifetime = {buffer.lower, buffer.upper}, .size_bytes = buffer.bytes});
  }
  const plan::Placement placed = place_arena(problem, arena, placements_);
  for (size_t i = 0; i < which.size(); ++i) program_->offsets[which[i]] = placed.offsets[i];
  return {placed.tidemark_bytes, plan::load_bytes(problem)};
}

void Lowerer::place_arenas() {
  const auto arenas = static_cast<int32_t>(program_->maps.size() + 1);
  const size_t all = static_cast<size_t>(arenas) + program_->device_arenas.size();
  if (placements_.arenas.size() < all) placements_.arenas.resize(all);
  program_->offsets.assign(program_->buffers.size(), 0);
  for (size_t i = 0; i < program_->device_arenas.size(); ++i) {
    run::DeviceArena& arena = program_->device_arenas[i];
    const Placed placed =
        place_those([&](const run::Buffer& buffer) { return buffer.memory == arena.memory; },
                    static_cast<size_t>(arenas) + i);
    arena.bytes = placed.tidemark_bytes;
    arena.load_bytes = placed.load_bytes;
  }
  // A map's arenas are one buffer of the arena around it: innermost first.
  for (int32_t arena = arenas - 1; arena >= 0; --arena) {
    const Placed placed = place_those(
        [&](const run::Buffer& buffer) { return buffer.arena == arena && buffer.memory == 0; },
        static_cast<size_t>(arena));
    if (arena == 0) {
      program_->arena_bytes = placed.tidemark_bytes;
      program_->load_bytes = placed.load_bytes;
    } else {
      run::Map& map = program_->maps[static_cast<size_t>(arena - 1)];
      map.arena_bytes = placed.tidemark_bytes;
      run::Buffer& bodies = program_->buffers[static_cast<size_t>(map.arenas.buffer)];
      bodies.bytes = map.arena_bytes * map.alive;
      bodies.shape = {bodies.bytes};
    }
  }
}

std::shared_ptr<run::Program> Lowerer::run() {
  const Region& body = graph_.body();
  for (size_t i = 0; i < body.parameters.size(); ++i) {
    const Value parameter = body.parameters[i];
    const TensorType& type = graph_.type(parameter);
    const Interface::Parameter& said = interface_.parameters[i];
    program_->parameters.push_back({.dtype = type.dtype,
                                    .shape = type.shape,
                                    .bytes = granted_bytes(bytes_of(type)),
                                    .byte_class = said.byte_class,
                                    .source = graph_.node(parameter).source,
                                    .name = said.name});
    show_dense(parameter);
    if (!said.strides.empty()) seen(parameter).layout.strides = said.strides;
    memory_of(id(parameter)) =
        new_memory({.address = {static_cast<int32_t>(1 + i), run::kNoBuffer, 0},
                    .bytes = granted_bytes(bytes_of(type)),
                    .writable = said.donated,
                    .buffers = {}});
  }
  program_->registers = static_cast<int32_t>(1 + body.parameters.size() + body.results.size());
  std::vector<Destination> destinations(body.results.size());
  for (size_t k = 0; k < body.results.size(); ++k) {
    const TensorType& type = graph_.type(body.results[k]);
    Destination& destination = destinations[k];
    destination.spare = new_memory(
        {.address = {program_->result_register(static_cast<int32_t>(k)), run::kNoBuffer, 0},
         .bytes = granted_bytes(bytes_of(type)),
         .writable = false,
         .buffers = {}});
    if (const int32_t updated = interface_.results[k].updates; updated >= 0) {
      destination.place_root = id(body.parameters[static_cast<size_t>(updated)]);
      destination.place = memory_of(destination.place_root);
    }
  }
  Scope scope{.region = Graph::kBody, .destinations = destinations, .is_body = true};
  // A result that is a parameter is that parameter: nothing is copied.
  std::vector<int32_t> passed(body.results.size(), kNone);
  for (size_t k = 0; k < body.results.size(); ++k) {
    for (size_t i = 0; i < body.parameters.size(); ++i) {
      if (body.results[k] == body.parameters[i]) {
        passed[k] = static_cast<int32_t>(i);
        destinations[k].held = destinations[k].spare;  // Nobody makes it.
        destinations[k].spare = kNone;
      }
    }
  }
  emit_region(scope);
  for (size_t k = 0; k < body.results.size(); ++k) {
    const TensorType& type = graph_.type(body.results[k]);
    run::Result result;
    result.dtype = type.dtype;
    result.shape = type.shape;
    result.bytes = granted_bytes(bytes_of(type));
    result.byte_class = ByteClass::outputs;
    result.source = graph_.node(body.results[k]).source;
    result.name = interface_.results[k].name;
    const bool in_place =
        destinations[k].place >= 0 && destinations[k].held == destinations[k].place;
    result.parameter = in_place ? interface_.results[k].updates : passed[k];
    const int32_t held = destinations[k].held;
    if (!in_place && passed[k] < 0 && held >= 0 && held != destinations[k].spare)
      result.parameter = memory(held).address.reg - 1;  // A donated one's bytes.
    if (!in_place && interface_.results[k].updates >= 0) {
      result.byte_class = ByteClass::shadow;
      result.why_not_in_place = destinations[k].why_not;
    }
    program_->results.push_back(std::move(result));
  }
  place_arenas();
  return program_;
}

std::shared_ptr<run::Program> lower(const Graph& graph, const Interface& interface,
                                    Placements& placements) {
  KernelBatch batch;
  std::shared_ptr<run::Program> program = Lowerer(graph, interface, placements, &batch).run();
  if (batch.compile()) return program;
  // No machine code: interpreters need other scratch.
  return Lowerer(graph, interface, placements, nullptr).run();
}

}  // namespace tidemark::compile
