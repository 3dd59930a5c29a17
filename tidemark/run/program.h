// A compiled program: a flat list of steps, the buffers that they read and write, and the offset of
// each buffer in its arena. It no longer refers to the graph.
//
// Steps run one after another; threads work inside a step, or on several bodies of a map at once. A
// step addresses memory as a register plus an offset. Register 0 is the call's arena; the
// parameters and the results follow, in order. Loops and maps advance the other registers from trip
// to trip, so a body is compiled once, whatever the number of trips.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/base/text.h"
#include "tidemark/device/storage.h"
#include "tidemark/types/dtype.h"
#include "tidemark/types/shape.h"

namespace tidemark::run {

// The work of one step. It is given the addresses of its operands and never allocates.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;
  virtual void run(std::byte* const* operands, std::byte* workspace) const = 0;
  // The bytes that the task holds on the heap, itself included. Kernels are not counted: tasks
  // share them.
  virtual int64_t heap_bytes() const = 0;
};

inline constexpr int32_t kArena = 0;
inline constexpr int32_t kNoBuffer = -1;
// The most operands of one step. Longer lists (a concat of hundreds) are split.
inline constexpr int32_t kMostOperands = 64;

struct Address {
  int32_t reg = kArena;
  int32_t buffer = kNoBuffer;  // If set, the buffer's offset is added.
  int64_t offset = 0;
};

// A block of an arena, and its lifetime: steps [lower, upper).
struct Buffer {
  int64_t bytes = 0;
  int32_t lower = 0, upper = 0;
  ByteClass byte_class = ByteClass::temporaries;
  // 0: the arena of the call; k: that of the k-th map, which is planned separately.
  int32_t arena = 0;
  // A memory of device/memory.h; 0 is the host's. Each memory has its own arena.
  int32_t memory = 0;
  DType dtype = DType::f32;
  Shape shape;
  Source source = Source::none();
  std::string name;                 // The op that computes it.
  std::string_view saved_for = {};  // For class `saved`: the last op whose gradient reads it.
  Source saved_at = Source::none();
};

// What a step computes and moves each time it runs.
struct StepWork {
  double flop = 0;         // Additions, multiplications and other scalar operations.
  double bytes_moved = 0;  // Operands read and results written.

  StepWork& operator+=(const StepWork& other) {
    flop += other.flop;
    bytes_moved += other.bytes_moved;
    return *this;
  }
  friend StepWork operator*(const StepWork& work, double times) {
    return {work.flop * times, work.bytes_moved * times};
  }
};

struct Step {
  enum class Kind : uint8_t {
    run,  // task, operands
    // operands[0] is a bool. If true, steps up to `middle` run, else those from `middle` to `end`.
    branch,
    loop,     // control
    map,      // control
    reverse,  // control. Steps up to `middle` repeat a trip; those up to `end` are its gradient.
    copy,     // `bytes` from operands[0] to operands[1]; one is in `memory`, one on the host.
  } kind = Kind::run;
  const Task* task = nullptr;
  int32_t first_operand = 0, operands = 0;  // In Program::addresses.
  Address workspace;
  int32_t middle = 0, end = 0;  // The body is [this + 1, end).
  int32_t control = -1;         // Index in Program::loops, Program::maps or Program::reverses.
  int32_t memory = 0;           // The memory of its operands.
  bool to_host = false;         // copy
  int64_t bytes = 0;            // copy
  bool fallible = false;        // May throw: prints, checks, indices.
  int32_t threads = 0;          // Its workspace is for so many; 0: for all that the program has.
  StepWork work = {};           // None for steps with bodies, which have their own.
  Source source = Source::none();
  std::string name;
};

// A register that advances by `stride` bytes a trip. A reversed loop starts at the last slice and
// advances by -stride.
struct Walk {
  int32_t reg = 0;
  Address base;
  int64_t stride = 0;
};

struct Loop {
  // The exact number if there is neither a count nor a condition, else a bound.
  int64_t trips = -1;
  bool counted = false;  // `count` holds the number of trips, an i64.
  Address count;
  bool reverse = false;
  // If `tested`, steps [first, middle) of the body write a bool to `condition`; false ends the
  // loop.
  bool tested = false;
  Address condition;
  Address trip;  // The number of the trip is written here, as an i64.
  struct Carry {
    int32_t now = 0, next = 0;  // Registers; exchanged after each trip where they differ.
    Address first, second;      // Their addresses in the first trip.
    // If set, a stack of states: each trip reads its state from one row of this stack and writes
    // the next state to the row after it. The last trip writes to `second`.
    int32_t stack = -1;
    // If set, the next state is at the address in this register: a slice of an input.
    int32_t follows = -1;
  };
  std::vector<Carry> carries;
  std::vector<Walk> walks;
  // The memory of carries and checkpoints. The trip, the count, the condition and the marks are
  // always on the host, which reads and writes them itself.
  int32_t memory = 0;
  // If `marked`, the loop records its checkpoints: marks (treeverse.h), and the states of the
  // carries in `kept`. With 0 slots it records only the number of trips.
  bool marked = false;
  Address marks;
  int64_t slots = 0;
  int64_t every = 0;  // One checkpoint per `every` trips; 0: the binomial schedule of treeverse.h.
  struct Checkpoints {
    size_t carry = 0;
    Address rows;
    int64_t bytes = 0;  // Of one checkpoint.
  };
  std::vector<Checkpoints> kept;
};

