// What is left when the graph is gone: one flat list of steps on one timeline, the buffers they
// work on, and where those lie.
//
// Steps run one after another; threads work inside a step or across the bodies of a map. Every
// place a step works on is an address: a register plus an offset. Register 0 is the call's arena;
// the next ones are the parameters and the results, in order; loops and maps move the others as
// they go. So a body is compiled once, whatever the number of trips.
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

// What a step does. Told where its operands lie; never allocates.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;
  virtual void run(std::byte* const* operands, std::byte* workspace) const = 0;
  // What it holds on the heap, its own block included; kernels, which tasks share, are not counted.
  virtual int64_t heap_bytes() const = 0;
};

inline constexpr int32_t kArena = 0;
inline constexpr int32_t kNoBuffer = -1;
// Of one step. Lists of more (a concat of hundreds) are split.
inline constexpr int32_t kMostOperands = 64;

struct Address {
  int32_t reg = kArena;
  int32_t buffer = kNoBuffer;  // Adds the buffer's offset.
  int64_t offset = 0;
};

// Bytes of an arena, and the steps over which they are wanted: [lower, upper).
struct Buffer {
  int64_t bytes = 0;
  int32_t lower = 0, upper = 0;
  ByteClass byte_class = ByteClass::temporaries;
  int32_t arena = 0;   // 0: the call's; else the k-th map's, planned alone.
  int32_t memory = 0;  // 0: the host's; else that of device/memory.h, in an arena of its own.
  DType dtype = DType::f32;
  Shape shape;
  Source source = Source::none();
  std::string name;                 // The op that makes it.
  std::string_view saved_for = {};  // The op whose gradient reads it last; of class `saved`.
  Source saved_at = Source::none();
};

struct Step {
  enum class Kind : uint8_t {
    run,      // task, operands
    branch,   // operands[0]: a bool. True: steps up to `middle`; false: from there to `end`.
    loop,     // control
    map,      // control
    reverse,  // control. Steps up to `middle` run a trip again; those up to `end` go back over it.
    copy,     // operands[0] to operands[1], `bytes`: one of them lies in `memory`, one on the host.
  } kind = Kind::run;
  const Task* task = nullptr;
  int32_t first_operand = 0, operands = 0;  // Of Program::addresses.
  Address workspace;
  int32_t middle = 0, end = 0;  // The body is [this + 1, end).
  int32_t control = -1;         // Of Program::loops, Program::maps or Program::reverses.
  int32_t memory = 0;           // Where its operands lie.
  bool to_host = false;         // copy
  int64_t bytes = 0;            // copy
  bool fallible = false;        // May throw: prints, checks, indices.
  Source source = Source::none();
  std::string name;
};

// A register that a trip moves by `stride` bytes; -stride from the last slice where reversed.
struct Walk {
  int32_t reg = 0;
  Address base;
  int64_t stride = 0;
};

struct Loop {
  int64_t trips = -1;    // Exact where there is neither a count nor a condition; else the most.
  bool counted = false;  // `count` holds the number of trips, an i64.
  Address count;
  bool reverse = false;
  // Where `tested`, steps [first, middle) of the body leave a bool at `condition`: false ends it.
  bool tested = false;
  Address condition;
  Address trip;  // Where the trip's number goes, an i64.
  struct Carry {
    int32_t now = 0, next = 0;  // Registers; exchanged after each trip where they differ.
    Address first, second;      // Where they point at the start.
    // A walk: each trip starts from the slot of this stack, and leaves the next
    // state in the next slot, or in `second` behind the last trip.
    int32_t stack = -1;
    int32_t follows = -1;  // The register whose place is the next state: a slice that is walked.
  };
  std::vector<Carry> carries;
  std::vector<Walk> walks;
  // Of carries and checkpoints. What the host itself reads and writes lies in its own: the trip,
  // the count, the condition and the marks.
  int32_t memory = 0;
  // What is kept of its trips: marks, as in treeverse.h, and the states of some carries. Without
  // slots only the number of trips.
  bool marked = false;
  Address marks;
  int64_t slots = 0;
  int64_t every = 0;  // A checkpoint each so many trips; 0: where they cost least.
  struct Checkpoints {
    size_t carry = 0;
    Address rows;
    int64_t bytes = 0;  // Of a row.
  };
  std::vector<Checkpoints> kept;
};

