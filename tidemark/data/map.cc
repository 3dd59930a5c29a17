// map: the user's function on each element, sequentially or on several threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "tidemark/api/memory.h"
#include "tidemark/data/noted.h"
#include "tidemark/data/stage.h"
#include "tidemark/data/worker_threads.h"

namespace tidemark::data {
namespace {

constexpr int kMostThreads = 1024;
// The size of the groups of elements that threads take: limited to this many bytes and to about
// this much time, so that slow elements do not delay each other.
constexpr int64_t kGroupBytes = int64_t{64} << 10;
constexpr int64_t kMostInGroup = 64;
constexpr int64_t kGroupNs = 100'000;

class MapStage final : public Stage {
 public:
  MapStage(StagePtr input, ElementFunction f, MapOptions options, Source at)
      : Stage(options.parallel == 1 ? "map" : cat("map(parallel ", options.parallel, ")"),
              {std::move(input)}, at),
        f_(std::move(f)),
        options_(options) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override { return input().count(); }
  bool by_index() const override { return input().by_index(); }
  Element at(int64_t index, const Pass& pass) const override {
    return apply(input().at(index, pass), index, pass.cap);
  }

  // May be called from several threads at once.
  Element apply(Element element, int64_t number, const CapCheck* cap) const {
    const int64_t size = size_of_element(element);
    if (size <= measured_.load(std::memory_order_acquire)) return call(std::move(element), number);
    Element result = measure(std::move(element), number);
    raise(measured_, size);
    if (cap != nullptr) (*cap)();
    return result;
  }

  std::optional<ElementType> type() const override { return noted_.type(); }
  void learn() const override {
    if (!type()) sample();
    Stage::learn();
  }
  std::optional<Element> sample() const override {
    std::optional<Element> element = input().sample();
    if (!element) return std::nullopt;
    return apply(*std::move(element), 0, nullptr);
  }
  StageBytes bytes() const override {
    const auto out = type();
    const auto in = input().type();
    if (!out || !in) return states_unknown(0, "known after the first element");
    const int64_t working = noted_.working_bytes();
    if (options_.parallel == 1) return states(working, "1 element being computed");
    // Each thread holds a group of elements, each an input or a result, and computes one. One more
    // group of results is being consumed; its last input is counted by the stage before.
    const int64_t threads = options_.parallel, group = group_limit();
    const int64_t in_groups = threads * group * in->held_bytes - in->held_bytes;
    const int64_t results = (threads * (group - 1) + group) * out->held_bytes;
    return states(
        threads * working + in_groups + results,
        cat(threads, " elements being computed, up to ", (threads + 1) * group, " ready"));
  }
  // How many elements a thread takes at once. For small ones, handing over costs more than
  // computing.
  int64_t group_limit() const {
    const auto out = type();
    const auto in = input().type();
    if (!out || !in) return 1;
    const int64_t bytes = std::max<int64_t>(in->held_bytes + out->held_bytes, 1);
    return std::clamp<int64_t>(kGroupBytes / bytes, 1, kMostInGroup);
  }

 private:
  static int64_t size_of_element(const Element& element) {
    int64_t sum = 0;
    for (const Tensor& tensor : element.tensors) sum += tensor.size_bytes().count;
    return sum;
  }
  static void raise(std::atomic<int64_t>& most, int64_t value) {
    int64_t before = most.load(std::memory_order_relaxed);
    while (before < value && !most.compare_exchange_weak(before, value, std::memory_order_acq_rel))
      continue;
  }

  Element call(Element element, int64_t number) const try {
    Element result = f_(std::move(element));
    need_values(result);
    return result;
  } catch (...) {
    fail_at("map", number, source());
  }
  // A larger element than all before may need more bytes.
  Element measure(Element element, int64_t number) const {
    const auto in = input().type();
    const MemoryScope scope("map");
    Element result = call(std::move(element), number);
    const int64_t made = scope.current().count;
    // Results may also keep memory of the input alive.
    const bool own = granted_bytes_of(result) == made;
    noted_.note(leaf_types(result), own || !in ? made : made + in->held_bytes, scope.peak().count);
    return result;
  }

  ElementFunction f_;
  MapOptions options_;
  mutable MeasuredType noted_;
  mutable std::atomic<int64_t> measured_{-1};  // Of the largest element it was measured with.
};

// Sequential, on the calling thread.
class MapCursor final : public Cursor {
 public:
  MapCursor(const MapStage& stage, const Pass& pass)
      : stage_(stage), pass_(pass), input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    if (ended_) return std::nullopt;
    ended_ = true;  // Also if either of the two fails.
    std::optional<Element> element = input_->next();
    if (!element) return std::nullopt;
    Element result = stage_.apply(*std::move(element), number_, pass_.cap);
    ++number_;
    ended_ = false;
    return result;
  }
  void advance(int64_t count) override {
    input_->advance(count);
    number_ += count;
  }