// For the plan: the bytes that a loop keeps for its gradient.
struct KeptTrips {
  Source source = Source::none();
  int64_t trips = -1;     // The most trips; -1 if there is no bound.
  bool is_exact = false;  // Whether the loop always runs `trips` trips.
  int64_t bytes = 0;
  int64_t slots = 0;        // The number of checkpoints; 0: residuals of all trips are kept.
  int64_t every = 0;        // One checkpoint per `every` trips; 0: the binomial schedule.
  int64_t state_bytes = 0;  // Of one checkpoint.
};

// The gradient of a loop that runs from checkpoints: it visits the trips from last to first.
struct Reverse {
  Address marks;
  int64_t slots = 0;
  int64_t trips = -1;    // As in Loop.
  int64_t every = 0;     // As in Loop.
  bool online = false;   // Whether the loop kept checkpoints without knowing its trips.
  bool reverse = false;  // Whether the loop itself ran from the last slice to the first.
  Address trip;          // The number of the trip is written here, as an i64.
  struct State {
    // Registers: the state that a trip starts from, and the one it computes.
    int32_t now = 0, next = 0;
    Address start, rows;  // The loop's initial value, and its checkpoints.
    // Together with row 0, the two buffers between which states alternate while trips are repeated.
    Address other;
    int64_t bytes = 0;
  };
  std::vector<State> states;
  std::vector<Loop::Carry> backs;
  std::vector<Walk> walks;
};

struct Map {
  int64_t trips = 0;
  int64_t alive = 1;       // The number of bodies that may run at once.
  bool automatic = false;  // Its user left that number to the compiler.
  // The arenas of the bodies, one entry for each memory that a body uses; the host's is first.
  struct BodyArena {
    int32_t memory = 0;
    int32_t reg = 0;  // Points at the arena of the body that runs.
    Address arenas;   // `alive` arenas, one after another.
    int64_t bytes = 0;
  };
  std::vector<BodyArena> arenas;
  int32_t arena = 0;  // The number of its arena, as in Buffer::arena.
  std::vector<Walk> walks;
};

// The type and memory of a parameter or a result.
struct Place {
  DType dtype = DType::f32;
  Shape shape;
  int64_t bytes = 0;
  int32_t memory = 0;
  ByteClass byte_class = ByteClass::arguments;
  Source source = Source::none();
  std::string name;
};

struct Result : Place {
  // The parameter that the result is written into (in place), or -1 if it has its own bytes.
  int32_t parameter = -1;
  std::string why_not_in_place;  // For a Variable that is not updated in place: the reason.
};

// The arena of a program in a memory other than the host's.
struct DeviceArena {
  int32_t memory = 1;
  int32_t reg = 0;
  int64_t bytes = 0, load_bytes = 0;
};

struct Program {
  std::vector<Step> steps;
  std::vector<Address> addresses;
  std::vector<Loop> loops;
  std::vector<Map> maps;
  std::vector<Reverse> reverses;
  std::vector<KeptTrips> kept;
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<Buffer> buffers;
  std::vector<int64_t> offsets;  // The offset of each buffer in its arena.
  int64_t arena_bytes = 0;       // The peak of the arena.
  int64_t load_bytes = 0;
  std::vector<DeviceArena> device_arenas;
  int32_t home = 0;  // The memory that it computes in, except for steps that name another.
  std::vector<Place> parameters;
  std::vector<Result> results;
  int32_t registers = 1;
  int threads = 1;    // Workspaces are planned for this many.
  int map_depth = 0;  // How deep maps are nested.
  // The first step that writes over a parameter: from there on the program is not interrupted.
  int32_t first_in_place = INT32_MAX;

  // The bytes of the results that the call allocates in a memory: those that are not in place.
  int64_t result_bytes(int32_t memory = 0) const {
    int64_t bytes = 0;
    for (const Result& result : results)
      if (result.parameter < 0 && result.memory == memory) bytes += result.bytes;
    return bytes;
  }
  // The most bytes that a call adds to a memory: results and arena.
  int64_t bytes_in(int32_t memory) const {
    int64_t bytes = result_bytes(memory) + (memory == 0 ? arena_bytes : 0);
    for (const DeviceArena& arena : device_arenas)
      if (arena.memory == memory) bytes += arena.bytes;
    return bytes;
  }
  // The same for the memory that the program computes in.
  int64_t peak_bytes() const { return bytes_in(home); }

  int32_t parameter_register(int32_t index) const { return 1 + index; }
  int32_t result_register(int32_t index) const {
    return 1 + static_cast<int32_t>(parameters.size()) + index;
  }
};

class Watch;

// What a measured run reports besides its results.
struct Measurement {
  // For each arena in another memory, the bytes that were written.
  std::vector<int64_t> touched = {};
  Watch* watch = nullptr;
};

// Runs all steps. `registers` has Program::registers entries; those of the arena, the parameters
// and the results are set. Arenas in other memories are allocated before the first step.
void execute(const Program& program, std::span<std::byte*> registers,
             Measurement* measured = nullptr);

}  // namespace tidemark::run
