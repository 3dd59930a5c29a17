// window: successive elements as one with a new first axis; windows may overlap.
#include <algorithm>
#include <deque>

#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

class WindowStage final : public Stage {
 public:
  WindowStage(StagePtr input, int64_t size, WindowOptions options, Source at)
      : Stage(cat("window(", size, ")"), {std::move(input)}, at), size_(size), options_(options) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    const auto elements = input().count();
    if (!elements || *elements == kEndless || *elements == 0) return elements;
    const int64_t last = options_.drop_remainder ? *elements - span() : *elements - 1;
    return last < 0 ? 0 : last / shift() + 1;
  }
  bool by_index() const override { return input().by_index(); }
  Element at(int64_t index, const Pass& pass) const override {
    const int64_t begin = index * shift();
    const int64_t left = *input().count() - begin;
    const int64_t rows = std::min(size_, (left - 1) / stride() + 1);
    if (is_view()) return input().view(begin, begin + rows, pass).value();
    return stacked(input(), {.begin = begin, .rows = rows, .stride = stride()}, pass, source());
  }

  std::optional<ElementType> type() const override {
    auto type = input().type();
    if (!type) return std::nullopt;
    type->held_bytes = 0;
    for (LeafType& leaf : type->leaves) {
      leaf.shape.insert(0, std::min(size_, input().count().value_or(kEndless)));
      if (!is_view()) type->held_bytes += granted_bytes(leaf.size_bytes());
    }
    return type;
  }
  std::optional<Element> sample() const override {
    const std::optional<Element> row = input().sample();
    if (!row) return std::nullopt;
    RowBlock block(*row, size_, source());
    for (int64_t i = 0; i < size_; ++i) write_row(*row, block.from(0), i);
    return block.take(size_);
  }
  StageBytes bytes() const override {
    const auto window = type();
    if (!window) return states_unknown(0, "known after the first element");
    if (is_view()) return states(0, cat("views: ", text_of(window->leaves)));
    const int64_t waiting = input().has_views() ? 0 : span();
    return states(window->held_bytes + waiting * input().type()->held_bytes,
                  cat("1 window ", text_of(window->leaves), ", ", waiting, " elements waiting"));
  }

  int64_t size() const { return size_; }
  int64_t shift() const { return options_.shift.value_or(size_); }
  int64_t stride() const { return options_.stride; }
  bool drops() const { return options_.drop_remainder; }
  // From the first element of a window to the one after its last.
  int64_t span() const { return (size_ - 1) * stride() + 1; }

 private:
  bool is_view() const { return input().has_views() && stride() == 1; }

  int64_t size_;
  WindowOptions options_;
};

// Keeps the elements that the next windows read.
class WindowCursor final : public Cursor {
 public:
  WindowCursor(const WindowStage& stage, const Pass& pass)
      : stage_(stage), input_(stage.input().open(pass)) {}

  std::optional<Element> next() override {
    if (ended_ && kept_.empty()) return std::nullopt;
    fill();
    const auto waiting = static_cast<int64_t>(kept_.size());
    const int64_t rows = std::min(stage_.size(), (waiting - 1) / stage_.stride() + 1);
    if (kept_.empty() || (rows < stage_.size() && stage_.drops())) {
      kept_.clear();
      return std::nullopt;
    }
    RowBlock block(kept_[0], rows, stage_.source());
    for (int64_t row = 0; row < rows; ++row)
      write_row(kept_[static_cast<size_t>(row * stage_.stride())], block.from(0), row);
    skip_ = stage_.shift();
    drop();
    return block.take(rows);
  }

 private:
  // Drops the elements before the next window; those that were not read yet are skipped later.
  void drop() {
    const int64_t here = std::min<int64_t>(skip_, static_cast<int64_t>(kept_.size()));
    kept_.erase(kept_.begin(), kept_.begin() + here);
    skip_ -= here;
  }
  void fill() {
    while (!ended_ && static_cast<int64_t>(kept_.size()) < stage_.span()) {
      ended_ = true;  // Also if an element fails.
      std::optional<Element> element = input_->next();
      if (!element) return;
      ended_ = false;
      if (skip_ > 0)
        --skip_;
      else
        kept_.push_back(*std::move(element));
    }
  }

  const WindowStage& stage_;
  CursorPtr input_;
  std::deque<Element> kept_;
  int64_t skip_ = 0;
  bool ended_ = false;
};

CursorPtr WindowStage::open(const Pass& pass) const {
  if (input().has_views()) return std::make_unique<IndexCursor>(*this, pass);
  return std::make_unique<WindowCursor>(*this, pass);
}

}  // namespace

StagePtr windowed(StagePtr input, int64_t size, WindowOptions options, Source at) {
  const auto need = [&](const char* what, int64_t number) {
    if (number < 1)
      throw UserError(cat("window: the ", what, " cannot be ", number), at, "give 1 or more");
  };
  need("size", size);
  need("shift", options.shift.value_or(1));
  need("stride", options.stride);
  return std::make_shared<WindowStage>(std::move(input), size, options, at);
}

}  // namespace tidemark::data
