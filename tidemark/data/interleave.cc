// interleave, and sample_from: the elements of several datasets in turn, or drawn.
#include <algorithm>
#include <numeric>

#include "tidemark/data/noted.h"
#include "tidemark/data/permutation.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

// A dataset that an element was turned into, and the walk over it.
struct Opened {
  InnerStage inner;
  std::unique_ptr<std::vector<const Stage*>> prepared;
  CursorPtr cursor;

  std::optional<Element> next() {
    std::optional<Element> element = cursor->next();
    if (element && element->form == nullptr) element->form = inner.form;
    return element;
  }
};

int64_t known_bytes_of(const Stage& stage) {
  int64_t sum = stage.bytes().bytes.count;
  for (const StagePtr& input : stage.inputs()) sum += known_bytes_of(*input);
  return sum;
}

class InterleaveStage final : public MeasuredStage {
 public:
  InterleaveStage(StagePtr input, StageFunction f, InterleaveOptions options, Source at)
      : MeasuredStage(cat("interleave(", options.cycle, ")"), {std::move(input)}, at),
        f_(std::move(f)),
        options_(options) {}

  CursorPtr open(const Pass& pass) const override;

 private:
  class InterleaveCursor;
  // The working bytes are those of one dataset.
  StageBytes bytes_for(const ElementType& element) const override {
    return states(options_.cycle * noted_.working_bytes(),
                  cat("up to ", options_.cycle, " datasets of ", Bytes(noted_.working_bytes()),
                      ", elements ", text_of(element.leaves)));
  }
  StageFunction f_;
  InterleaveOptions options_;
};

class InterleaveStage::InterleaveCursor final : public Cursor {
 public:
  InterleaveCursor(const InterleaveStage& stage, const Pass& pass)
      : stage_(stage), pass_(pass), input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    if (slots_.empty() && !ended_) start();
    while (open_ > 0) {
      std::optional<Opened>& slot = slots_[at_];
      if (!slot || given_ == stage_.options_.block) {
        turn();
        continue;
      }
      std::optional<Element> element = slot->next();
      if (element) {
        ++given_;
        note(*slot, *element);
        return element;
      }
      // The next dataset takes the place of one that has ended, in the next turn.
      --open_;
      slot = opened();
      turn();
    }
    return std::nullopt;
  }

 private:
  void start() {
    for (int64_t i = 0; i < stage_.options_.cycle && !ended_; ++i)
      if (std::optional<Opened> made = opened()) slots_.push_back(std::move(made));
  }
  void turn() {
    at_ = (at_ + 1) % slots_.size();
    given_ = 0;
  }
  std::optional<Opened> opened() {
    if (ended_) return std::nullopt;
    std::optional<Element> element = input_->next();
    ended_ = !element.has_value();
    if (!element) return std::nullopt;
    Opened made{called(*std::move(element)), std::make_unique<std::vector<const Stage*>>(), {}};
    Pass pass = pass_;
    pass.prepared = made.prepared.get();
    made.inner.stage->prepare(pass);
    made.cursor = made.inner.stage->open(pass);
    ++open_;
    return made;
  }
  InnerStage called(Element element) try {
    InnerStage inner = stage_.f_(std::move(element));
    ++number_;
    return inner;
  } catch (...) {
    ended_ = true;
    fail_at("interleave", number_, stage_.source());
  }
  void note(const Opened& from, const Element& element) {
    if (stage_.noted_.note(leaf_types(element), granted_bytes_of(element),
                           known_bytes_of(*from.inner.stage)))
      (*pass_.cap)();
  }

  const InterleaveStage& stage_;
  Pass pass_;
  CursorPtr input_;
  std::vector<std::optional<Opened>> slots_;
  size_t at_ = 0;
  int64_t given_ = 0;  // Elements of the slot in this turn.
  int64_t open_ = 0;   // Slots with a dataset.
  int64_t number_ = 0;
  bool ended_ = false;  // The input has.
};

CursorPtr InterleaveStage::open(const Pass& pass) const {
  return std::make_unique<InterleaveCursor>(*this, pass);
}

// ---- sampling -----------------------------------------------------------------------------------

