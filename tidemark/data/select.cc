// repeat, take, skip and shard.
#include <algorithm>

#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

void need_count(const char* what, int64_t count, Source at) {
  if (count < 0)
    throw UserError(cat(what, ": the number of elements cannot be ", count), at, "give 0 or more");
}

// ---- repeat -------------------------------------------------------------------------------------

class RepeatStage final : public Stage {
 public:
  RepeatStage(StagePtr input, std::optional<int64_t> times, Source at)
      : Stage(times ? cat("repeat(", *times, ")") : "repeat", {std::move(input)}, at),
        times_(times) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    const auto each = input().count();
    if (!each || *each == 0 || times_ == 0) return times_ == 0 ? 0 : each;
    if (!times_ || *each > kEndless / *times_) return kEndless;
    return *each * *times_;
  }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override { return states(0); }
  int64_t times() const { return times_.value_or(kEndless); }

 private:
  std::optional<int64_t> times_;
};

class RepeatCursor final : public Cursor {
 public:
  RepeatCursor(const RepeatStage& stage, const Pass& pass) : stage_(stage), pass_(pass) {}

  std::optional<Element> next() override {
    std::optional<Element> element;
    while (go_on() && !(element = input_->next())) close();
    empty_ = empty_ && !element;
    return element;
  }
  int64_t read(const RowTarget& to, int64_t rows) override {
    RowTarget rest = to;
    while (rest.first < to.first + rows && go_on()) {
      const int64_t written = input_->read(rest, to.first + rows - rest.first);
      rest.first += written;
      empty_ = empty_ && written == 0;
      if (rest.first < to.first + rows) close();
    }
    return rest.first - to.first;
  }
  void advance(int64_t count) override {
    const auto each = stage_.input().count();
    if (!each || *each == 0) return Cursor::advance(count);
    empty_ = false;
    done_ = std::min(count / *each, stage_.times());
    if (go_on()) input_->advance(count % *each);
  }

 private:
  // Opens the next repetition, if there is one and none is open.
  bool go_on() {
    if (input_ != nullptr) return true;
    if (done_ == stage_.times() || (done_ > 0 && empty_)) return false;
    Pass pass = pass_;
    // Repetitions are numbered across passes, so that all shuffles differ.
    pass.epoch = stage_.times() == kEndless ? (pass_.epoch << 32) + done_
                                            : pass_.epoch * stage_.times() + done_;
    input_ = stage_.input().open(pass);
    return true;
  }
  void close() {
    input_.reset();
    ++done_;
  }

  const RepeatStage& stage_;
  Pass pass_;
  CursorPtr input_;
  int64_t done_ = 0;
  bool empty_ = true;  // No element yet: repeating an empty dataset for ever would not end.
};

CursorPtr RepeatStage::open(const Pass& pass) const {
  return std::make_unique<RepeatCursor>(*this, pass);
}

// ---- take and skip ------------------------------------------------------------------------------

// The elements from `begin` on, at most `most` of them.
class RangeStage final : public Stage {
 public:
  RangeStage(std::string name, StagePtr input, int64_t begin, int64_t most, Source at)
      : Stage(std::move(name), {std::move(input)}, at), begin_(begin), most_(most) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    const auto all = input().count();
    if (!all) return most_ == 0 ? std::optional<int64_t>(0) : std::nullopt;
    if (*all == kEndless) return most_;
    return std::min(std::max<int64_t>(*all - begin_, 0), most_);
  }
  bool by_index() const override { return input().by_index(); }
  Element at(int64_t index, const Pass& pass) const override {
    return input().at(begin_ + index, pass);
  }
  void gather(std::span<int64_t> indices, const RowTarget& to, const Pass& pass) const override {
    for (int64_t& index : indices) index += begin_;
    input().gather(indices, to, pass);
  }
  bool has_views() const override { return input().has_views(); }
  std::optional<Element> view(int64_t begin, int64_t end, const Pass& pass) const override {
    return input().view(begin_ + begin, begin_ + end, pass);
  }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override { return states(0); }
  int64_t begin() const { return begin_; }
  int64_t most() const { return most_; }

 private:
  int64_t begin_, most_;
};

