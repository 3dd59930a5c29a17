// The implementation of layout(). A first pass over a region determines aliases and the last reader
// of each value; a second pass adds steps and assigns memory to every value. Tasks are described,
// not made.
//
// A value is placed, in order of preference: at the destination of its reader (the bytes of a
// result, the next carry of a loop, the Variable that it updates), in the bytes of an operand whose
// lifetime ends here, or in a new buffer of the arena.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "tidemark/compile/backends.h"
#include "tidemark/layout/layout.h"
#include "tidemark/layout/room.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

// The name of a fusion group: "multiply + add + sum".
std::string group_name(const Graph& graph, const Node& group);

inline int64_t bytes_of(const TensorType& type) { return type.shape.size() * size_of(type.dtype); }

// Whether both have the same offset, shape and strides.
bool same_layout(const ArrayRef& a, const ArrayRef& b);

class LayoutBuilder {
 public:
  LayoutBuilder(const Graph& graph, const Interface& interface, Placements& placements);
  Layout run();

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();

  // A range of bytes: a buffer of an arena, a parameter, a result, or the target of a register that
  // a loop advances.
  struct Memory {
    run::Address address;
    Room room;
    bool writable = false;         // May be overwritten after its last read.
    SmallVec<int32_t, 2> buffers;  // The buffers of the arena that the range is in.
    int32_t device = 0;            // The number of the memory (device/memory.h) it is part of.
  };
  // A value as a view: its root, the value whose memory it shows (itself unless it is a view), and
  // the layout.
  struct ValueView {
    int32_t root = kNone;
    ArrayRef layout;  // Its data are kNowhere plus the offset in the memory.
  };
  // The destination of a region's result: `place` if its bytes are free by then, else `spare`.
  struct Destination {
    int32_t place = kNone;  // Holds `place_root`, which must have been read for the last time.
    int32_t place_root = kNone;
    int32_t spare = kNone;
    int32_t held = kNone;  // Which of the two it became.
    bool crosses = false;  // A result in another memory is copied; else it is refused.
    bool is_copied_early = false;
    std::string why_not = {};  // Why not `place`, for the plan; empty where it is or there is none.
  };
  // The state of adding one region's nodes.
  struct Scope {
    RegionId region;
    std::vector<Destination>& destinations;
    int32_t position = 0;
    int32_t last_fallible = kNone;  // The last position at which the region may throw.
    // Results that are copied to their destinations before the end: positions and numbers, the last
    // first.
    std::vector<std::pair<int32_t, int32_t>> early_copies = {};
    bool is_body = false;
  };

  // ---- values
  int32_t id(Value value) const {
    return first_value_[static_cast<size_t>(value.node)] + value.result;
  }
  ValueView& view_of(Value value) { return views_[static_cast<size_t>(id(value))]; }
  int32_t root(Value value) { return view_of(value).root; }
  int32_t& memory_of(int32_t root) { return memory_of_[static_cast<size_t>(root)]; }
  int32_t& last_use(int32_t root) { return last_use_[static_cast<size_t>(root)]; }
  bool is_constant(Value value) { return constant_[static_cast<size_t>(root(value))] >= 0; }
  uint64_t constant_bits(Value value);
  Memory& memory(int32_t number) { return memories_[static_cast<size_t>(number)]; }
  void show_dense(Value value);
  // Binds the value to this memory: it is all of it.
  void show_in(Value value, int32_t held);
  // The number of the memory that holds the value. A literal is made in the memory of its reader.
  int32_t device_of(Value value) { return placed_in_[static_cast<size_t>(root(value))]; }
  // The number of the memory that a transfer copies to.
  int32_t target_of(const Node& transfer);
  // The number of the memory in which a node computes: that of its operands.
  int32_t memory_number(const Node& node);
  bool lies_in(int32_t wanted, Value value) {
    return is_constant(value) || device_of(value) == wanted;
  }
  // Throws a UserError if the value is not in this memory.
  void expect_in(int32_t wanted, Value value, std::string_view what, Source at);
  void place_results(const Node& node, int32_t number);
  // Whether the value is a loop's record of its trips (treeverse.h), which the host writes and
  // reads.
  bool is_marks(Value value) const;
  void take_parameters();
  void copy_numbers_in();
  // Whether a node of the region reads the value.
  bool is_read(Value value, RegionId region) const;
  // Of the whole root, not only of the part that a view shows.
  int64_t whole_bytes(int32_t root) const;

