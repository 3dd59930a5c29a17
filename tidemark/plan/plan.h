// Placement of buffers: from sizes and lifetimes to offsets.
//
// The problem: each buffer is a rectangle, as wide as its lifetime and as tall as its size. Time is
// given; only the offset is free. Rectangles must not overlap, and the highest byte in use, the
// tidemark, shall be as low as possible. No placement can go below the load, the most bytes alive
// at one time, and a good one reaches it.
//
//   const Placement placed = place(problem, {.seconds = 2}).placement;
//
// This folder is a separate library: it does not know tensors or graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::plan {

// A half-open range of steps, [begin, end). A value written by step 3 and last read by step 5 lives
// over [3, 6).
struct Lifetime {
  int64_t begin = 0;
  int64_t end = 0;
};

// A block of memory that the program needs, before it has an offset.
struct Buffer {
  Lifetime lifetime;
  int64_t size_bytes = 0;
  int64_t alignment = 64;                    // The offset is a multiple of this.
  std::optional<int64_t> fixed_offset = {};  // Set if the offset is given.
};

// Two buffers, by index, that may share bytes even while both are alive. The relation is not
// transitive: a may share with b and b with c while a and c must stay apart.
struct Alias {
  int32_t first = 0;
  int32_t second = 0;
};

struct Problem {
  std::vector<Buffer> buffers = {};
  std::vector<Alias> aliases = {};
};

// The offset of every buffer. Two buffers whose lifetimes overlap never share a byte unless they
// are aliases; `check_placement` verifies it independently of the planner.
struct Placement {
  std::vector<int64_t> offsets;  // One per buffer, in the order given.
  int64_t tidemark_bytes = 0;    // The highest byte ever in use, plus one.
};

// When to stop searching. With `nodes` alone the result is the same on every machine; with
// `seconds` a faster machine may find a better one.
struct Limits {
  double seconds = std::numeric_limits<double>::infinity();
  int64_t nodes = 200'000;     // Steps of search; one pass over n buffers counts n / 16.
  int64_t capacity_bytes = 0;  // A tidemark of at most this is good enough; 0: as low as possible.
  std::stop_token stop = {};   // Requests a stop from another thread: the best so far is returned.
  // Called from time to time inside `place`, on its thread, with the best tidemark so far.
  std::function<void(int64_t tidemark_bytes)> progress = {};
};

// The proof that no placement has a lower tidemark, if there is one.
enum class Proof : uint8_t {
  none,    // A lower one may exist.
  load,    // The tidemark equals a lower bound computed from the problem.
  search,  // Every other arrangement was excluded by search.
};
std::string_view name(Proof proof);

struct Result {
  Placement placement;
  int64_t load_bytes = 0;   // The most bytes alive at one time.
  int64_t bound_bytes = 0;  // The greatest proven lower bound: at least the load.
  Proof proof = Proof::none;
  int64_t nodes = 0;  // Steps of search taken.
};

// The most bytes alive at one time; a lower bound on every tidemark. A buffer does not count while
// a larger alias of it is alive.
int64_t load_bytes(const Problem& problem);

// Finds a placement; it is always valid, whatever the limits. Throws UserError if the problem
// itself is impossible: a lifetime that ends before it begins, two fixed buffers that overlap,
// sizes whose sum overflows.
Result place(const Problem& problem, const Limits& limits = {});

}  // namespace tidemark::plan