class RangeCursor final : public Cursor {
 public:
  RangeCursor(const RangeStage& stage, const Pass& pass)
      : skip_(stage.begin()), left_(stage.most()), input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    start();
    if (left_ == 0) return std::nullopt;
    --left_;
    return input_->next();
  }
  int64_t read(const RowTarget& to, int64_t rows) override {
    start();
    const int64_t read = input_->read(to, std::min(rows, left_));
    left_ -= read;
    return read;
  }
  void advance(int64_t count) override {
    const int64_t passed = std::min(count, left_);
    skip_ += passed;
    left_ -= passed;
  }

 private:
  void start() {
    if (skip_ > 0) input_->advance(skip_);
    skip_ = 0;
  }

  int64_t skip_;  // Elements to skip before the first.
  int64_t left_;
  CursorPtr input_;
};

CursorPtr RangeStage::open(const Pass& pass) const {
  // Not a map, whose threads belong to its cursor.
  if (has_views()) return std::make_unique<IndexCursor>(*this, pass);
  return std::make_unique<RangeCursor>(*this, pass);
}

// ---- shard --------------------------------------------------------------------------------------

class ShardStage final : public Stage {
 public:
  ShardStage(StagePtr input, int64_t shards, int64_t index, Source at)
      : Stage(cat("shard(", index, " of ", shards, ")"), {std::move(input)}, at),
        shards_(shards),
        index_(index) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    const auto all = input().count();
    if (!all || *all == kEndless) return all;
    return *all <= index_ ? 0 : (*all - index_ - 1) / shards_ + 1;
  }
  bool by_index() const override { return input().by_index(); }
  Element at(int64_t index, const Pass& pass) const override {
    return input().at(index_ + index * shards_, pass);
  }
  void gather(std::span<int64_t> indices, const RowTarget& to, const Pass& pass) const override {
    for (int64_t& index : indices) index = index_ + index * shards_;
    input().gather(indices, to, pass);
  }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override { return states(0); }
  int64_t shards() const { return shards_; }
  int64_t index() const { return index_; }

 private:
  int64_t shards_, index_;
};

class ShardCursor final : public Cursor {
 public:
  ShardCursor(const ShardStage& stage, const Pass& pass)
      : shards_(stage.shards()), skip_(stage.index()), input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    if (!is_started_) input_->advance(skip_);
    for (int64_t i = 0; is_started_ && i < shards_ - 1; ++i)
      if (!input_->next()) return std::nullopt;
    is_started_ = true;
    return input_->next();
  }
  void advance(int64_t count) override {
    skip_ = count > (kEndless - skip_) / shards_ ? kEndless : skip_ + count * shards_;
  }

 private:
  int64_t shards_, skip_;
  CursorPtr input_;
  bool is_started_ = false;
};

CursorPtr ShardStage::open(const Pass& pass) const {
  if (input().has_views()) return std::make_unique<IndexCursor>(*this, pass);
  return std::make_unique<ShardCursor>(*this, pass);
}

}  // namespace

StagePtr sharded(StagePtr input, int64_t shards, int64_t index, Source at) {
  if (shards < 1 || index < 0 || index >= shards)
    throw UserError(cat("shard: there is no shard ", index, " of ", shards), at,
                    "shards are numbered from 0 to their number less 1");
  return std::make_shared<ShardStage>(std::move(input), shards, index, at);
}

StagePtr repeated(StagePtr input, std::optional<int64_t> times, Source at) {
  if (times.value_or(0) < 0)
    throw UserError(cat("repeat: cannot repeat ", *times, " times"), at,
                    "give 0 or more, or no argument to repeat for ever");
  return std::make_shared<RepeatStage>(std::move(input), times, at);
}

StagePtr taken(StagePtr input, int64_t count, Source at) {
  need_count("take", count, at);
  return std::make_shared<RangeStage>(cat("take(", count, ")"), std::move(input), 0, count, at);
}

StagePtr skipped(StagePtr input, int64_t count, Source at) {
  need_count("skip", count, at);
  return std::make_shared<RangeStage>(cat("skip(", count, ")"), std::move(input), count, kEndless,
                                      at);
}

}  // namespace tidemark::data
