// batch: several elements as one with a new first axis, copied row by row into one block, or a view
// if they are contiguous.
#include <algorithm>

#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

class BatchStage final : public Stage {
 public:
  BatchStage(StagePtr input, int64_t size, BatchOptions options, Source at)
      : Stage(cat("batch(", size, ")"), {std::move(input)}, at), size_(size), options_(options) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    const auto elements = input().count();
    if (!elements || *elements == kEndless) return elements;
    return *elements / size_ + (options_.drop_remainder || *elements % size_ == 0 ? 0 : 1);
  }
  bool by_index() const override { return input().by_index(); }
  Element at(int64_t index, const Pass& pass) const override {
    const int64_t begin = index * size_;
    const int64_t end = std::min(begin + size_, *input().count());
    if (input().has_views()) return input().view(begin, end, pass).value();
    return stacked(input(), {.begin = begin, .rows = end - begin}, pass, source());
  }

  std::optional<ElementType> type() const override {
    auto type = input().type();
    if (!type) return std::nullopt;
    type->held_bytes = 0;
    for (LeafType& leaf : type->leaves) {
      leaf.shape.insert(0, rows());
      if (!input().has_views()) type->held_bytes += granted_bytes(leaf.size_bytes());
    }
    return type;
  }
  std::optional<Element> sample() const override {
    const std::optional<Element> row = input().sample();
    if (!row) return std::nullopt;
    if (input().has_views()) return input().view(0, rows(), {});
    RowBlock block(*row, rows(), source());
    for (int64_t i = 0; i < rows(); ++i) write_row(*row, block.from(0), i);
    return block.take(rows());
  }
  StageBytes bytes() const override {
    const auto batch = type();
    if (!batch) return states_unknown(0, "known after the first element");
    return states(batch->held_bytes,
                  cat(input().has_views() ? "views: " : "1 batch ", text_of(batch->leaves)));
  }

  // The rows of a full batch, or of all elements if they are fewer.
  int64_t rows() const { return std::min(size_, input().count().value_or(kEndless)); }
  int64_t size() const { return size_; }
  bool keeps(int64_t rows) const { return rows == size_ || (rows > 0 && !options_.drop_remainder); }

 private:
  int64_t size_;
  BatchOptions options_;
};

class BatchCursor final : public Cursor {
 public:
  BatchCursor(const BatchStage& stage, const Pass& pass)
      : stage_(stage), input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    if (ended_) return std::nullopt;
    ended_ = true;  // Also if an element fails.
    auto [rows, batch] = stage_.input().has_views() ? seen() : written();
    ended_ = rows < stage_.size();
    if (!stage_.keeps(rows)) return std::nullopt;
    return std::move(batch);
  }
  void advance(int64_t count) override {
    const bool overflows = count > kEndless / stage_.size();
    input_->advance(overflows ? kEndless : count * stage_.size());
  }

 private:
  struct Rows {
    int64_t count = 0;
    Element element;
  };
  Rows seen() {
    std::optional<Element> batch = input_->view(stage_.size());
    if (!batch) return {};
    const int64_t rows = batch->tensors.front().shape()[0];
    return {rows, *std::move(batch)};
  }
  // The first element determines the type of the rows.
  Rows written() {
    std::optional<Element> first = input_->next();
    if (!first) return {};
    RowBlock block(*first, stage_.rows(), stage_.source());
    write_row(*first, block.from(0), 0);
    first.reset();
    const int64_t rows = 1 + input_->read(block.from(1), stage_.rows() - 1);
    return {rows, block.take(rows)};
  }

  const BatchStage& stage_;
  CursorPtr input_;
  bool ended_ = false;
};

CursorPtr BatchStage::open(const Pass& pass) const {
  return std::make_unique<BatchCursor>(*this, pass);
}

}  // namespace

StagePtr batched(StagePtr input, int64_t size, BatchOptions options, Source at) {
  if (size < 1)
    throw UserError(cat("batch: a batch cannot have ", size, " elements"), at, "give 1 or more");
  return std::make_shared<BatchStage>(std::move(input), size, options, at);
}

}  // namespace tidemark::data