// What a loop keeps of its trips for a gradient, for the plan.
struct KeptTrips {
  Source source = Source::none();
  int64_t trips = -1;       // The most; -1: there is no bound.
  bool is_exact = false;    // That many.
  int64_t bytes = 0;        // Kept.
  int64_t slots = 0;        // 0: of all trips.
  int64_t every = 0;        // A checkpoint each so many; 0: where they cost least.
  int64_t state_bytes = 0;  // Of one checkpoint.
};

// A loop walked backwards.
struct Reverse {
  Address marks;
  int64_t slots = 0;
  bool reverse = false;  // The loop walks from the last slice.
  Address trip;          // Where the trip's number goes, an i64.
  struct State {
    int32_t now = 0, next = 0;  // Registers: where a trip finds it, where it leaves the next.
    Address start, rows;        // What the loop started with; its checkpoints.
    Address other;              // A second place for states on the way; the first is row 0.
    int64_t bytes = 0;
  };
  std::vector<State> states;
  std::vector<Loop::Carry> backs;
  std::vector<Walk> walks;
};

struct Map {
  int64_t trips = 0;
  int64_t alive = 1;  // Bodies under way at once.
  // Of a body, one in each memory that it works in, the host's first.
  struct BodyArena {
    int32_t memory = 0;
    int32_t reg = 0;  // Of a body's own.
    Address arenas;   // `alive` of them, one after another.
    int64_t bytes = 0;
  };
  std::vector<BodyArena> arenas;
  int32_t arena = 0;  // Which arena of Buffer::arena.
  std::vector<Walk> walks;
};

// What a parameter or a result is, outside.
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
  // The parameter whose bytes the result is, or -1: bytes of its own.
  int32_t parameter = -1;
  std::string why_not_in_place;  // Of a Variable whose new value has bytes of its own.
};

// What a program needs in a memory that is not the host's.
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
  std::vector<int64_t> offsets;  // Of each buffer, in its arena.
  int64_t arena_bytes = 0;       // The tidemark of the arena.
  int64_t load_bytes = 0;
  std::vector<DeviceArena> device_arenas;
  int32_t home = 0;  // The memory that it computes in, but for steps that say otherwise.
  std::vector<Place> parameters;
  std::vector<Result> results;
  int32_t registers = 1;
  int threads = 1;    // What workspaces were planned for.
  int map_depth = 0;  // Of maps inside maps.

  // Of results that are the call's own, in a memory.
  int64_t result_bytes(int32_t memory = 0) const {
    int64_t bytes = 0;
    for (const Result& result : results)
      if (result.parameter < 0 && result.memory == memory) bytes += result.bytes;
    return bytes;
  }
  // The most a call adds at once to a memory: results and arena.
  int64_t bytes_in(int32_t memory) const {
    int64_t bytes = result_bytes(memory) + (memory == 0 ? arena_bytes : 0);
    for (const DeviceArena& arena : device_arenas)
      if (arena.memory == memory) bytes += arena.bytes;
    return bytes;
  }
  // The same in the memory that it computes in.
  int64_t peak_bytes() const { return bytes_in(home); }

  int32_t parameter_register(int32_t index) const { return 1 + index; }
  int32_t result_register(int32_t index) const {
    return 1 + static_cast<int32_t>(parameters.size()) + index;
  }
};

class Watch;

// What a measured run wants to know beside its results.
struct Measurement {
  std::vector<int64_t> touched = {};  // Of each arena in another memory: the bytes that changed.
  Watch* watch = nullptr;
};

// Runs all steps. `registers` has room for Program::registers; the arena, the parameters and the
// results are set. Arenas in other memories are taken before the first step.
void execute(const Program& program, std::span<std::byte*> registers,
             Measurement* measured = nullptr);

}  // namespace tidemark::run
