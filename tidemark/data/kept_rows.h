// The elements in a cache: blocks of rows, usually one. Internal to data/.
#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "tidemark/base/lock.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {

class KeptRows {
 public:
  // Elements with a new first axis; `rows` of them.
  void add(Element block, int64_t rows, Source at) {
    std::vector<std::string> paths(block.tensors.size());
    blocks_.push_back({count_, slices(std::move(block), std::move(paths), at)});
    count_ += rows;
  }

  int64_t count() const { return count_; }
  bool is_one_block() const { return blocks_.size() == 1; }
  const Stage& block() const { return *blocks_.front().rows; }
  Element at(int64_t index, const Pass& pass) const {
    const auto after =
        std::upper_bound(blocks_.begin(), blocks_.end(), index,
                         [](int64_t wanted, const Block& block) { return wanted < block.begin; });
    const Block& block = *std::prev(after);
    return block.rows->at(index - block.begin, pass);
  }

 private:
  struct Block {
    int64_t begin = 0;
    StagePtr rows;
  };
  std::vector<Block> blocks_;
  int64_t count_ = 0;
};

// A stage that stores its elements during the first iteration.
class KeepingStage : public Stage {
 public:
  using Stage::Stage;

  CursorPtr open(const Pass& pass) const final {
    return std::make_unique<IndexCursor>(*this, pass);
  }
  void prepare(const Pass& pass) const final {
    const std::scoped_lock lock(filling_);
    if (!kept()) {  // Once filled, the stages before it are not iterated again.
      Stage::prepare(pass);
      pass.prepared->reserve(pass.prepared->size() + 1);
      const auto rows = std::make_shared<KeptRows>();
      *rows = fill(pass);
      keep(rows);
    }
    pass.prepared->push_back(this);
    ++walks_;
  }
  // If the last prepared iteration is not started, the elements are dropped.
  void take_back() const final {
    const std::scoped_lock lock(filling_);
    if (--walks_ > 0) return;
    keep(nullptr);
    forget();
  }
  std::optional<int64_t> count() const final {
    const auto rows = kept();
    return rows ? rows->count() : input().count();
  }
  bool by_index() const final { return true; }
  Element at(int64_t index, const Pass& pass) const final { return kept()->at(index, pass); }
  void gather(std::span<int64_t> indices, const RowTarget& to, const Pass& pass) const final {
    const auto rows = kept();
    if (rows->is_one_block())
      rows->block().gather(indices, to, pass);
    else
      Stage::gather(indices, to, pass);
  }
  bool has_views() const final {
    const auto rows = kept();
    return rows && rows->is_one_block();
  }
  std::optional<Element> view(int64_t begin, int64_t end, const Pass& pass) const final {
    return kept()->block().view(begin, end, pass);
  }

  std::optional<ElementType> type() const final {
    auto type = input().type();
    if (type) type->held_bytes = 0;  // They are views of the stored blocks.
    return type;
  }
  std::optional<Element> sample() const final {
    const auto rows = kept();
    if (!rows) return input().sample();
    if (rows->count() == 0) return std::nullopt;
    return rows->at(0, {});
  }

 protected:
  virtual KeptRows fill(const Pass& pass) const = 0;
  // Drops the elements.
  virtual void forget() const {}
  std::shared_ptr<const KeptRows> kept() const {
    const std::scoped_lock lock(mutex_);
    return kept_;
  }

 private:
  void keep(std::shared_ptr<const KeptRows> rows) const {
    const std::scoped_lock lock(mutex_);
    kept_.swap(rows);
  }

  mutable LongMutex filling_;  // Held while one iteration fills the cache; others wait.
  mutable int64_t walks_ = 0;  // Iterations prepared or started. Guarded by filling_.
  mutable Mutex mutex_;        // Guards kept_.
  mutable std::shared_ptr<const KeptRows> kept_;
};

}  // namespace tidemark::data
