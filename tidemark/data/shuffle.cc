// shuffle: a permutation by index, or a buffer to draw from. sample: draws by weight.
#include <algorithm>
#include <cmath>
#include <numeric>

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

// Each element is drawn by its weight, from all of them.
class DrawStage final : public Stage {
 public:
  DrawStage(StagePtr input, DrawOptions options, Source at)
      : Stage("sample", {std::move(input)}, at), options_(std::move(options)) {
    check();
    std::partial_sum(options_.weights.begin(), options_.weights.end(), options_.weights.begin());
  }

  CursorPtr open(const Pass& pass) const override {
    return std::make_unique<IndexCursor>(*this, pass);
  }
  // A cache knows its count only now.
  void prepare(const Pass& pass) const override {
    Stage::prepare(pass);
    check_count();
  }
  std::optional<int64_t> count() const override {
    return options_.count ? *options_.count : static_cast<int64_t>(options_.weights.size());
  }
  bool by_index() const override { return true; }
  Element at(int64_t index, const Pass& pass) const override {
    return input().at(element_of(index, key(pass)), pass);
  }
  void gather(std::span<int64_t> indices, const RowTarget& to, const Pass& pass) const override {
    const uint64_t drawn_by = key(pass);
    for (int64_t& index : indices) index = element_of(index, drawn_by);
    input().gather(indices, to, pass);
  }
  std::optional<ElementType> type() const override { return input().type(); }
  StageBytes bytes() const override { return states(0, "by index, by weights that it keeps"); }

 private:
  uint64_t key(const Pass& pass) const {
    return order_key(options_.seed, options_.reshuffle ? pass.epoch : 0);
  }
  // The first element whose sum of weights exceeds a number below the whole sum. Rounding may give
  // the whole sum, which counts as the last element of any weight.
  int64_t element_of(int64_t index, uint64_t drawn_by) const {
    const std::vector<double>& sums = options_.weights;
    const double share =
        std::ldexp(static_cast<double>(mixed(drawn_by + static_cast<uint64_t>(index)) >> 11), -53);
    auto place = std::upper_bound(sums.begin(), sums.end(), share * sums.back());
    if (place == sums.end()) place = std::lower_bound(sums.begin(), sums.end(), sums.back());
    return place - sums.begin();
  }
  void check_count() const {
    const auto have = input().count();
    const auto given = static_cast<int64_t>(options_.weights.size());
    if (have && *have != given)
      throw UserError(cat("sample: ", given, " weights for ", *have, " elements"), source(),
                      "give one for each");
  }
  void check() const {
    check_count();
    const std::vector<double>& weights = options_.weights;
    const auto bad = std::find_if(weights.begin(), weights.end(),
                                  [](double w) { return !(w >= 0 && w <= 1e300); });
    if (bad != weights.end())
      throw UserError(cat("sample: weight ", bad - weights.begin(), " is ", *bad), source(),
                      "give finite weights of 0 or more");
    if (std::accumulate(weights.begin(), weights.end(), 0.0) == 0)
      throw UserError("sample: all weights are 0", source(), "give a weight above 0 to some");
    if (options_.count && *options_.count < 0)
      throw UserError(cat("sample: ", *options_.count, " draws"), source(), "give 0 or more");
  }

  DrawOptions options_;  // The weights become their running sums.
};

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

StagePtr drawn(StagePtr input, DrawOptions options, Source at) {
  if (!input->by_index()) {
    const Stage& which = not_by_index(*input);
    throw UserError(
        cat("sample: ", which.name(), " (", which.source().text(), ") cannot be read by index"), at,
        "sample before that stage, or from several datasets: td::data::sample_from");
  }
  return std::make_shared<DrawStage>(std::move(input), std::move(options), at);
}

}  // namespace tidemark::data
