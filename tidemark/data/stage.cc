#include "tidemark/data/stage.h"

#include <algorithm>
#include <numeric>

#include "tidemark/api/extend.h"

namespace tidemark::data {

int64_t ElementType::size_bytes() const {
  int64_t sum = 0;
  for (const LeafType& leaf : leaves) sum += leaf.size_bytes();
  return sum;
}

std::vector<LeafType> leaf_types(const Element& element) {
  std::vector<LeafType> types;
  types.reserve(element.tensors.size());
  for (const Tensor& tensor : element.tensors) types.push_back({tensor.dtype(), tensor.shape()});
  return types;
}

std::string text_of(const std::vector<LeafType>& types) {
  std::string text;
  for (const LeafType& type : types) text += cat(text.empty() ? "" : ", ", type.dtype, type.shape);
  return types.size() == 1 ? text : "(" + text + ")";
}

int64_t granted_bytes_of(const Element& element) {
  int64_t sum = 0;
  for (const Tensor& tensor : element.tensors) sum += granted_bytes(tensor.size_bytes().count);
  return sum;
}

// ---- rows ---------------------------------------------------------------------------------------

RowBlock::RowBlock(const Element& like, int64_t rows, Source at)
    : form_(like.form), rows_(rows), at_(at) {
  for (const Tensor& tensor : like.tensors) {
    const LeafType type{tensor.dtype(), tensor.shape()};
    Shape shape = type.shape;
    shape.insert(0, rows);
    tensors_.push_back(tidemark::detail::unwritten(type.dtype, shape, at));
    leaves_.push_back({type, tidemark::detail::writable_bytes(tensors_.back())});
  }
}

bool RowBlock::takes(const Element& element) const {
  if ((form_ == nullptr ? "" : form_->key) != (element.form == nullptr ? "" : element.form->key))
    return false;
  return std::equal(
      leaves_.begin(), leaves_.end(), element.tensors.begin(), element.tensors.end(),
      [](const RowLeaf& leaf, const Tensor& tensor) { return leaf.type.matches(tensor); });
}

Element RowBlock::take(int64_t rows) {
  Element element{std::move(tensors_), form_};
  if (rows == rows_) return element;
  for (Tensor& tensor : element.tensors)
    tensor = tensor[Slices({Slice{.begin = 0, .end = rows}}, at_)];
  return element;
}

namespace {

[[noreturn]] void rows_differ(const Element& element, const RowTarget& to, int64_t row) {
  std::vector<LeafType> first;
  for (const RowLeaf& leaf : to.leaves) first.push_back(leaf.type);
  throw UserError(cat("data: elements of different types cannot be in one ", to.what, ": row 0 is ",
                      text_of(first), ", row ", row, " is ", text_of(leaf_types(element))),
                  to.at, "make them alike with map first, or remove the others with filter");
}

[[noreturn]] void forms_differ(const Element& element, const RowTarget& to, int64_t row) {
  throw UserError(cat("data: elements of different structure cannot be in one ", to.what,
                      ": from row 0 to row ", row, ", ",
                      tidemark::detail::key_change(to.form->key, element.form->key)),
                  to.at, "make them alike with map first, or remove the others with filter");
}

}  // namespace

void write_row(const Element& element, const RowTarget& to, int64_t row) {
  if (to.form != nullptr && element.form != nullptr && to.form->key != element.form->key)
    forms_differ(element, to, row);
  if (element.tensors.size() != to.leaves.size()) rows_differ(element, to, row);
  for (size_t i = 0; i < to.leaves.size(); ++i) {
    const RowLeaf& leaf = to.leaves[i];
    if (!leaf.type.matches(element.tensors[i])) rows_differ(element, to, row);
    tidemark::detail::copy_bytes(element.tensors[i], leaf.data + row * leaf.type.size_bytes(),
                                 to.at);
  }
}

// ---- cursors ------------------------------------------------------------------------------------

void Cursor::advance(int64_t count) {
  for (int64_t i = 0; i < count && next(); ++i) continue;
}

int64_t Cursor::read(const RowTarget& to, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    const std::optional<Element> element = next();
    if (!element) return i;
    write_row(*element, to, to.first + i);
  }
  return rows;
}

std::optional<Element> Cursor::view(int64_t) { return std::nullopt; }