  // ---- memory
  int32_t new_memory(Memory memory);
  // The memory, after checking that this many bytes can be written there.
  Memory& memory_for(int32_t number, int64_t bytes);
  int32_t new_buffer(const TensorType& type, int64_t bytes, ByteClass byte_class, Source at,
                     std::string_view name);
  // For a single number that the host reads or writes.
  int32_t new_host_buffer(const TensorType& type, Source at, std::string_view name);
  void extend_to_now(int32_t memory);
  run::Address address_of(Value value);
  bool can_take(int32_t place_root, size_t result, const Scope& scope, const Node& node);
  bool overwrites(const Node& node, size_t operand, size_t result);
  int32_t dying_parameter(const Node& node, Value result, const Scope& scope);
  std::string reason_against(const Scope& scope, const Node& node) const;
  void settle(Destination& destination, const Node& node, Value result, const Scope& scope);
  int32_t choose(const Node& node, Value result, Scope& scope);
  int32_t choose_whole(const Node& node, int32_t whole, Scope& scope);
  // The number of a memory that holds the value densely at offset 0: its own, or a copy.
  int32_t materialise(Value value, Source at);

  // ---- steps
  // The backend of the memory in which steps currently run, and its number of threads.
  const Backend& backend() const { return backend_of(in_memory_); }
  int threads() const { return side_by_side_ ? 1 : backend().machine().threads; }
  TaskPlan plan_op(const Node& node, std::span<const OperandLayout> operands,
                   std::span<const ArrayRef> results) const;
  void add_step(TaskPlan task, std::span<const run::Address> operands, std::string_view name,
                Source at, bool fallible = false);
  // Of the last step.
  void set_work(const run::StepWork& work) { program_->steps.back().work = work; }
  static run::StepWork fill_work(const TensorType& type) {
    return {0, static_cast<double>(bytes_of(type))};
  }
  static run::StepWork copy_work(const TensorType& type) { return fill_work(type) * 2; }
  void add_copy(const run::Address& from, const ArrayRef& layout, int32_t to, Source at);
  void add_dense(Value value, int32_t to, Source at);
  // Copies dense bytes from the host's memory to another, or back.
  void add_crossing(const run::Address& from, int32_t from_device, int32_t to, int64_t bytes,
                    Source at);
  // The host address of a value: its own, or that of a copy, which is appended to `kept`.
  run::Address host_address(Value value, Source at, std::vector<int32_t>& kept);
  // The memory in which a body reads the number of its trip. The host writes that number; a body on
  // a device reads a copy.
  int32_t trip_seen(Value parameter, RegionId region, int32_t trip, std::vector<int32_t>& kept,
                    Source at);
  void analyse(RegionId region);
  bool may_fail_from(const Node& node, const Scope& scope) const;
  int32_t last_fallible(RegionId region) const;
  void wish_for_carries(int32_t number, size_t position);
  void wish_for_operand(int32_t number, size_t position, const Scope& scope);
  void make_in_padding(const Scope& scope);
  // concat.cc
  struct RegionFacts {
    std::unordered_map<int32_t, int32_t> position;  // By node.
    std::unordered_map<int32_t, int32_t> uses;      // By value: how often it is read.
    // By position: live bytes, without results that are computed at their destination.
    std::vector<int64_t> alive;
  };
  struct PossiblePart {
    int32_t position;
    Value operand, made;  // The operand of the concat, and the value that it is a view of.
    ArrayRef layout;
  };
  std::vector<ArrayRef> parts_of(const Node& concat, const ArrayRef& whole) const;
  RegionFacts facts_of(const Scope& scope);
  std::optional<Value> made_for(Value operand, const RegionFacts& facts);
  bool writes_part(const Node& maker, const ArrayRef& part) const;
  void make_in_concat(const Scope& scope);
  void make_operands_in_place(int32_t number, const Scope& scope, const RegionFacts& facts);
  std::vector<PossiblePart> possible_parts(const Node& concat, const ArrayRef& whole,
                                           const RegionFacts& facts);
  void keep_those_worth_it(std::vector<PossiblePart>& possible, int32_t number, const Scope& scope,
                           const RegionFacts& facts);
  bool is_made_of_parts(int32_t number);
  void add_concat(Scope& scope, int32_t number);
  void add_region(Scope& scope);
  // nodes.cc
  void add_node(Scope& scope, int32_t number);
  void add_pointwise(Scope& scope, int32_t number);
  void read_operands(const Node& node, std::vector<OperandLayout>& operands,
                     std::vector<run::Address>& places, std::vector<int32_t>& literals);
  void add_op(Scope& scope, int32_t number);
  void add_view_copy(int32_t number);
  void add_transfer(Scope& scope, int32_t number);
  void find_shared(std::span<const int32_t> contractions);
  void add_effect(int32_t number);
  void note_in_place(const Scope& scope, int64_t first);
  void add_group(Scope& scope, int32_t number);
  // group_name, composed once for each form.
  std::string_view name_of_group(const Node& group);
  TaskPlan plan_group(const Node& node, std::span<const ArrayRef> operands,
                      std::span<const ArrayRef> results, bool shared);
  // control.cc
  size_t begin_control(run::Step::Kind kind, size_t control, std::string_view name, Source at);
  void add_cond(Scope& scope, int32_t number);
  size_t updated_by(const Node& node, size_t result, Scope& scope);
  void add_map(Scope& scope, int32_t number);
  bool add_mapped_group(Scope& scope, int32_t number);
  void hand_in_slice(Value parameter, Value array);
  void hand_in(Value parameter, Value outer);
  // loop.cc
  struct CarryPlaces {
    int32_t first = kNone;  // Holds the initial value.
    // The register that the body reads, which alternates between the buffers.
    int32_t inside = kNone;
    int32_t spare = kNone;  // The second buffer, also addressed by a register.
    int32_t wish = kNone;
    int32_t stack = kNone;  // A stacked result that holds the initial state of each trip.
    int32_t slice = kNone;  // A scanned array whose slice is the next state.
  };
  std::vector<CarryPlaces> carries_of_loop(Scope& scope, int32_t number,
                                           std::vector<int32_t>& stacks);
  std::vector<CarryPlaces> start_carries(Scope& scope, int32_t number, size_t first_input,
                                         std::vector<CarryPlaces> carried);
  bool ends_here(const Node& node, Value value, const Scope& scope);
  bool reads_once(const Node& node, int32_t root);
  std::vector<run::Loop::Carry> move_carries(const Node& node, std::vector<CarryPlaces>& carried,
                                             std::vector<int32_t>& kept);
  std::vector<size_t> settle_carries(int32_t number, const std::vector<CarryPlaces>& carried,
                                     const std::vector<Destination>& destinations,
                                     std::vector<run::Loop::Carry>& moved);
  void copy_carries(int32_t number, const std::vector<CarryPlaces>& carried,
                    const std::vector<size_t>& copied);
  // The slice of a scanned array that a body reads in one trip, addressed by a register.
  struct SliceView {
    int32_t memory = kNone;
    ArrayRef layout;
  };
  SliceView walk_array(Value array, const TensorType& slice, Source at,
                       std::vector<run::Walk>& walks, std::vector<int32_t>& kept,
                       bool wants_dense = false);
  void show_slice(Value parameter, const SliceView& walked);
  Destination stack_element(int32_t place, const TensorType& element,
                            std::vector<run::Walk>& walks);
  void count_as_saved(int32_t number);
  // Where a loop, forward or reverse, has its data.
  struct LoopPlaces {
    const Node& node;
    int32_t number;
    std::vector<CarryPlaces> carried = {};
    std::vector<SliceView> slices = {};
    std::vector<Destination> destinations = {};  // Of the results of its body.
    std::vector<int32_t> kept = {};              // Memory in use during the whole loop.
    int32_t trip = kNone;
    size_t first_capture = 0;  // Among the inputs of the node.
  };
  // A region of a loop, by its number, and the memories of its parameters after the trip's number.
  struct LoopPart {
    size_t region = 0;
    std::span<const int32_t> states;
    bool takes_slices = false;
  };
  // Memories of states.
  struct ReverseStates {
    std::vector<int32_t> now;
    std::vector<Destination> next;
  };
  run::Address new_trip(LoopPlaces& places);
  void walk_slices(LoopPlaces& places, size_t first_input, std::span<const Value> parameters,
                   std::vector<run::Walk>& walks);
  void expect_carries(LoopPlaces& places, std::span<const Value> parameters);
  void add_part(LoopPlaces& places, const LoopPart& part, std::vector<Destination>& destinations);
  void end_loop(const LoopPlaces& places, const std::vector<size_t>& copied);
  void place_stacks(std::span<const int32_t> stacks, LoopPlaces& places, run::Loop& loop);
  void place_loop(Scope& scope, LoopPlaces& places, run::Loop& loop);
  void add_loop(Scope& scope, int32_t number);
  void list_kept(const Node& node);
  void keep_checkpoints(Scope& scope, int32_t number, run::Loop& loop, std::vector<int32_t>& kept);
  bool add_scalar_loop(Scope& scope, int32_t number, const run::Loop& loop);
  int32_t own(const Node& node, Value value, const Scope& scope);
  run::Reverse::State state_of(const Node& node, size_t number, const Scope& scope,
                               std::vector<int32_t>& kept);
  void place_states(Scope& scope, const Node& node, run::Reverse& walk, std::vector<int32_t>& kept,
                    ReverseStates& states);
  void place_reverse(Scope& scope, LoopPlaces& places, run::Reverse& walk);
  void add_reverse(Scope& scope, int32_t number);
  // results.cc
  bool can_hold(const Destination& destination, int32_t root);
  void expect_results(Scope& scope);
  void find_early_copies(Scope& scope);
  void copy_early(Scope& scope);
  void finish_results(Scope& scope);
  std::vector<Destination> destinations_of_results();
  std::vector<int32_t> pass_parameters_on(std::vector<Destination>& destinations);
  run::Result result_in(const Destination& destination, size_t number, int32_t passed);
  void list_results(const std::vector<Destination>& destinations,
                    const std::vector<int32_t>& passed);
  // saved.cc
  void count_what_is_saved_for(int32_t number);
  void find_behind_in(const Node& group, int32_t number);
  bool is_behind(Value value) const { return is_behind_[static_cast<size_t>(id(value))]; }
  struct ArenaSize {
    int64_t tidemark_bytes = 0, load_bytes = 0;
  };
  // Assigns offsets to the buffers of one arena; `arena` is its index in the placements.
  ArenaSize place_those(const std::function<bool(const run::Buffer&)>& is_there, size_t arena,
                        bool is_program_arena);
  void place_arenas();

