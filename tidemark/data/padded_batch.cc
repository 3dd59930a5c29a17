// padded_batch and bucket_by_length: elements of different sizes in one batch.
#include <algorithm>

#include "tidemark/api/memory.h"
#include "tidemark/data/noted.h"
#include "tidemark/data/padding.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

// Elements wait for their batch in groups, by a number that is computed from each.
struct Groups {
  std::function<size_t(const Element&)> group_of;
  std::vector<int64_t> sizes;                      // Of the batches of each group.
  std::vector<std::optional<int64_t>> open_sizes;  // What sizes of -1 become.
};

class PaddedStage final : public Stage {
 public:
  PaddedStage(std::string name, const char* what, StagePtr input, Groups groups,
              PaddingOptions options, Source at)
      : Stage(std::move(name), {std::move(input)}, at),
        what_(what),
        groups_(std::move(groups)),
        drops_(options.drop_remainder),
        padding_(std::move(options), what, at) {}

  CursorPtr open(const Pass& pass) const override;
  std::optional<int64_t> count() const override {
    const auto elements = input().count();
    if (!elements || *elements == 0 || *elements == kEndless) return elements;
    if (groups_.sizes.size() > 1) return std::nullopt;
    const int64_t size = groups_.sizes[0];
    return *elements / size + (drops_ || *elements % size == 0 ? 0 : 1);
  }
  std::optional<ElementType> type() const override { return noted_.type(); }
  std::optional<Element> sample() const override {
    const std::optional<Element> row = input().sample();
    if (!row || groups_.sizes.size() > 1) return std::nullopt;
    return padding_.stacked({&*row, 1}, groups_.open_sizes[0]);
  }
  // Those that wait, and one batch with the row that is being filled up.
  StageBytes bytes() const override {
    const auto row = input().type();
    const auto batch = noted_.type();
    int64_t waiting = 0;
    for (const int64_t size : groups_.sizes) waiting += size;
    if (!row || !batch) return states_unknown(0, "known after the first batch");
    return states(waiting * row->held_bytes + noted_.working_bytes(),
                  cat("1 batch ", text_of(batch->leaves), ", ", waiting, " elements waiting"));
  }

 private:
  class PaddedCursor;
  const char* what_;
  Groups groups_;
  bool drops_;
  Padding padding_;
  mutable MeasuredType noted_;
};

class PaddedStage::PaddedCursor final : public Cursor {
 public:
  PaddedCursor(const PaddedStage& stage, const Pass& pass)
      : stage_(stage),
        pass_(pass),
        input_(stage.input().open(pass)),
        waiting_(stage.groups_.sizes.size()) {}

  std::optional<Element> next() override {
    while (!ended_) {
      ended_ = true;  // Also if an element fails.
      std::optional<Element> element = input_->next();
      if (!element) break;
      const size_t group = group_of(*element);
      ended_ = false;
      waiting_[group].push_back(*std::move(element));
      if (static_cast<int64_t>(waiting_[group].size()) == stage_.groups_.sizes[group])
        return batch(group);
    }
    // The groups that did not fill, in their order.
    for (; rest_ < waiting_.size() && !stage_.drops_; ++rest_)
      if (!waiting_[rest_].empty()) return batch(rest_);
    return std::nullopt;
  }

 private:
  size_t group_of(const Element& element) try {
    const size_t group = stage_.groups_.group_of(element);
    ++number_;
    return group;
  } catch (...) {
    fail_at(stage_.what_, number_, stage_.source());
  }
  Element batch(size_t group) {
    const MemoryScope scope(stage_.what_);
    Element made = stage_.padding_.stacked(waiting_[group], stage_.groups_.open_sizes[group]);
    waiting_[group].clear();
    if (stage_.noted_.note(leaf_types(made), scope.current().count, scope.peak().count))
      (*pass_.cap)();
    return made;
  }

  const PaddedStage& stage_;
  Pass pass_;
  CursorPtr input_;
  std::vector<std::vector<Element>> waiting_;
  size_t rest_ = 0;
  int64_t number_ = 0;
  bool ended_ = false;
};

CursorPtr PaddedStage::open(const Pass& pass) const {
  return std::make_unique<PaddedCursor>(*this, pass);
}

void need_size(const char* what, int64_t size, Source at) {
  if (size < 1)
    throw UserError(cat(what, ": a batch cannot have ", size, " elements"), at, "give 1 or more");
}

// The bucket of a length: [0, b0), [b0, b1), ..., [bn, infinity).
size_t bucket_of(const std::vector<int64_t>& boundaries, int64_t length) {
  return static_cast<size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), length) -
                             boundaries.begin());
}

}  // namespace

StagePtr padded_batched(StagePtr input, int64_t size, PaddingOptions options, Source at) {
  need_size("padded_batch", size, at);
  Groups one{[](const Element&) { return size_t{0}; }, {size}, {std::nullopt}};
  return std::make_shared<PaddedStage>(cat("padded_batch(", size, ")"), "padded_batch",
                                       std::move(input), std::move(one), std::move(options), at);
}

StagePtr bucketed(StagePtr input, ElementLength length, Buckets buckets, BucketOptions options,
                  Source at) {
  constexpr const char* what = "bucket_by_length";
  std::vector<int64_t>& boundaries = buckets.boundaries;
  if (boundaries.empty() || !std::is_sorted(boundaries.begin(), boundaries.end()) ||
      std::adjacent_find(boundaries.begin(), boundaries.end()) != boundaries.end() ||
      boundaries[0] < 1)
    throw UserError(cat(what, ": the boundaries must be positive and grow"), at,
                    "give the first length of each bucket but the first, such as {16, 32, 64}");
  std::vector<int64_t>& sizes = buckets.batch_sizes;
  if (sizes.size() == 1) sizes.resize(boundaries.size() + 1, sizes[0]);
  if (sizes.size() != boundaries.size() + 1)
    throw UserError(
        cat(what, ": ", sizes.size(), " batch sizes for ", boundaries.size() + 1, " buckets"), at,
        "give one more than boundaries, or one for all");
  for (const int64_t size : sizes) need_size(what, size, at);
  Groups groups{{}, sizes, std::vector<std::optional<int64_t>>(sizes.size())};
  const bool to_boundary = options.pad_to_boundary;
  if (to_boundary)
    for (size_t i = 0; i < boundaries.size(); ++i) groups.open_sizes[i] = boundaries[i] - 1;
  groups.group_of = [boundaries, length = std::move(length), to_boundary](const Element& element) {
    const int64_t is = length(element);
    const size_t bucket = bucket_of(boundaries, is);
    if (to_boundary && bucket == boundaries.size())
      throw UserError(cat("a length of ", is, " is not below the last boundary, ",
                          boundaries.back(), ", to which it would be padded"),
                      Source::none(), "add a boundary, or remove the element with filter");
    return bucket;
  };
  return std::make_shared<PaddedStage>(cat(what, "(", sizes.size(), " buckets)"), what,
                                       std::move(input), std::move(groups),
                                       static_cast<PaddingOptions&&>(options), at);
}

}  // namespace tidemark::data
