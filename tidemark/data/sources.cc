// Sources: rows of tensors, ranges, the user's generators.
#include <cstring>

#include "tidemark/api/extend.h"
#include "tidemark/api/memory.h"
#include "tidemark/data/noted.h"
#include "tidemark/data/stage.h"
#include "tidemark/io/npy.h"

namespace tidemark::data {
namespace {

// The rows of tensors, along their first axis.
class SlicesStage final : public Stage {
 public:
  SlicesStage(Element tensors, int64_t count, Source at)
      : Stage("from_tensor_slices", {}, at), tensors_(std::move(tensors)), count_(count) {
    for (const Tensor& tensor : tensors_.tensors) {
      LeafType type{tensor.dtype(), tensor.shape()};
      type.shape.erase(0);
      rows_.push_back(rows_of(tensor, type.size_bytes(), at));
      type_.leaves.push_back(std::move(type));
    }
  }

  CursorPtr open(const Pass& pass) const override {
    return std::make_unique<IndexCursor>(*this, pass);
  }
  std::optional<int64_t> count() const override { return count_; }
  bool by_index() const override { return true; }

  bool has_views() const override { return true; }

  Element at(int64_t index, const Pass&) const override { return seen(Index(index)); }
  std::optional<Element> view(int64_t begin, int64_t end, const Pass&) const override {
    return seen(Slice{.begin = begin, .end = end});
  }
  void gather(std::span<int64_t> indices, const RowTarget& to, const Pass&) const override {
    for (size_t leaf = 0; leaf < rows_.size(); ++leaf)
      if (rows_[leaf].data != nullptr)
        copy_rows(leaf, indices, to);
      else
        copy_views(leaf, indices, to);
  }

  std::optional<ElementType> type() const override { return type_; }
  std::optional<Element> sample() const override {
    if (count_ == 0) return std::nullopt;
    return at(0, {});
  }
  StageBytes bytes() const override {
    int64_t sum = 0;
    for (const Tensor& tensor : tensors_.tensors) sum += tensor.size_bytes().count;
    return states(0, cat("views of your tensors, ", Bytes(sum)));
  }

 private:
  struct Rows {
    const std::byte* data = nullptr;  // Null if the elements of a row are not contiguous.
    int64_t bytes = 0;                // Of one row.
    int64_t stride = 0;               // From one row to the next.
  };
  static Rows rows_of(const Tensor& tensor, int64_t bytes, Source at) {
    const auto row = [&](int64_t index) {
      return tidemark::detail::dense_bytes(tensor[Slices({Index(index)}, at)], at);
    };
    const int64_t count = tensor.shape()[0];
    if (count == 0 || row(0) == nullptr) return {nullptr, bytes, 0};
    return {row(0), bytes, count == 1 ? 0 : row(1) - row(0)};
  }

  Element seen(const Index& index) const {
    Element element{{}, tensors_.form};
    element.tensors.reserve(tensors_.tensors.size());
    for (const Tensor& tensor : tensors_.tensors)
      element.tensors.push_back(tensor[Slices({index}, source())]);
    return element;
  }
  void copy_rows(size_t leaf, std::span<const int64_t> indices, const RowTarget& to) const {
    const auto [data, bytes, stride] = rows_[leaf];
    std::byte* place = to.leaves[leaf].data + to.first * bytes;
    for (const int64_t index : indices) {
      std::memcpy(place, data + index * stride, static_cast<size_t>(bytes));
      place += bytes;
    }
  }
  void copy_views(size_t leaf, std::span<const int64_t> indices, const RowTarget& to) const {
    const int64_t bytes = rows_[leaf].bytes;
    std::byte* place = to.leaves[leaf].data + to.first * bytes;
    for (const int64_t index : indices) {
      const Tensor row = tensors_.tensors[leaf][Slices({Index(index)}, source())];
      tidemark::detail::copy_bytes(row, place, source());
      place += bytes;
    }
  }

  Element tensors_;
  int64_t count_;
  std::vector<Rows> rows_;
  ElementType type_;
};

// begin, begin + step, ... as i64.
class NumbersStage final : public Stage {
 public:
  NumbersStage(int64_t begin, int64_t step, int64_t count, Source at)
      : Stage("range", {}, at), begin_(begin), step_(step), count_(count) {}

  CursorPtr open(const Pass& pass) const override {
    return std::make_unique<IndexCursor>(*this, pass);
  }
  std::optional<int64_t> count() const override { return count_; }
  bool by_index() const override { return true; }
  Element at(int64_t index, const Pass&) const override {
    Element element{{tidemark::detail::unwritten(DType::i64, {}, source())}, {}};
    write(index, tidemark::detail::writable_bytes(element.tensors[0]));
    return element;
  }
  void gather(std::span<int64_t> indices, const RowTarget& to, const Pass&) const override {
    std::byte* place = to.leaves[0].data + to.first * kNumberBytes;
    for (const int64_t index : indices) {
      write(index, place);
      place += kNumberBytes;
    }
  }