  // While it exists, steps run and buffers are allocated in the memory of this number.
  class InMemory {
   public:
    InMemory(LayoutBuilder& builder, int32_t number)
        : builder_(builder), outer_(std::exchange(builder.in_memory_, number)) {}
    ~InMemory() { builder_.in_memory_ = outer_; }
    InMemory(const InMemory&) = delete;
    InMemory& operator=(const InMemory&) = delete;

   private:
    LayoutBuilder& builder_;
    int32_t outer_;
  };

  int32_t now() const { return static_cast<int32_t>(program_->steps.size()); }
  int32_t new_register() { return program_->registers++; }
  int32_t arena_register();
  run::Map::BodyArena new_body_arena(int32_t memory, Source at, std::vector<int32_t>& kept);

  const Graph& graph_;
  const Interface& interface_;
  Placements& placements_;
  passes::Scheduler scheduler_;
  std::shared_ptr<run::Program> program_;
  std::vector<TaskPlan> tasks_;          // Of the steps that run one, in order.
  std::deque<std::string> group_names_;  // By form.
  passes::FormTable planned_groups_;
  std::vector<size_t> task_of_;      // By number in that table: the task of the first of its kind.
  std::vector<int32_t> first_step_;  // By node of the body.
  std::vector<int32_t> first_value_;
  std::vector<ValueView> views_;
  std::vector<int32_t> constant_;   // By root: the node of the literal, or -1.
  std::vector<int32_t> memory_of_;  // By root.
  std::vector<int32_t> last_use_;   // By root: a position in its region, kEnd for results.
  // By root: the destination of its region that it should be computed at, or -1.
  std::vector<int32_t> wish_;
  std::vector<bool> shared_;        // By value: whether a step on several threads uses it.
  std::vector<int32_t> placed_in_;  // By root: the number of the memory that holds it.
  std::vector<bool> is_behind_;     // By value of the body: whether it depends on a gradient.
  std::vector<Memory> memories_;
  std::vector<int32_t> numbers_;  // Device copies of numbers that the call passed.
  int32_t arena_ = 0;             // The arena from which buffers are currently allocated.
  int32_t in_memory_;          // The memory in which steps currently run and buffers are allocated.
  bool side_by_side_ = false;  // Bodies of a map run in parallel, on one thread each.
  // The number of reads of each root by the node that was counted last.
  const Node* counted_ = nullptr;
  std::unordered_map<int32_t, int32_t> reads_;
};

}  // namespace tidemark::compile
