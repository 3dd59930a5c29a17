// The implementation of datasets: stages, and cursors that iterate over them. Internal to data/.
//
// A Stage describes a sequence of elements; it is immutable and shared by datasets. A Cursor is one
// iteration over a stage's elements and owns everything the iteration needs: buffers, threads, the
// cursors of the stages before it.
//
//   from_tensor_slices <- shuffle <- map <- batch       stages: each holds those before it
//         IndexCursor            <- ...  <- ...         cursors: likewise, one chain for each pass
//
// Some stages can be read by index. Over them shuffling needs no memory, skipping costs no time,
// and a batch copies its rows directly (`gather`) or is a view of them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/data/element.h"
#include "tidemark/data/pipeline.h"
#include "tidemark/data/plan.h"

namespace tidemark::data {

inline constexpr int64_t kEndless = INT64_MAX;

struct LeafType {
  DType dtype = DType::f32;
  Shape shape;

  int64_t size_bytes() const { return shape.size() * size_of(dtype); }
  bool matches(const Tensor& tensor) const {
    return tensor.dtype() == dtype && tensor.shape() == shape;
  }
};

// The types of an element's tensors, and the bytes that one element keeps alive: 0 for views of
// memory that lives anyway.
struct ElementType {
  std::vector<LeafType> leaves;
  int64_t held_bytes = 0;

  int64_t size_bytes() const;
};
std::vector<LeafType> leaf_types(const Element& element);
// "(f32[784], i32[])"
std::string text_of(const std::vector<LeafType>& types);
// The bytes of an element's tensors, each rounded up as the pool does.
int64_t granted_bytes_of(const Element& element);

// The destination of rows: for each tensor of an element, a block for many of them.
struct RowLeaf {
  LeafType type;  // Of one row.
  std::byte* data = nullptr;
};
struct RowTarget {
  std::span<const RowLeaf> leaves;
  int64_t first = 0;           // The first row to write.
  const Form* form = nullptr;  // The form that every element must have, if any.
  Source at = Source::none();  // The line to blame in errors.
  const char* what = "batch";  // The name of the stage, for errors.
};

// Memory for rows that become one element: tensors with one more axis than those of the elements.
class RowBlock {
 public:
  // Allocates `rows` elements like this one.
  RowBlock(const Element& like, int64_t rows, Source at);
  RowTarget from(int64_t row) const {
    return {.leaves = leaves_, .first = row, .form = form_.get(), .at = at_};
  }
  int64_t rows() const { return rows_; }
  bool takes(const Element& element) const;
  // The first `rows` rows as an element. Nothing may be written afterwards.
  Element take(int64_t rows);

 private:
  std::vector<RowLeaf> leaves_;
  std::vector<Tensor> tensors_;
  FormPtr form_;
  int64_t rows_ = 0;
  Source at_;
};
// A UserError if the element does not have the target's types.
void write_row(const Element& element, const RowTarget& to, int64_t row);

// Shared by all cursors of a pass.
struct Pass {
  int64_t epoch = 0;  // Makes shuffles of different passes differ.
  const CapCheck* cap = nullptr;
  // Stages that this iteration prepared, which undo it if the iteration is not started.
  std::vector<const Stage*>* prepared = nullptr;
};

class Cursor {
 public:
  Cursor() = default;
  virtual ~Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // Empty at the end, and ever after.
  virtual std::optional<Element> next() = 0;
  // Skips `count` elements. Called before the first next().
  virtual void advance(int64_t count);
  // Writes the next elements as rows, at most `rows` of them, and returns their number.
  virtual int64_t read(const RowTarget& to, int64_t rows);
  // The next `rows` elements (fewer at the end) as one, without a copy. Empty, without consuming
  // any, if that is not possible.
  virtual std::optional<Element> view(int64_t rows);
};
using CursorPtr = std::unique_ptr<Cursor>;

class Stage {
 public:
  Stage(std::string name, std::vector<StagePtr> inputs, Source at)
      : name_(std::move(name)), inputs_(std::move(inputs)), at_(at) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const std::string& name() const { return name_; }
  Source source() const { return at_; }
  const std::vector<StagePtr>& inputs() const { return inputs_; }
  const Stage& input() const { return *inputs_.front(); }

  virtual CursorPtr open(const Pass& pass) const = 0;
  // Empty if it is known only at the end; kEndless if there is no end.
  virtual std::optional<int64_t> count() const = 0;
  // Work that must be done before a cursor is opened, such as filling a cache.
  virtual void prepare(const Pass& pass) const;
  // Undoes prepare(), for stages that it put on the list of the pass.
  virtual void take_back() const {}

  // ---- reading by index, where it can be. The count is known then, at the latest when prepared.
  virtual bool by_index() const { return false; }
  virtual Element at(int64_t index, const Pass& pass) const;
  // Writes elements as rows. May reorder the list of indices.
  virtual void gather(std::span<int64_t> indices, const RowTarget& to, const Pass& pass) const;
  // Whether a range of elements can be viewed as one element without a copy. Implies by_index().
  virtual bool has_views() const { return false; }
  virtual std::optional<Element> view(int64_t begin, int64_t end, const Pass& pass) const;

  // ---- bytes
  // The type of the elements, if known.
  virtual std::optional<ElementType> type() const = 0;
  // Determines it, calling the user's functions if needed.
  virtual void learn() const;
  // A sample element to call functions with. Empty if taking one would consume it.
  virtual std::optional<Element> sample() const;
  // The bytes that one iteration holds at this stage.
  virtual StageBytes bytes() const = 0;

 protected:
  StageBytes states(int64_t bytes, std::string note = {}) const;
  StageBytes states_unknown(int64_t so_far, std::string note) const;
  // The bytes of elements of the input: of all of them, or of `most` if there are more.
  StageBytes states_elements(int64_t most) const;

 private:
  std::string name_;
  std::vector<StagePtr> inputs_;
  Source at_;
};

// Elements of a stage that is read by index: `rows` of them from `begin` on, every `stride`-th.
struct RowsOf {
  int64_t begin = 0, rows = 0, stride = 1;
};
// Copies them into one element with a new first axis; there is at least one.
Element stacked(const Stage& stage, const RowsOf& which, const Pass& pass, Source at);

// The cursor over stages that can be read by index.
class IndexCursor final : public Cursor {
 public:
  IndexCursor(const Stage& stage, const Pass& pass);
  std::optional<Element> next() override;
  void advance(int64_t count) override;
  int64_t read(const RowTarget& to, int64_t rows) override;
  std::optional<Element> view(int64_t rows) override;

 private:
  int64_t take(int64_t rows);

  const Stage& stage_;
  Pass pass_;
  int64_t next_ = 0, end_ = 0;
  std::vector<int64_t> indices_;
};

// A UserError if one of the element's tensors is empty.
void need_values(const Element& element);

// Rethrows the current exception with the number of the element at which the user's function
// failed.
[[noreturn]] void fail_at(const char* what, int64_t number, Source at);

}  // namespace tidemark::data
