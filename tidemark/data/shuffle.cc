// shuffle: a permutation by index, or a buffer to draw from.
#include <algorithm>

#include "tidemark/data/permutation.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

// By index: a uniform permutation of all elements.
class IndexShuffleStage final : public Stage {
 public:
  IndexShuffleStage(StagePtr input, ShuffleOptions options, Source at)
      : Stage("shuffle", {std::move(input)}, at), options_(options) {}

  CursorPtr open(const Pass& pass) const override {
    return std::make_unique<IndexCursor>(*this, pass);
  }
  std::optional<int64_t> count() const override { return input().count(); }
  bool by_index() const override { return true; }
  Element at(int64_t index, const Pass& pass) const override {
    return input().at(order(pass)(index), pass);
  }
  void gather(std::span<int64_t> indices, const RowTarget& to, const Pass& pass) const override {
    const Permutation moved = order(pass);
    for (int64_t& index : indices) index = moved(index);
    input().gather(indices, to, pass);
  }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override { return states(0, "by index, without a buffer"); }

 private:
  Permutation order(const Pass& pass) const {
    return Permutation(*count(), order_key(options_.seed, options_.reshuffle ? pass.epoch : 0));
  }

  ShuffleOptions options_;
};

// Each element is drawn from the next `buffer` ones.
class BufferShuffleStage final : public Stage {
 public:
  BufferShuffleStage(StagePtr input, ShuffleOptions options, Source at)
      : Stage(cat("shuffle(buffer ", options.buffer, ")"), {std::move(input)}, at),
        options_(options) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override { return input().count(); }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override { return states_elements(options_.buffer); }
  const ShuffleOptions& options() const { return options_; }

 private:
  ShuffleOptions options_;
};

class BufferShuffleCursor final : public Cursor {
 public:
  BufferShuffleCursor(const BufferShuffleStage& stage, const Pass& pass)
      : room_(static_cast<size_t>(stage.options().buffer)),
        key_(order_key(stage.options().seed, stage.options().reshuffle ? pass.epoch : 0)),
        input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    while (!ended_ && buffer_.size() < room_) {
      std::optional<Element> element = input_->next();
      ended_ = !element.has_value();
      if (element) buffer_.push_back(*std::move(element));
    }
    if (buffer_.empty()) return std::nullopt;
    std::swap(buffer_[mixed(key_ + drawn_++) % buffer_.size()], buffer_.back());
    Element element = std::move(buffer_.back());
    buffer_.pop_back();
    return element;
  }

 private:
  size_t room_;
  uint64_t key_, drawn_ = 0;
  bool ended_ = false;
  CursorPtr input_;
  std::vector<Element> buffer_;
};

CursorPtr BufferShuffleStage::open(const Pass& pass) const {
  return std::make_unique<BufferShuffleCursor>(*this, pass);
}

// The stage nearest to the sources that cannot be read by index.
const Stage& not_by_index(const Stage& stage) {
  for (const StagePtr& input : stage.inputs())
    if (!input->by_index()) return not_by_index(*input);
  return stage;
}

}  // namespace

StagePtr shuffled(StagePtr input, ShuffleOptions options, Source at) {
  if (options.buffer < 0)
    throw UserError(cat("shuffle: .buffer cannot be ", options.buffer, " elements"), at,
                    "give 1 or more, or 0 to shuffle by index");
  if (options.buffer > 0)
    return std::make_shared<BufferShuffleStage>(std::move(input), options, at);
  if (!input->by_index()) {
    const Stage& which = not_by_index(*input);
    throw UserError(
        cat("shuffle: ", which.name(), " (", which.source().text(),
            ") cannot be read by index, so a shuffle after it needs a buffer"),
        at,
        "give the size of the buffer: .shuffle({.buffer = 1000}), or shuffle before that stage");
  }
  return std::make_shared<IndexShuffleStage>(std::move(input), options, at);
}

}  // namespace tidemark::data