 private:
  const MapStage& stage_;
  Pass pass_;
  CursorPtr input_;
  int64_t number_ = 0;
  bool ended_ = false;
};

// Parallel. Threads take groups of consecutive elements in turn. A thread occupies a slot from
// before it takes a group until the results are fetched, so that there are never more groups than
// slots, plus the one being consumed.
class ParallelMap {
 public:
  ParallelMap(const MapStage& stage, const MapOptions& options, const Pass& pass)
      : stage_(stage),
        pass_(pass),
        in_order_(options.deterministic),
        input_(stage.input().open(pass)),
        slots_(static_cast<size_t>(options.parallel)),
        threads_(stage) {}
  ~ParallelMap() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    threads_.join();
  }
  ParallelMap(const ParallelMap&) = delete;
  ParallelMap& operator=(const ParallelMap&) = delete;

  const WorkerThreads& threads() const { return threads_; }
  std::optional<Element> next() {
    if (threads_.none()) start();
    while (!ended_ && given_from_ == given_.results.size()) {
      ended_ = given_.last;
      if (given_.failure) std::rethrow_exception(std::exchange(given_.failure, nullptr));
      if (!ended_) given_ = fetch();
      given_from_ = 0;
    }
    if (ended_) return std::nullopt;
    return std::move(given_.results[given_from_++]);
  }
  void advance(int64_t count) {
    input_->advance(count);
    next_in_ = next_out_ = count;
  }

 private:
  // Consecutive elements, then a failure or the end.
  struct Group {
    int64_t number = 0;  // Of the first.
    int64_t taken = 0;   // Elements of the input.
    std::vector<Element> results;
    std::exception_ptr failure;
    bool last = false;
  };
  struct Slot {
    enum class State : uint8_t { free, working, done } state = State::free;
    Group group;
  };

  void start() {
    threads_.start(slots_.size(), [this, modes = WorkerModes()]() noexcept { work_in(modes); });
  }

  // ---- on the threads

  // A failure outside a group (no memory for the thread's own accounts) is reported after the
  // results of the other threads.
  void work_in(const WorkerModes& modes) noexcept {
    try {
      begin_work();
      modes.run([this] {
        while (work()) continue;
      });
      end_work(nullptr);
    } catch (...) {
      end_work(std::current_exception());
    }
  }
  void begin_work() {
    const std::scoped_lock lock(mutex_);
    ++working_;
  }
  void end_work(const std::exception_ptr& failure) {
    {
      const std::scoped_lock lock(mutex_);
      --working_;
      if (failure != nullptr) lost_ = failure;
    }
    ready_.notify_one();
  }

  // Moves one group from the input to its slot. False if there are no more elements.
  bool work() {
    std::vector<Element> elements;
    Slot* slot = take(elements);
    if (slot == nullptr) return false;
    const auto start = std::chrono::steady_clock::now();
    Group& group = slot->group;
    try {
      int64_t number = group.number;
      for (Element& element : elements)
        group.results.push_back(stage_.apply(std::move(element), number++, pass_.cap));
    } catch (...) {
      group.failure = std::current_exception();
      group.last = taken_all_ = true;
    }
    elements.clear();
    const auto elapsed = std::chrono::steady_clock::now() - start;
    finish(*slot, std::chrono::nanoseconds(elapsed).count());
    return true;
  }

  // In turn, so that groups are in the order of their elements.
  Slot* take(std::vector<Element>& elements) {
    const std::scoped_lock turn(turn_);
    Slot* slot = take_slot();
    if (slot == nullptr) return nullptr;
    Group& group = slot->group;
    try {
      const int64_t most = std::min(wanted_.load(), stage_.group_limit());
      while (!group.last && group.taken < most) {
        std::optional<Element> element = input_->next();
        group.last = !element.has_value();
        if (element) elements.push_back(*std::move(element));
        if (element) ++group.taken;
      }
    } catch (...) {
      group.failure = std::current_exception();
      group.last = true;
    }
    next_in_ += group.taken;
    if (group.last) taken_all_ = true;
    return slot;
  }
  Slot* take_slot() {
    if (taken_all_) return nullptr;
    std::unique_lock lock(mutex_);
    Slot* slot = nullptr;
    room_.wait(lock, [&] { return stopped_ || (slot = unused()) != nullptr; });
    if (stopped_) return nullptr;
    slot->state = Slot::State::working;
    slot->group.number = next_in_;
    return slot;
  }
  void finish(Slot& slot, int64_t elapsed_ns) {
    const int64_t taken = std::max<int64_t>(slot.group.taken, 1);
    wanted_ =
        std::clamp<int64_t>(kGroupNs * taken / std::max<int64_t>(elapsed_ns, 1), 1, kMostInGroup);
    {
      const std::scoped_lock lock(mutex_);
      slot.state = Slot::State::done;
    }
    ready_.notify_one();
  }
  Slot* unused() {
    for (Slot& slot : slots_)
      if (slot.state == Slot::State::free) return &slot;
    return nullptr;
  }

