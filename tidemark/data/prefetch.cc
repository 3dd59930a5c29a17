// prefetch: elements computed ahead, on a thread.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

#include "tidemark/data/stage.h"
#include "tidemark/data/worker_threads.h"

namespace tidemark::data {
namespace {

class PrefetchStage final : public Stage {
 public:
  PrefetchStage(StagePtr input, int64_t ahead, Source at)
      : Stage(cat("prefetch(", ahead, ")"), {std::move(input)}, at), ahead_(ahead) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override { return input().count(); }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override { return states_elements(ahead_); }
  int64_t ahead() const { return ahead_; }

 private:
  int64_t ahead_;
};

// An element is started only if there is room for it: waiting and unfinished elements together
// never exceed the requested number.
class Prefetch {
 public:
  Prefetch(const PrefetchStage& stage, const Pass& pass)
      : room_(static_cast<size_t>(stage.ahead())),
        input_(stage.input().open(pass)),
        threads_(stage) {}
  ~Prefetch() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    threads_.join();
  }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  const WorkerThreads& threads() const { return threads_; }
  std::optional<Element> next() {
    if (ended_) return std::nullopt;
    if (threads_.none()) start();
    Outcome made = fetch();
    changed_.notify_all();
    ended_ = !made.element.has_value();
    if (made.failure) std::rethrow_exception(made.failure);
    return std::move(made.element);
  }
  void advance(int64_t count) { input_->advance(count); }

 private:
  struct Outcome {
    std::optional<Element> element;  // Empty: the end, or a failure.
    std::exception_ptr failure;
  };

  void start() {
    threads_.start(1, [this, modes = WorkerModes()]() noexcept { work_in(modes); });
  }
  void work_in(const WorkerModes& modes) noexcept {
    try {
      modes.run([this] {
        while (work()) continue;
      });
    } catch (...) {  // No heap for the thread's own accounts.
      const std::scoped_lock lock(mutex_);
      lost_ = std::current_exception();
    }
    changed_.notify_all();
  }
  Outcome fetch() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty() || lost_; });
    if (waiting_.empty()) return {{}, lost_};
    Outcome made = std::move(waiting_.front());
    waiting_.pop_front();
    return made;
  }
  // False after the last element.
  bool work() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || waiting_.size() < room_; });
      if (stopped_) return false;
    }
    const bool last = !put(make());
    changed_.notify_all();
    return !last;
  }
  // Whether an element was added and more may follow.
  bool put(Outcome made) {
    const std::scoped_lock lock(mutex_);
    const bool is_element = made.element.has_value();
    try {
      waiting_.push_back(std::move(made));
    } catch (...) {  // No heap for the list.
      lost_ = std::current_exception();
    }
    return is_element && !lost_;
  }
  Outcome make() try { return {input_->next(), {}}; } catch (...) {
    return {{}, std::current_exception()};
  }

  size_t room_;
  CursorPtr input_;  // Used by the thread alone once it has started.
  bool ended_ = false;
  std::mutex mutex_;  // Guards the next four.
  std::condition_variable changed_;
  std::deque<Outcome> waiting_;
  std::exception_ptr lost_;  // Thrown after the waiting elements.
  bool stopped_ = false;
  WorkerThreads threads_;
};

CursorPtr PrefetchStage::open(const Pass& pass) const {
  return std::make_unique<ThreadedCursor<Prefetch>>(std::make_unique<Prefetch>(*this, pass));
}

}  // namespace

StagePtr prefetched(StagePtr input, int64_t count, Source at) {
  if (count < 1)
    throw UserError(cat("prefetch: cannot keep ", count, " elements ahead"), at, "give 1 or more");
  return std::make_shared<PrefetchStage>(std::move(input), count, at);
}

}  // namespace tidemark::data
