// Which elements come, and in what order: shuffle, repeat, take, skip, zip.
#include <algorithm>

#include "tidemark/data/permutation.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

void need_count(const char* what, int64_t count, Source at) {
  if (count < 0)
    throw UserError(cat(what, ": ", count, " elements cannot be"), at, "give 0 or more");
}

// ---- shuffle
// --------------------------------------------------------------------------------------

// By index: any order of all elements.
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
  StageBytes bytes() const override { return states(0, "by index, computed"); }

 private:
  Permutation order(const Pass& pass) const {
    return Permutation(*count(), order_key(options_.seed, options_.reshuffle ? pass.epoch : 0));
  }

  ShuffleOptions options_;
};

// Any of the next `buffer` elements.
class BufferShuffleStage final : public Stage {
 public:
  BufferShuffleStage(StagePtr input, ShuffleOptions options, Source at)
      : Stage(cat("shuffle(buffer ", options.buffer, ")"), {std::move(input)}, at),
        options_(options) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override { return input().count(); }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override {
    const auto type = input().type();
    if (!type) return states_unknown(0, "known after the first element");
    const int64_t elements = std::min(options_.buffer, count().value_or(kEndless));
    return states(elements * type->held_bytes, cat(elements, " elements ", text_of(type->leaves)));
  }
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

// The stage on the way to the sources that cannot be read by index.
const Stage& not_by_index(const Stage& stage) {
  for (const StagePtr& input : stage.inputs())
    if (!input->by_index()) return not_by_index(*input);
  return stage;
}

// ---- repeat
// ---------------------------------------------------------------------------------------

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
    // Repetitions count on from pass to pass, so that shuffles differ in all of them.
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
  bool empty_ = true;  // Nothing came yet: repeating it for ever would never end.
};

CursorPtr RepeatStage::open(const Pass& pass) const {
  return std::make_unique<RepeatCursor>(*this, pass);
}

// ---- take and skip
// --------------------------------------------------------------------------------

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

  int64_t skip_;  // To be passed over before the first element.
  int64_t left_;
  CursorPtr input_;
};

CursorPtr RangeStage::open(const Pass& pass) const {
  // Not a map: its threads are its cursor's.
  if (has_views()) return std::make_unique<IndexCursor>(*this, pass);
  return std::make_unique<RangeCursor>(*this, pass);
}

// ---- zip
// ------------------------------------------------------------------------------------------

using JoinForms = std::function<FormPtr(const std::vector<FormPtr>&)>;

class ZipStage final : public Stage {
 public:
  ZipStage(std::vector<StagePtr> inputs, JoinForms join, Source at)
      : Stage("zip", std::move(inputs), at), join_(std::move(join)) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    int64_t least = kEndless;
    for (const StagePtr& input : inputs()) {
      const auto count = input->count();
      if (!count) return std::nullopt;
      least = std::min(least, *count);
    }
    return least;
  }
  bool by_index() const override { return all(&Stage::by_index); }
  Element at(int64_t index, const Pass& pass) const override {
    std::vector<Element> parts;
    for (const StagePtr& input : inputs()) parts.push_back(input->at(index, pass));
    return joined(std::move(parts));
  }
  bool has_views() const override { return all(&Stage::has_views); }
  std::optional<Element> view(int64_t begin, int64_t end, const Pass& pass) const override {
    std::vector<Element> parts;
    for (const StagePtr& input : inputs()) parts.push_back(input->view(begin, end, pass).value());
    return joined(std::move(parts));
  }
  std::optional<ElementType> type() const override {
    ElementType all;
    for (const StagePtr& input : inputs()) {
      const auto part = input->type();
      if (!part) return std::nullopt;
      all.leaves.insert(all.leaves.end(), part->leaves.begin(), part->leaves.end());
      all.held_bytes += part->held_bytes;
    }
    return all;
  }
  std::optional<Element> sample() const override {
    std::vector<Element> parts;
    for (const StagePtr& input : inputs()) {
      std::optional<Element> part = input->sample();
      if (!part) return std::nullopt;
      parts.push_back(*std::move(part));
    }
    return joined(std::move(parts));
  }
  StageBytes bytes() const override { return states(0); }

  Element joined(std::vector<Element> parts) const {
    Element whole;
    std::vector<FormPtr> forms;
    for (Element& part : parts) {
      std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(whole.tensors));
      forms.push_back(std::move(part.form));
    }
    if (join_) whole.form = join_(forms);
    return whole;
  }

 private:
  bool all(bool (Stage::*property)() const) const {
    return std::all_of(inputs().begin(), inputs().end(),
                       [&](const StagePtr& input) { return (*input.*property)(); });
  }
  JoinForms join_;
};