Element stacked(const Stage& stage, const RowsOf& which, const Pass& pass, Source at) {
  Element first = stage.at(which.begin, pass);
  RowBlock block(first, which.rows, at);
  write_row(first, block.from(0), 0);
  first = {};
  std::vector<int64_t> rest(static_cast<size_t>(which.rows - 1));
  for (size_t i = 0; i < rest.size(); ++i)
    rest[i] = which.begin + (static_cast<int64_t>(i) + 1) * which.stride;
  stage.gather(rest, block.from(1), pass);
  return block.take(which.rows);
}

IndexCursor::IndexCursor(const Stage& stage, const Pass& pass)
    : stage_(stage), pass_(pass), end_(stage.count().value()) {}

std::optional<Element> IndexCursor::next() {
  if (next_ == end_) return std::nullopt;
  return stage_.at(next_++, pass_);
}

void IndexCursor::advance(int64_t count) { take(count); }

// Advances by up to `rows` elements and returns the index of the first of them.
int64_t IndexCursor::take(int64_t rows) {
  const int64_t begin = next_;
  next_ += std::min(rows, end_ - next_);
  return begin;
}

int64_t IndexCursor::read(const RowTarget& to, int64_t rows) {
  const int64_t begin = take(rows);
  indices_.resize(static_cast<size_t>(next_ - begin));
  std::iota(indices_.begin(), indices_.end(), begin);
  if (next_ > begin) stage_.gather(indices_, to, pass_);
  return next_ - begin;
}

std::optional<Element> IndexCursor::view(int64_t rows) {
  if (next_ == end_) return std::nullopt;
  const int64_t end = next_ + std::min(rows, end_ - next_);
  std::optional<Element> seen = stage_.view(next_, end, pass_);
  if (seen) next_ = end;
  return seen;
}

// ---- stages -------------------------------------------------------------------------------------

void Stage::prepare(const Pass& pass) const {
  for (const StagePtr& input : inputs_) input->prepare(pass);
}

Element Stage::at(int64_t, const Pass&) const {
  TIDEMARK_CHECK(false, name_, " cannot be read by index");
}

void Stage::gather(std::span<int64_t> indices, const RowTarget& to, const Pass& pass) const {
  int64_t row = to.first;
  for (const int64_t index : indices) write_row(at(index, pass), to, row++);
}

std::optional<Element> Stage::view(int64_t, int64_t, const Pass&) const { return std::nullopt; }

void Stage::learn() const {
  for (const StagePtr& input : inputs_) input->learn();
}

std::optional<Element> Stage::sample() const { return input().sample(); }

StageBytes Stage::states(int64_t bytes, std::string note) const {
  return {.stage = name_, .at = at_, .bytes = bytes, .known = true, .note = std::move(note)};
}
StageBytes Stage::states_unknown(int64_t so_far, std::string note) const {
  return {.stage = name_, .at = at_, .bytes = so_far, .known = false, .note = std::move(note)};
}

StageBytes Stage::states_elements(int64_t most) const {
  const auto type = input().type();
  if (!type) return states_unknown(0, "known after the first element");
  const int64_t elements = std::min(most, count().value_or(kEndless));
  return states(elements * type->held_bytes, cat(elements, " elements ", text_of(type->leaves)));
}

// ---- failures of the user's functions -----------------------------------------------------------

namespace {
std::string failure_text(const char* what, int64_t number, const char* cause) {
  return cat("data: ", what, " failed at element ", number, ": ", cause);
}
}  // namespace

void need_values(const Element& element) {
  for (const Tensor& tensor : element.tensors)
    if (!tensor.has_value())
      throw UserError("it returned an empty Tensor", Source::none(),
                      "return a Tensor that has a value: has_value() tells whether it does");
}

void fail_at(const char* what, int64_t number, Source at) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw;  // Without memory there is no room for a message either.
  } catch (const DeviceError& error) {
    std::throw_with_nested(
        DeviceError(cat(failure_text(what, number, error.what()), "\n  at ", at.text()), at));
  } catch (const InternalError&) {
    throw;  // Internal errors are not decorated.
  } catch (const Undecorated&) {
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(UserError(failure_text(what, number, error.what()), at));
  } catch (...) {
    std::throw_with_nested(
        UserError(failure_text(what, number, "an exception that is not a std::exception"), at));
  }
}

}  // namespace tidemark::data
