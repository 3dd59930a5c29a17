// The part of a dataset that does not know its elements' structure: stages to chain, and passes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/data/element.h"
#include "tidemark/data/plan.h"

namespace tidemark::data {

struct MapOptions {
  int parallel = 1;           // How many elements are computed at once, each on a thread.
  bool deterministic = true;  // False: elements come as they are ready.
};
struct ShuffleOptions {
  int64_t buffer = 0;     // 0: by index, which is uniform and takes no bytes.
  int64_t seed = 0;       // Equal seeds, equal orders.
  bool reshuffle = true;  // Another order in each pass.
};
struct BatchOptions {
  bool drop_remainder = false;  // Leaves out a last batch that is not full.
};

// Where a walk stands: how many passes were begun before it, and how many elements it has given.
struct Position {
  int64_t pass = 0;
  int64_t element = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

class Stage;
using StagePtr = std::shared_ptr<const Stage>;

// ---- stages; all of them check what they are asked for ------------------------------------------

using ElementFunction = std::function<Element(Element)>;
using ElementPredicate = std::function<bool(const Element&)>;
using ElementSource = std::function<std::optional<Element>()>;

StagePtr slices(Element tensors, std::vector<std::string> paths, Source at);
StagePtr npy_rows(const std::string& path, Source at);
StagePtr numbers(int64_t begin, int64_t end, int64_t step, Source at);
// Each pass asks for a source of its own.
StagePtr generated(std::function<ElementSource()> make, Source at);
StagePtr mapped(StagePtr input, ElementFunction f, MapOptions options, Source at);
StagePtr filtered(StagePtr input, ElementPredicate keep, Source at);
StagePtr shuffled(StagePtr input, ShuffleOptions options, Source at);
StagePtr batched(StagePtr input, int64_t size, BatchOptions options, Source at);
// Nothing: for ever.
StagePtr repeated(StagePtr input, std::optional<int64_t> times, Source at);
StagePtr taken(StagePtr input, int64_t count, Source at);
StagePtr skipped(StagePtr input, int64_t count, Source at);
// `join` makes one form of those of the inputs; empty where there are none.
StagePtr zipped(std::vector<StagePtr> inputs,
                std::function<FormPtr(const std::vector<FormPtr>&)> join, Source at);
// Filled by the first walk, in memory or in a file.
StagePtr cached(StagePtr input, Source at);
StagePtr cached_in_file(StagePtr input, std::string path, Source at);
StagePtr prefetched(StagePtr input, int64_t count, Source at);

// ---- passes -------------------------------------------------------------------------------------

// The most that a walk may hold, and who said so.
struct Cap {
  Bytes bytes;
  Source at = Source::none();
};

// Refuses, where what is known of the bytes is above the cap.
class CapCheck {
 public:
  CapCheck(StagePtr stage, std::optional<Cap> cap) : stage_(std::move(stage)), cap_(cap) {}
  void operator()() const;
  const std::optional<Cap>& cap() const { return cap_; }

 private:
  StagePtr stage_;
  std::optional<Cap> cap_;
};

class Walk;

// What copies of a Dataset share.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  Pipeline(StagePtr stage, std::optional<Cap> cap);
  ~Pipeline();

  const StagePtr& stage() const { return stage_; }
  const std::optional<Cap>& cap() const { return check_.cap(); }
  DatasetPlan plan() const;
  std::optional<int64_t> count() const;

  // Refuses where the bytes are above the cap.
  void check() const;
  Walk begin();
  Position position() const;
  void restore(Position position, Source at);

 private:
  friend class Walk;
  struct Progress;

  StagePtr stage_;
  CapCheck check_;
  std::unique_ptr<Progress> progress_;
};

// One pass in progress.
class Walk {
 public:
  Walk(Walk&&) noexcept;
  Walk& operator=(Walk&&) = delete;
  ~Walk();

  // A walk that ends before gave() was called, or the end was met, was never begun.
  std::optional<Element> next();
  // Whoever walks has the element that next() returned: from now on it counts.
  void gave();
  Position position() const;

 private:
  friend class Pipeline;
  struct State;
  explicit Walk(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tidemark::data