class SampleStage final : public Stage {
 public:
  SampleStage(std::vector<StagePtr> inputs, std::vector<FormPtr> forms, SampleOptions options,
              Source at)
      : Stage("sample_from", std::move(inputs), at),
        forms_(std::move(forms)),
        options_(std::move(options)) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    int64_t sum = 0;
    for (size_t i = 0; i < inputs().size(); ++i) {
      if (options_.weights[i] == 0) continue;
      const auto each = inputs()[i]->count();
      if (!each || options_.stop_on_empty) return std::nullopt;
      sum = *each > kEndless - sum ? kEndless : sum + *each;
    }
    return sum;
  }
  // The largest.
  std::optional<ElementType> type() const override {
    std::optional<ElementType> largest;
    for (const StagePtr& input : inputs()) {
      const auto type = input->type();
      if (!type) return std::nullopt;
      const int64_t held = std::max(type->held_bytes, largest ? largest->held_bytes : 0);
      if (!largest || type->size_bytes() > largest->size_bytes()) largest = type;
      largest->held_bytes = held;
    }
    return largest;
  }
  StageBytes bytes() const override { return states(0); }

 private:
  class SampleCursor;
  std::vector<FormPtr> forms_;
  SampleOptions options_;
};

class SampleStage::SampleCursor final : public Cursor {
 public:
  SampleCursor(const SampleStage& stage, const Pass& pass)
      : stage_(stage),
        weights_(stage.options_.weights),
        key_(order_key(stage.options_.seed, stage.options_.reshuffle ? pass.epoch : 0)) {
    for (const StagePtr& input : stage.inputs()) inputs_.push_back(input->open(pass));
  }

  std::optional<Element> next() override {
    while (std::any_of(weights_.begin(), weights_.end(), [](double w) { return w > 0; })) {
      const size_t at = drawn();
      std::optional<Element> element = inputs_[at]->next();
      if (element) {
        if (element->form == nullptr && !stage_.forms_.empty()) element->form = stage_.forms_[at];
        return element;
      }
      weights_[at] = 0;
      if (stage_.options_.stop_on_empty) std::fill(weights_.begin(), weights_.end(), 0);
    }
    return std::nullopt;
  }

 private:
  size_t drawn() {
    const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    double left = static_cast<double>(mixed(key_ + draws_++) >> 11) * 0x1p-53 * sum;
    size_t last = 0;  // Rounding may leave a rest: it falls to the last one that has a weight.
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      last = i;
      if (left < weights_[i]) break;
      left -= weights_[i];
    }
    return last;
  }

  const SampleStage& stage_;
  std::vector<double> weights_;  // 0 for those that have ended.
  uint64_t key_, draws_ = 0;
  std::vector<CursorPtr> inputs_;
};

CursorPtr SampleStage::open(const Pass& pass) const {
  return std::make_unique<SampleCursor>(*this, pass);
}

}  // namespace

StagePtr interleaved(StagePtr input, StageFunction f, InterleaveOptions options, Source at) {
  if (options.cycle < 1 || options.block < 1)
    throw UserError(cat("interleave: ", options.cycle, " datasets at once, ", options.block,
                        " elements of each"),
                    at, "give 1 or more of both");
  return std::make_shared<InterleaveStage>(std::move(input), std::move(f), options, at);
}

StagePtr sampled(std::vector<StagePtr> inputs, std::vector<FormPtr> forms, SampleOptions options,
                 Source at) {
  if (inputs.empty()) throw UserError("sample_from: there are no datasets", at, "give one or more");
  std::vector<double>& weights = options.weights;
  if (weights.empty()) weights.assign(inputs.size(), 1);
  const bool sound =
      weights.size() == inputs.size() &&
      std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0 && w <= 1e300; }) &&
      std::accumulate(weights.begin(), weights.end(), 0.0) > 0;
  if (!sound) {
    std::string text;
    for (const double weight : weights) text += cat(text.empty() ? "" : ", ", weight);
    throw UserError(cat("sample_from: ", inputs.size(), " datasets with weights [", text, "]"), at,
                    "give one finite weight of 0 or more for each, not all of them 0");
  }
  return std::make_shared<SampleStage>(std::move(inputs), std::move(forms), std::move(options), at);
}

}  // namespace tidemark::data
