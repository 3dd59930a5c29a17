// cache: elements stored in memory.
#include <atomic>

#include "tidemark/data/kept_rows.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

// If the number of elements is unknown, blocks grow up to this size.
constexpr int64_t kBlockBytes = int64_t{1} << 20;

int64_t block_bytes(const std::vector<LeafType>& row, int64_t rows) {
  int64_t sum = 0;
  for (const LeafType& leaf : row) sum += granted_bytes(rows * leaf.size_bytes());
  return sum;
}

class CacheStage final : public KeepingStage {
 public:
  CacheStage(StagePtr input, Source at) : KeepingStage("cache", {std::move(input)}, at) {}

  StageBytes bytes() const override {
    if (const auto rows = kept()) return states(held_bytes_, cat(rows->count(), " elements"));
    const auto type = input().type();
    const auto elements = input().count();
    if (!type || !elements) return states_unknown(held_bytes_, "known when it is filled");
    // Elements of different sizes need separate blocks.
    return states(std::max(held_bytes_.load(), block_bytes(type->leaves, *elements)),
                  cat(*elements, " elements ", text_of(type->leaves), ", not filled yet"));
  }

 private:
  KeptRows fill(const Pass& pass) const override;
  void forget() const override { held_bytes_ = 0; }
  class Filling;

  mutable std::atomic<int64_t> held_bytes_{0};
};

// Consecutive elements of one type share a block: one block for all elements if their number is
// known, else blocks of doubling size. Another type starts another block.
class CacheStage::Filling {
 public:
  Filling(const CacheStage& stage, const Pass& pass)
      : stage_(stage), pass_(pass), room_(stage.input().count().value_or(1)) {}
  ~Filling() {
    if (!done_) stage_.held_bytes_ = 0;
  }
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;

  void add(const Element& element) {
    if (block_ && !block_->takes(element)) close(1);
    if (block_ && used_ == block_->rows()) close(2 * block_->rows());
    if (!block_) open(element);
    write_row(element, block_->from(0), used_++);
  }
  KeptRows take() {
    close(1);
    done_ = true;
    return std::move(rows_);
  }

 private:
  void open(const Element& element) {
    const std::vector<LeafType> row = leaf_types(element);
    const int64_t most = kBlockBytes / std::max<int64_t>(block_bytes(row, 1), 1);
    if (!first_) room_ = std::clamp<int64_t>(room_, 1, std::max<int64_t>(most, 1));
    first_ = false;
    stage_.held_bytes_ += block_bytes(row, room_);
    (*pass_.cap)();
    block_.emplace(element, room_, stage_.source());
  }
  void close(int64_t next_room) {
    if (block_) rows_.add(block_->take(used_), used_, stage_.source());
    block_.reset();
    used_ = 0;
    room_ = next_room;
  }

  const CacheStage& stage_;
  Pass pass_;
  KeptRows rows_;
  std::optional<RowBlock> block_;
  int64_t room_, used_ = 0;
  bool first_ = true, done_ = false;
};

KeptRows CacheStage::fill(const Pass& pass) const {
  Filling filling(*this, pass);
  const CursorPtr cursor = input().open(pass);
  while (const std::optional<Element> element = cursor->next()) filling.add(*element);
  return filling.take();
}

}  // namespace

StagePtr cached(StagePtr input, Source at) {
  if (input->count() == kEndless)
    throw UserError("cache: the elements before it never end", at,
                    "put cache before repeat(), or limit the elements with take()");
  return std::make_shared<CacheStage>(std::move(input), at);
}

}  // namespace tidemark::data
