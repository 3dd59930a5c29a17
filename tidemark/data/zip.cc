// zip: tuples of the elements of several datasets.
#include <algorithm>
#include <functional>
#include <iterator>

#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

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
  // Each input writes its own tensors directly. Elements with a form must be joined first.
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
    // The shortest input determines the count; rows that others wrote beyond it are ignored.
    return rows;
  }
  void advance(int64_t count) override {
    for (const CursorPtr& input : inputs_) input->advance(count);
  }

 private:
  const ZipStage& stage_;
  std::vector<CursorPtr> inputs_;
  std::vector<size_t>
      widths_;  // The number of tensors of each input, known from the first element.
  bool ended_ = false;
};

CursorPtr ZipStage::open(const Pass& pass) const {
  if (has_views()) return std::make_unique<IndexCursor>(*this, pass);
  return std::make_unique<ZipCursor>(*this, pass);
}

}  // namespace

StagePtr zipped(std::vector<StagePtr> inputs, JoinForms join, Source at) {
  return std::make_shared<ZipStage>(std::move(inputs), std::move(join), at);
}

}  // namespace tidemark::data
