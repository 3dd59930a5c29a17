// Draws of the global generator that come to nothing; internal to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tidemark::detail {

// In its life the draws that this thread takes are noted. Unless they are kept, the generator gets
// them back: what is refused leaves it as it was. Where another thread has drawn meanwhile the
// numbers stay taken.
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
  struct Taken {
    int64_t key = 0, first = 0, count = 0;
    bool in_a_row = true;
  };
  void add(size_t sequence, const Taken& more) {
    Taken& taken = taken_[sequence];
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
  Taken taken_[2] = {};
  bool kept_ = false;
  DrawsToKeep* outer_;
};

}  // namespace tidemark::detail
