// Threads that make elements ahead of the thread that walks. Internal to data/.
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
  // In a forked child: they are not there.
  bool are_lost() const { return !none() && generation_ != ForkGate::generation(); }
  // Starts up to `count` of them, in the modes of the calling thread. Fewer will do where the
  // system has no room for more. `work` does not throw.
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
                        ": this walk was begun before the process forked, and its threads are "
                        "not in the child"),
                    stage_.source(), "begin a walk in the child");
  }

 private:
  const Stage& stage_;
  std::vector<std::thread> threads_;
  uint64_t generation_ = 0;
};

// What the threads of a stage are told of the thread that starts them.
class WorkerModes {
 public:
  WorkerModes() : training_(nn::is_training()), memory_(tidemark::detail::scope_of_this_thread()) {}
  // Runs `work` under them.
  template <class Work>
  void run(const Work& work) const {
    const nn::Training mode(training_);
    const tidemark::detail::WorkerScope scope(memory_);
    work();
  }

 private:
  bool training_;
  decltype(tidemark::detail::scope_of_this_thread()) memory_;
};

// A cursor whose elements are made by threads. All that these touch is in `Ahead`, which a forked
// child leaves alone for ever: locks may be taken there and threads be waited for that it does not
// have.
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
