// Measurements of elements whose bytes are known only once they are made. Internal to data/.
#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tidemark/base/lock.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {

// The largest element so far, and the most bytes that computing one took. Written from any thread.
class MeasuredType {
 public:
  // True if this one is larger than all before it.
  bool note(std::vector<LeafType> leaves, int64_t held_bytes, int64_t working_bytes) {
    ElementType type{std::move(leaves), held_bytes};
    const std::scoped_lock lock(mutex_);
    const bool larger = !type_ || type.size_bytes() > type_->size_bytes() ||
                        held_bytes > type_->held_bytes || working_bytes > working_bytes_;
    if (!larger) return false;
    held_bytes = type_ ? std::max(held_bytes, type_->held_bytes) : held_bytes;
    if (!type_ || type.size_bytes() > type_->size_bytes()) type_ = std::move(type);
    type_->held_bytes = held_bytes;
    working_bytes_ = std::max(working_bytes_, working_bytes);
    return true;
  }
  std::optional<ElementType> type() const {
    const std::scoped_lock lock(mutex_);
    return type_;
  }
  int64_t working_bytes() const {
    const std::scoped_lock lock(mutex_);
    return working_bytes_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<ElementType> type_;
  int64_t working_bytes_ = 0;
};

// A stage of which nothing is known before elements are made.
class MeasuredStage : public Stage {
 public:
  using Stage::Stage;
  std::optional<int64_t> count() const final { return std::nullopt; }
  std::optional<ElementType> type() const final { return noted_.type(); }
  std::optional<Element> sample() const final { return std::nullopt; }
  StageBytes bytes() const final {
    const std::optional<ElementType> type = noted_.type();
    return type ? bytes_for(*type) : states_unknown(0, "known after the first element");
  }

 protected:
  virtual StageBytes bytes_for(const ElementType& element) const = 0;

  mutable MeasuredType noted_;
};

}  // namespace tidemark::data