class ZipCursor final : public Cursor {
 public:
  ZipCursor(const ZipStage& stage, const Pass& pass) : stage_(stage) {
    for (const StagePtr& input : stage.inputs()) inputs_.push_back(input->open(pass));
  }

  std::optional<Element> next() override {
    std::vector<Element> parts;
    for (const CursorPtr& input : inputs_) {
      if (ended_) return std::nullopt;
      std::optional<Element> part = input->next();
      ended_ = !part.has_value();
      if (part) {
        widths_.resize(inputs_.size());
        widths_[parts.size()] = part->tensors.size();
        parts.push_back(*std::move(part));
      }
    }
    if (ended_) return std::nullopt;
    return stage_.joined(std::move(parts));
  }
  // Each input writes its own tensors. Forms have no such parts: elements with one are joined.
  int64_t read(const RowTarget& to, int64_t rows) override {
    if (to.form != nullptr || widths_.empty()) return Cursor::read(to, rows);
    size_t first = 0;
    for (size_t i = 0; i < inputs_.size() && !ended_; ++i) {
      RowTarget part = to;
      part.leaves = to.leaves.subspan(first, widths_[i]);
      const int64_t read = inputs_[i]->read(part, rows);
      ended_ = read < rows;
      rows = read;
      first += widths_[i];
    }
    // The shortest says how many; what others wrote beyond it is not counted.
    return rows;
  }
  void advance(int64_t count) override {
    for (const CursorPtr& input : inputs_) input->advance(count);
  }

 private:
  const ZipStage& stage_;
  std::vector<CursorPtr> inputs_;
  std::vector<size_t> widths_;  // Tensors of each input, known from the first element.
  bool ended_ = false;
};

CursorPtr ZipStage::open(const Pass& pass) const {
  if (has_views()) return std::make_unique<IndexCursor>(*this, pass);
  return std::make_unique<ZipCursor>(*this, pass);
}

}  // namespace

StagePtr shuffled(StagePtr input, ShuffleOptions options, Source at) {
  need_count("shuffle: .buffer", options.buffer, at);
  if (options.buffer > 0)
    return std::make_shared<BufferShuffleStage>(std::move(input), options, at);
  if (!input->by_index()) {
    const Stage& which = not_by_index(*input);
    throw UserError(cat("shuffle: ", which.name(), " (", which.source().text(),
                        ") cannot be read by index, so a shuffle after it needs a buffer"),
                    at,
                    "say how many elements may wait in it: .shuffle({.buffer = 1000}), or "
                    "shuffle before it");
  }
  return std::make_shared<IndexShuffleStage>(std::move(input), options, at);
}

StagePtr repeated(StagePtr input, std::optional<int64_t> times, Source at) {
  if (times.value_or(0) < 0)
    throw UserError(cat("repeat: ", *times, " times cannot be"), at,
                    "give 0 or more, or nothing to repeat for ever");
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

StagePtr zipped(std::vector<StagePtr> inputs, JoinForms join, Source at) {
  return std::make_shared<ZipStage>(std::move(inputs), std::move(join), at);
}

}  // namespace tidemark::data