  std::optional<ElementType> type() const override {
    return ElementType{{{DType::i64, {}}}, granted_bytes(kNumberBytes)};
  }
  std::optional<Element> sample() const override {
    if (count_ == 0) return std::nullopt;
    return at(0, {});
  }
  StageBytes bytes() const override { return states(granted_bytes(kNumberBytes), "1 number"); }

 private:
  static constexpr int64_t kNumberBytes = sizeof(int64_t);
  void write(int64_t index, std::byte* to) const {
    const int64_t number = begin_ + index * step_;
    std::memcpy(to, &number, sizeof(number));
  }

  int64_t begin_, step_, count_;
};

// The values of a user's function, until it returns an empty one.
class GeneratedStage final : public MeasuredStage {
 public:
  GeneratedStage(std::function<ElementSource()> make, Source at)
      : MeasuredStage("from_generator", {}, at), make_(std::move(make)) {}

  CursorPtr open(const Pass& pass) const override;

 private:
  class GeneratedCursor;
  StageBytes bytes_for(const ElementType& element) const override {
    return states(noted_.working_bytes(), cat("1 element ", text_of(element.leaves)));
  }

  std::function<ElementSource()> make_;
};

class GeneratedStage::GeneratedCursor final : public Cursor {
 public:
  GeneratedCursor(const GeneratedStage& stage, const Pass& pass)
      : stage_(stage), pass_(pass), source_(stage.make_()) {}

  std::optional<Element> next() override {
    if (ended_) return std::nullopt;
    std::optional<Element> element = generate();
    ended_ = !element.has_value();
    ++number_;
    return element;
  }

 private:
  std::optional<Element> generate() {
    const MemoryScope scope("generator");
    std::optional<Element> element = call();
    if (element &&
        stage_.noted_.note(leaf_types(*element), scope.current().count, scope.peak().count))
      (*pass_.cap)();
    return element;
  }
  std::optional<Element> call() try {
    std::optional<Element> element = source_();
    if (element) need_values(*element);
    return element;
  } catch (...) {
    ended_ = true;
    fail_at("generator", number_, stage_.source());
  }

  const GeneratedStage& stage_;
  Pass pass_;
  ElementSource source_;
  int64_t number_ = 0;
  bool ended_ = false;
};

CursorPtr GeneratedStage::open(const Pass& pass) const {
  return std::make_unique<GeneratedCursor>(*this, pass);
}

std::string place(const std::vector<std::string>& paths, size_t i) {
  return paths[i].empty() ? "the tensor" : paths[i];
}

}  // namespace

StagePtr slices(Element tensors, std::vector<std::string> paths, Source at) {
  if (tensors.tensors.empty())
    throw UserError("from_tensor_slices: a structure without tensors has no rows", at);
  for (size_t i = 0; i < tensors.tensors.size(); ++i) {
    const Tensor& tensor = tensors.tensors[i];
    tidemark::detail::dense_bytes(tensor, at);  // A UserError if the tensor has no memory.
    if (tensor.rank() == 0)
      throw UserError(cat("from_tensor_slices: ", place(paths, i), " is ", tensor.dtype(),
                          tensor.shape(), ", a scalar, which has no rows"),
                      at, "rows are slices of the first axis");
    const int64_t first = tensors.tensors[0].shape()[0], rows = tensor.shape()[0];
    if (rows != first)
      throw UserError(
          cat("from_tensor_slices: different numbers of rows: ", place(paths, 0), " has ", first,
              ", ", place(paths, i), " has ", rows),
          at,
          "rows are slices of the first axis; shorten the longer one: x[{td::Slice{.end = n}}]");
  }
  const int64_t count = tensors.tensors[0].shape()[0];
  return std::make_shared<SlicesStage>(std::move(tensors), count, at);
}

StagePtr npy_rows(const std::string& path, Source at) {
  return slices({{io::load_npy(path, {}, at)}, {}}, {path}, at);
}

StagePtr numbers(int64_t begin, int64_t end, int64_t step, Source at) {
  if (step == 0)
    throw UserError(cat("range: cannot go from ", begin, " to ", end, " in steps of 0"), at);
  // Unsigned, so that every difference of two i64 fits.
  const bool up = step > 0;
  const uint64_t distance = up ? static_cast<uint64_t>(end) - static_cast<uint64_t>(begin)
                               : static_cast<uint64_t>(begin) - static_cast<uint64_t>(end);
  const uint64_t stride = up ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  const bool none = up ? end <= begin : end >= begin;
  const uint64_t count = none ? 0 : (distance - 1) / stride + 1;
  if (count >= static_cast<uint64_t>(kEndless))
    throw UserError(cat("range: ", count, " numbers are more than can be counted"), at);
  return std::make_shared<NumbersStage>(begin, step, static_cast<int64_t>(count), at);
}

StagePtr generated(std::function<ElementSource()> make, Source at) {
  return std::make_shared<GeneratedStage>(std::move(make), at);
}

}  // namespace tidemark::data
