// The untyped part of a dataset: its chain of stages, and iteration.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/data/element.h"
#include "tidemark/data/plan.h"

namespace tidemark::data {

struct MapOptions {
  int parallel = 1;           // The number of threads that compute elements.
  bool deterministic = true;  // False: elements come in the order of completion.
};
struct ShuffleOptions {
  int64_t buffer = 0;     // 0: by index, which is uniform and takes no bytes.
  int64_t seed = 0;       // Equal seeds, equal orders.
  bool reshuffle = true;  // Another order in each pass.
};
struct DrawOptions {
  std::vector<double> weights;        // How often each element is drawn, one for each.
  std::optional<int64_t> count = {};  // Draws in a pass; default: as many as there are elements.
  int64_t seed = 0;                   // Equal seeds, equal draws.
  bool reshuffle = true;              // Other draws in each pass.
};
struct BatchOptions {
  bool drop_remainder = false;  // Drops a last batch that is not full.
};

struct PaddingOptions {
  bool drop_remainder = false;  // Drops a last batch that is not full.
  // The shape that each tensor of an element is padded to; -1 is the longest of the batch. Empty:
  // -1 for every axis.
  std::vector<std::vector<int64_t>> shapes = {};
  // What it is padded with: one value for each tensor of an element, or one for all. Default 0.
  std::vector<double> values = {};
};
// Lengths below the first boundary are in the first bucket, and so on; those from the last boundary
// on are in one more.
struct Buckets {
  std::vector<int64_t> boundaries;
  std::vector<int64_t> batch_sizes;  // One more than boundaries, or one for all.
};
struct BucketOptions : PaddingOptions {
  bool pad_to_boundary = false;  // To one less than the bucket's boundary, not to the longest.
};
struct WindowOptions {
  std::optional<int64_t> shift = {};  // From one window to the next; default: its size.
  int64_t stride = 1;                 // From one element of a window to the next.
  bool drop_remainder = false;        // Drops windows at the end that are not full.
};
struct InterleaveOptions {
  int64_t cycle = 4;  // Datasets that are read in turn.
  int64_t block = 1;  // Elements of each in its turn.
};
struct SampleOptions {
  std::vector<double> weights = {};  // How often each dataset is drawn; default: all alike.
  int64_t seed = 0;                  // Equal seeds, equal orders.
  bool reshuffle = true;             // Other draws in each pass.
  bool stop_on_empty = false;        // Ends with the first dataset that ends.
};

// The position of an iteration: the number of passes before it, and of elements it has yielded.
struct Position {
  int64_t pass = 0;
  int64_t element = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

// What a user's function throws to end an iteration, such as an interrupt: it passes as it is,
// without the number of the element.
class Undecorated : public std::exception {};

class Stage;
using StagePtr = std::shared_ptr<const Stage>;

// ---- stages; all of them check what they are asked for ------------------------------------------

using ElementFunction = std::function<Element(Element)>;
using ElementPredicate = std::function<bool(const Element&)>;
using ElementSource = std::function<std::optional<Element>()>;
using ElementLength = std::function<int64_t(const Element&)>;
// A dataset that an element is turned into, and the form of its elements that have none.
struct InnerStage {
  StagePtr stage;
  FormPtr form = {};
};
using StageFunction = std::function<InnerStage(Element)>;

StagePtr slices(Element tensors, std::vector<std::string> paths, Source at);
StagePtr npy_rows(const std::string& path, Source at);
StagePtr numbers(int64_t begin, int64_t end, int64_t step, Source at);
// Each pass creates its own source.
StagePtr generated(std::function<ElementSource()> make, Source at);
StagePtr mapped(StagePtr input, ElementFunction f, MapOptions options, Source at);
StagePtr filtered(StagePtr input, ElementPredicate keep, Source at);
StagePtr shuffled(StagePtr input, ShuffleOptions options, Source at);
StagePtr drawn(StagePtr input, DrawOptions options, Source at);
StagePtr batched(StagePtr input, int64_t size, BatchOptions options, Source at);
// Empty: for ever.
StagePtr repeated(StagePtr input, std::optional<int64_t> times, Source at);
StagePtr taken(StagePtr input, int64_t count, Source at);
StagePtr skipped(StagePtr input, int64_t count, Source at);
// `join` combines the forms of the inputs; empty if there are none.
StagePtr zipped(std::vector<StagePtr> inputs,
                std::function<FormPtr(const std::vector<FormPtr>&)> join, Source at);
// Filled by the first iteration, in memory or in a file.
StagePtr cached(StagePtr input, Source at);
StagePtr cached_in_file(StagePtr input, std::string path, Source at);
StagePtr prefetched(StagePtr input, int64_t count, Source at);
StagePtr padded_batched(StagePtr input, int64_t size, PaddingOptions options, Source at);
StagePtr bucketed(StagePtr input, ElementLength length, Buckets buckets, BucketOptions options,
                  Source at);
StagePtr windowed(StagePtr input, int64_t size, WindowOptions options, Source at);
StagePtr interleaved(StagePtr input, StageFunction f, InterleaveOptions options, Source at);
// `forms` are those of each input's elements that have none; empty if no element needs one.
StagePtr sampled(std::vector<StagePtr> inputs, std::vector<FormPtr> forms, SampleOptions options,
                 Source at);
// Elements index, index + shards, ...
StagePtr sharded(StagePtr input, int64_t shards, int64_t index, Source at);
StagePtr lines_of(const std::vector<std::string>& paths, Source at);

// ---- passes -------------------------------------------------------------------------------------

// The limit on an iteration's bytes, and the line that set it.
struct Cap {
  Bytes bytes;
  Source at = Source::none();
};

// Throws OverBudget if the known bytes exceed the limit.
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

  // Throws OverBudget if the bytes exceed the limit.
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

// An iteration in progress.
class Walk {
 public:
  Walk(Walk&&) noexcept;
  Walk& operator=(Walk&&) = delete;
  ~Walk();

  // An iteration that ends before gave() was called or the end was reached does not count as
  // started.
  std::optional<Element> next();
  // The caller has received the element that next() returned: from now on it counts.
  void gave();
  Position position() const;

 private:
  friend class Pipeline;
  struct State;
  explicit Walk(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tidemark::data
