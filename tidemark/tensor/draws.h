// Returns draws to the global generator if an operation is abandoned. Internal to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tidemark::detail {

// While it lives, it records the draws of this thread. Unless keep() is called, they are returned
// to the generator, so that a refused operation leaves it unchanged. If another thread has drawn
// meanwhile, the numbers are skipped.
class DrawsToKeep {
 public:
  DrawsToKeep() : outer_(std::exchange(current_, this)) {}
  ~DrawsToKeep() {
    current_ = outer_;
    if (!kept_)
      give_back();
    else if (outer_ != nullptr)
      for (size_t sequence = 0; sequence < 2; ++sequence) outer_->add(sequence, taken_[sequence]);
  }
  DrawsToKeep(const DrawsToKeep&) = delete;
  DrawsToKeep& operator=(const DrawsToKeep&) = delete;

  void keep() { kept_ = true; }
  // The generator's key, which of its sequences, and the number of the draw.
  static void note(int64_t key, size_t sequence, int64_t draw) {
    if (current_ != nullptr) current_->add(sequence, {.key = key, .first = draw, .count = 1});
  }

 private:
  struct DrawRange {
    int64_t key = 0, first = 0, count = 0;
    bool in_a_row = true;
  };
  void add(size_t sequence, const DrawRange& more) {
    DrawRange& taken = taken_[sequence];
    if (more.count == 0) return;
    if (taken.count == 0) {
      taken = more;
      return;
    }
    taken.in_a_row = taken.in_a_row && more.in_a_row && more.key == taken.key &&
                     more.first == taken.first + taken.count;
    taken.count += more.count;
  }
  void give_back() noexcept;

  static constinit thread_local DrawsToKeep* current_;
  DrawRange taken_[2] = {};
  bool kept_ = false;
  DrawsToKeep* outer_;
};

}  // namespace tidemark::detail