  // ---- on the thread that walks

  Group fetch() {
    std::unique_lock lock(mutex_);
    Slot* slot = nullptr;
    ready_.wait(lock, [&] { return (slot = ready()) != nullptr || (lost_ && working_ == 0); });
    if (slot == nullptr) std::rethrow_exception(lost_);
    Group group = std::exchange(slot->group, {});
    slot->state = Slot::State::free;
    next_out_ = group.number + group.taken;
    lock.unlock();
    room_.notify_one();
    return group;
  }
  // The group to yield next. If order does not matter it is any group, but the last one comes last.
  Slot* ready() {
    for (Slot& slot : slots_) {
      if (slot.state != Slot::State::done) continue;
      const bool waits =
          in_order_ ? slot.group.number != next_out_ : slot.group.last && !is_only(slot);
      if (!waits) return &slot;
    }
    return nullptr;
  }
  bool is_only(const Slot& one) const {
    return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return &slot == &one || slot.state == Slot::State::free;
    });
  }

  const MapStage& stage_;
  Pass pass_;
  bool in_order_;

  std::mutex turn_;  // Of the next two.
  CursorPtr input_;
  int64_t next_in_ = 0;
  std::atomic<bool> taken_all_{false};  // Or an element has failed, and no more are needed.

  std::mutex mutex_;  // Guards the next three and the states of slots; a group belongs to its
                      // thread until it is done.
  std::condition_variable room_, ready_;
  bool stopped_ = false;
  int working_ = 0;          // Threads that still take elements.
  std::exception_ptr lost_;  // The failure of a thread that ended early.
  std::vector<Slot> slots_;
  std::atomic<int64_t> wanted_{1};  // Elements in a group.

  Group given_;            // The fetched group,
  size_t given_from_ = 0;  // which is consumed up to here.
  int64_t next_out_ = 0;
  bool ended_ = false;
  WorkerThreads threads_;
};

CursorPtr MapStage::open(const Pass& pass) const {
  if (options_.parallel == 1) return std::make_unique<MapCursor>(*this, pass);
  return std::make_unique<ThreadedCursor<ParallelMap>>(
      std::make_unique<ParallelMap>(*this, options_, pass));
}

class FilterStage final : public Stage {
 public:
  FilterStage(StagePtr input, ElementPredicate keep, Source at)
      : Stage("filter", {std::move(input)}, at), keep_(std::move(keep)) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    return input().count() == 0 ? std::optional<int64_t>(0) : std::nullopt;
  }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override { return states(0); }

  bool keeps(const Element& element, int64_t number) const try {
    return keep_(element);
  } catch (...) {
    fail_at("filter", number, source());
  }

 private:
  ElementPredicate keep_;
};

class FilterCursor final : public Cursor {
 public:
  FilterCursor(const FilterStage& stage, const Pass& pass)
      : stage_(stage), input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    while (std::optional<Element> element = input_->next())
      if (stage_.keeps(*element, number_++)) return element;
    return std::nullopt;
  }

 private:
  const FilterStage& stage_;
  CursorPtr input_;
  int64_t number_ = 0;
};

CursorPtr FilterStage::open(const Pass& pass) const {
  return std::make_unique<FilterCursor>(*this, pass);
}

}  // namespace

StagePtr mapped(StagePtr input, ElementFunction f, MapOptions options, Source at) {
  if (options.parallel < 1 || options.parallel > kMostThreads)
    throw UserError(cat("map: .parallel = ", options.parallel, " is not a number of threads"), at,
                    cat("give 1 to ", kMostThreads));
  return std::make_shared<MapStage>(std::move(input), std::move(f), options, at);
}

StagePtr filtered(StagePtr input, ElementPredicate keep, Source at) {
  return std::make_shared<FilterStage>(std::move(input), std::move(keep), at);
}

}  // namespace tidemark::data
