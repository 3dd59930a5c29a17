// The inside of a dataset: stages, and cursors that walk them. Internal to data/.
//
// A Stage says what elements there are; it does not change, and datasets share it. A Cursor is one
// walk over a stage's elements and owns all that the walk needs: buffers, threads, the cursors of
// the stages before it.
//
//   from_tensor_slices <- shuffle <- map <- batch       stages: each holds those before it
//         IndexCursor            <- ...  <- ...         cursors: likewise, one chain for each pass
//
// Some stages can be read by index. Over them shuffling costs no bytes, passing elements over costs
// no time, and a batch copies its rows from where they lie (`gather`) or is a view of them.
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

// The types of an element's tensors, and the bytes that one element keeps alive: those of its own
// tensors, none for views of what lives anyway.
struct ElementType {
  std::vector<LeafType> leaves;
  int64_t held_bytes = 0;

  int64_t size_bytes() const;
};
std::vector<LeafType> leaf_types(const Element& element);
// "(f32[784], i32[])"
std::string text_of(const std::vector<LeafType>& types);
// As the pool grants them, each tensor by itself.
int64_t granted_bytes_of(const Element& element);

// Where rows are written: for each tensor of an element a block with room for many of it.
struct RowLeaf {
  LeafType type;  // Of one row.
  std::byte* data = nullptr;
};
struct RowTarget {
  std::span<const RowLeaf> leaves;
  int64_t first = 0;           // The row to begin with.
  const Form* form = nullptr;  // What every element must have, where they have one.
  Source at = Source::none();  // Who asks for rows.
  const char* what = "batch";  // What they are rows of.
};

// Rows that become one element: tensors with an axis more than those of the elements written.
class RowBlock {
 public:
  // Room for `rows` elements like this one.
  RowBlock(const Element& like, int64_t rows, Source at);
  RowTarget from(int64_t row) const {
    return {.leaves = leaves_, .first = row, .form = form_.get(), .at = at_};
  }
  int64_t rows() const { return rows_; }
  bool takes(const Element& element) const;
  // The first `rows` of them. Nothing is written afterwards.
  Element take(int64_t rows);

 private:
  std::vector<RowLeaf> leaves_;
  std::vector<Tensor> tensors_;
  FormPtr form_;
  int64_t rows_ = 0;
  Source at_;
};
// A UserError where the element is not of the target's types.
void write_row(const Element& element, const RowTarget& to, int64_t row);

// What all cursors of a pass share.
struct Pass {
  int64_t epoch = 0;  // Makes shuffles of different passes differ.
  const CapCheck* cap = nullptr;
  // Stages that this walk prepared and that take it back where the walk is not begun.
  std::vector<const Stage*>* prepared = nullptr;
};

class Cursor {
 public:
  Cursor() = default;
  virtual ~Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // Nothing at the end, and from then on.
  virtual std::optional<Element> next() = 0;
  // Passes `count` elements over. Called before the first next().
  virtual void advance(int64_t count);
  // Writes the next elements as rows, at most `rows` of them, and says how many there were.
  virtual int64_t read(const RowTarget& to, int64_t rows);
  // The next `rows` elements (fewer at the end) as one, without a copy. Nothing where they do not
  // lie so; then none was passed over.
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
  // Nothing where it is known only at the end; kEndless where there is none.
  virtual std::optional<int64_t> count() const = 0;
  // What must be there before a cursor is opened, as a cache that is filled.
  virtual void prepare(const Pass& pass) const;
  // Of a stage that prepare() put on the list of its pass.
  virtual void take_back() const {}

  // ---- reading by index, where it can be. The count is known then, at the latest when prepared.
  virtual bool by_index() const { return false; }
  virtual Element at(int64_t index, const Pass& pass) const;
  // Writes elements as rows. May change the list of indices.
  virtual void gather(std::span<int64_t> indices, const RowTarget& to, const Pass& pass) const;
  // Whether ranges of elements can be seen as one without a copy. Such a stage is by_index().
  virtual bool has_views() const { return false; }
  virtual std::optional<Element> view(int64_t begin, int64_t end, const Pass& pass) const;

  // ---- bytes
  // What is known of the elements now.
  virtual std::optional<ElementType> type() const = 0;
  // Makes it known, where the user's functions may be called for that.
  virtual void learn() const;
  // An element like those that will come, to try functions on. Nothing where there is none that can
  // be had twice.
  virtual std::optional<Element> sample() const;
  // The bytes that one walk holds at this stage.
  virtual StageBytes bytes() const = 0;

 protected:
  StageBytes states(int64_t bytes, std::string note = {}) const;
  StageBytes states_unknown(int64_t so_far, std::string note) const;

 private:
  std::string name_;
  std::vector<StagePtr> inputs_;
  Source at_;
};

// The cursor of whatever can be read by index.
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

// Whoever asks for an element wants tensors in it.
void need_values(const Element& element);

// Says of a call of the user what element it failed at; called while that exception is handled.
[[noreturn]] void fail_at(const char* what, int64_t number, Source at);

}  // namespace tidemark::data
