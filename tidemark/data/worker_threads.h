// Threads that compute elements ahead of the iterating thread. Internal to data/.
#pragma once

#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tidemark/api/extend.h"
#include "tidemark/api/mode.h"
#include "tidemark/base/fork.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {

class WorkerThreads {
 public:
  explicit WorkerThreads(const Stage& stage) : stage_(stage) {}

  bool none() const { return threads_.empty(); }
  // In a forked child the threads do not exist.
  bool are_lost() const { return !none() && generation_ != ForkGate::generation(); }
  // Starts up to `count` threads, in the modes of the calling thread; fewer if the system refuses
  // more. `work` must not throw.
  template <class Work>
  void start(size_t count, const Work& work) {
    threads_.reserve(count);
    generation_ = ForkGate::generation();
    try {
      while (threads_.size() < count) threads_.emplace_back(work);
    } catch (const std::bad_alloc&) {
      if (none()) throw;
    } catch (const std::system_error& error) {
      if (none())
        throw DeviceError(cat(stage_.name(), ": no thread could be started: ", error.what()),
                          stage_.source());
    }
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }
  void need() const {
    if (!are_lost()) return;
    throw UserError(cat(stage_.name(),
                        ": this iteration began before the process forked, and its threads do not "
                        "exist in the child"),
                    stage_.source(), "start the iteration in the child");
  }

 private:
  const Stage& stage_;
  std::vector<std::thread> threads_;
  uint64_t generation_ = 0;
};

// The thread-local modes that the threads of a stage inherit.
class WorkerModes {
 public:
  WorkerModes()
      : mode_(tidemark::detail::Mode::now()), memory_(tidemark::detail::scope_of_this_thread()) {}
  // Runs `work` under them.
  template <class Work>
  void run(const Work& work) const {
    const tidemark::detail::ModeScope mode(mode_);
    const tidemark::detail::WorkerScope scope(memory_);
    work();
  }

 private:
  tidemark::detail::Mode mode_;
  decltype(tidemark::detail::scope_of_this_thread()) memory_;
};

// A cursor whose elements are computed by threads. Everything they touch is in `Ahead`, which a
// forked child never uses or frees: its locks may be held by threads that the child does not have.
template <class Ahead>
class ThreadedCursor final : public Cursor {
 public:
  explicit ThreadedCursor(std::unique_ptr<Ahead> ahead) : ahead_(std::move(ahead)) {}
  ~ThreadedCursor() override {
    if (ahead_->threads().are_lost()) (void)ahead_.release();
  }
  std::optional<Element> next() override {
    ahead_->threads().need();
    return ahead_->next();
  }
  void advance(int64_t count) override { ahead_->advance(count); }

 private:
  std::unique_ptr<Ahead> ahead_;
};

}  // namespace tidemark::data
