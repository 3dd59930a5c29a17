// The user's function on each element: one after another, or several at once on threads.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "tidemark/api/memory.h"
#include "tidemark/api/mode.h"
#include "tidemark/data/noted.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

constexpr int kMostThreads = 1024;

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
    if (options_.parallel == 1) return states(working, "1 element in the making");
    // Each of the threads has what it works on, of which one is counted where it comes from, and
    // one more result is in the hands of whoever asked.
    const int64_t threads = options_.parallel;
    return states(threads * working + (threads - 1) * in->held_bytes + out->held_bytes,
                  cat(threads, " elements in the making"));
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
    return f_(std::move(element));
  } catch (...) {
    fail_at("map", number, source());
  }
  // What is larger than all before it may take more bytes than they did.
  Element measure(Element element, int64_t number) const {
    const auto in = input().type();
    const MemoryScope scope("map");
    Element result = call(std::move(element), number);
    const int64_t made = scope.current().count;
    // All made here, or also held from the input: then all of that may be.
    const bool own = granted_bytes_of(result) == made;
    noted_.note(leaf_types(result), own || !in ? made : made + in->held_bytes, scope.peak().count);
    return result;
  }

  ElementFunction f_;
  MapOptions options_;
  mutable NotedType noted_;
  mutable std::atomic<int64_t> measured_{-1};  // Of the largest element it was measured with.
};

// One after another, on the thread that asks.
class MapCursor final : public Cursor {
 public:
  MapCursor(const MapStage& stage, const Pass& pass)
      : stage_(stage), pass_(pass), input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    if (ended_) return std::nullopt;
    ended_ = true;  // Also where one of the two fails.
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

// Several at once. Each thread takes the next element, in turn, and has a slot from before it takes
// one until the result is fetched: there are never more elements around than slots.
class ParallelMapCursor final : public Cursor {
 public:
  ParallelMapCursor(const MapStage& stage, const MapOptions& options, const Pass& pass)
      : stage_(stage),
        pass_(pass),
        in_order_(options.deterministic),
        input_(stage.input().open(pass)),
        slots_(static_cast<size_t>(options.parallel)) {}
  ~ParallelMapCursor() override {
    stop();
    for (std::thread& thread : threads_) thread.join();
  }

  std::optional<Element> next() override {
    if (threads_.empty()) start();
    std::unique_lock lock(mutex_);
    Slot* slot = nullptr;
    changed_.wait(lock, [&] { return stopped_ || (slot = ready()) != nullptr; });
    if (stopped_) return std::nullopt;
    ++next_out_;
    std::optional<Element> result = std::move(slot->result);
    const std::exception_ptr failure = std::move(slot->failure);
    *slot = {};
    if (!result) stopped_ = true;
    lock.unlock();
    changed_.notify_all();
    if (failure) std::rethrow_exception(failure);
    return result;
  }
  void advance(int64_t count) override {
    input_->advance(count);
    next_in_ = next_out_ = count;
  }

 private:
  struct Slot {
    enum class State : uint8_t { free, working, done } state = State::free;
    int64_t number = 0;
    std::optional<Element> result;  // Nothing: the end, or a failure.
    std::exception_ptr failure;
  };

  void start() {
    threads_.reserve(slots_.size());
    for (size_t i = 0; i < slots_.size(); ++i)
      threads_.emplace_back([this, training = nn::is_training()] {
        const nn::Training mode(training);
        while (work()) continue;
      });
  }
  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

  // One element from the input to its slot. False when there are no more to take.
  bool work() {
    Slot* slot = nullptr;
    std::optional<Element> element;
    std::exception_ptr failure;
    {
      // In turn: numbers are given in the order of the elements.
      const std::scoped_lock turn(turn_);
      slot = take_slot();
      if (slot == nullptr) return false;
      try {
        element = input_->next();
      } catch (...) {
        failure = std::current_exception();
      }
      if (!element) end_input();
    }
    std::optional<Element> result;
    if (element) try {
        result = stage_.apply(*std::move(element), slot->number, pass_.cap);
      } catch (...) {
        failure = std::current_exception();
      }
    element.reset();
    finish(*slot, std::move(result), std::move(failure));
    return true;
  }

  Slot* take_slot() {
    std::unique_lock lock(mutex_);
    Slot* slot = nullptr;
    changed_.wait(lock, [&] { return stopped_ || input_ended_ || (slot = unused()) != nullptr; });
    if (stopped_ || input_ended_) return nullptr;
    slot->state = Slot::State::working;
    slot->number = next_in_++;
    return slot;
  }
  void end_input() {
    const std::scoped_lock lock(mutex_);
    input_ended_ = true;
  }
  void finish(Slot& slot, std::optional<Element> result, std::exception_ptr failure) {
    {
      const std::scoped_lock lock(mutex_);
      slot.result = std::move(result);
      slot.failure = std::move(failure);
      slot.state = Slot::State::done;
    }
    changed_.notify_all();
  }

  Slot* unused() {
    for (Slot& slot : slots_)
      if (slot.state == Slot::State::free) return &slot;
    return nullptr;
  }
  // The one to give next: the oldest that is done, and if order matters not before older ones.
  Slot* ready() {
    Slot* oldest = nullptr;
    for (Slot& slot : slots_)
      if (slot.state == Slot::State::done && (oldest == nullptr || slot.number < oldest->number))
        oldest = &slot;
    if (oldest == nullptr) return nullptr;
    // The end comes last in any order.
    const bool must_wait = in_order_ || (!oldest->result && !oldest->failure);
    return must_wait && has_older(oldest->number) ? nullptr : oldest;
  }
  bool has_older(int64_t number) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return slot.state != Slot::State::free && slot.number < number;
    });
  }

  const MapStage& stage_;
  Pass pass_;
  bool in_order_;
  CursorPtr input_;  // Under turn_.
  std::mutex turn_;
  std::mutex mutex_;  // Of all that follows.
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  int64_t next_in_ = 0, next_out_ = 0;
  bool stopped_ = false, input_ended_ = false;
  std::vector<std::thread> threads_;
};

CursorPtr MapStage::open(const Pass& pass) const {
  if (options_.parallel == 1) return std::make_unique<MapCursor>(*this, pass);
  return std::make_unique<ParallelMapCursor>(*this, options_, pass);
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
    throw UserError(cat("map: .parallel = ", options.parallel, " is no number of threads"), at,
                    cat("give 1 to ", kMostThreads));
  return std::make_shared<MapStage>(std::move(input), std::move(f), options, at);
}

StagePtr filtered(StagePtr input, ElementPredicate keep, Source at) {
  return std::make_shared<FilterStage>(std::move(input), std::move(keep), at);
}

}  // namespace tidemark::data
