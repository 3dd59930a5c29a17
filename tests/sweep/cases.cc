#include "tests/sweep/cases.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/linalg.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/reference.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/special.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark::sweep {
namespace {

bool admits(const OpDef& op, DType dtype) {
  try {
    admit(op, dtype, Source::none());
    return true;
  } catch (const UserError&) {
    return false;
  }
}

bool is_condition(const OpDef& op, int index) {
  return op.arity == 3 && op.value != nullptr && index == 0 &&
         static_cast<const TernaryOp*>(op.self)->first_is_condition;
}

// Collects the cases of one op; each gets a seed of its own.
class Cases {
 public:
  explicit Cases(const OpDef& op) : op_(op) {
    for (const char letter : op.name) seed_ = seed_ * 31 + static_cast<uint64_t>(letter);
  }
  Tensor draw(DType dtype, const Shape& shape) { return draw(dtype, shape, op_.sample); }
  Tensor draw(DType dtype, const Shape& shape, SampleRange range) {
    return drawn(dtype, shape, range, ++seed_);
  }
  // Operand `index` of the op: the condition of `where` is always bool.
  Tensor operand(int index, DType dtype, const Shape& shape) {
    return draw(is_condition(op_, index) ? DType::boolean : dtype, shape);
  }
  void add(std::vector<Tensor> operands, const Attrs& attrs = {}, std::string text = {}) {
    for (int result = 0; result < op_.results; ++result)
      list_.push_back({&op_, operands, attrs, text, result});
  }
  // The operands in a layout each.
  void add_laid_out(const std::vector<Tensor>& operands, const Attrs& attrs) {
    for (const Layout layout : kLayouts) {
      std::vector<Tensor> seen;
      for (const Tensor& operand : operands) seen.push_back(laid_out(operand, layout));
      add(std::move(seen), attrs, name(layout));
    }
  }
  const OpDef& op() const { return op_; }
  std::vector<Case> take() { return std::move(list_); }

 private:
  const OpDef& op_;
  uint64_t seed_ = 0;
  std::vector<Case> list_;
};

std::vector<int64_t> lengths(bool long_ones) {
  std::vector<int64_t> list;
  if (full_counts()) {
    for (int64_t n = 1; n <= 70; ++n) list.push_back(n);
  } else {
    list = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 70};
  }
  list.insert(list.end(), {255, 257});
  if (long_ones || full_counts()) list.insert(list.end(), {4095, 4096, 4097, 8193});
  return list;
}

// ---- pointwise ----------------------------------------------------------------------------------

void pointwise_cases(Cases& cases, DType dtype) {
  const OpDef& op = cases.op();
  const auto operands = [&](std::initializer_list<Shape> shapes) {
    std::vector<Tensor> list;
    for (int i = 0; i < op.arity; ++i)
      list.push_back(cases.operand(i, dtype, shapes.begin()[static_cast<size_t>(i)]));
    return list;
  };
  const auto all_of = [&](const Shape& shape) { return operands({shape, shape, shape}); };
  for (const int64_t n : lengths(false)) cases.add(all_of({n}));
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{1}, Shape{1, 1, 1}})
    cases.add(all_of(shape));
  for (const Shape& shape : {Shape{5, 13}, Shape{3, 2, 67}, Shape{1, 9}, Shape{300, 1}})
    cases.add_laid_out(all_of(shape), {});
  // One operand dense, the others not, and the other way round; several ranks.
  for (const Layout layout : {Layout::transposed, Layout::stepped}) {
    std::vector<Tensor> list = all_of({6, 19});
    list.back() = laid_out(list.back(), layout);
    cases.add(list, {}, cat("last ", name(layout)));
    if (op.arity > 1) {
      list = all_of({6, 19});
      list.front() = laid_out(list.front(), layout);
      cases.add(list, {}, cat("first ", name(layout)));
    }
  }
  cases.add(all_of({2, 1, 3, 2, 1, 2, 5}), {}, "rank 7");
  cases.add_laid_out(all_of({2, 3, 2, 2, 1, 2, 3}), {});
  if (op.arity == 1) {
    cases.add({repeated(cases.operand(0, dtype, {1}), {70})}, {}, "one element repeated");
    cases.add({repeated(cases.operand(0, dtype, {5, 1}), {5, 70})}, {}, "columns repeated");
    cases.add({repeated(cases.operand(0, dtype, {1, 70}), {5, 70})}, {}, "rows repeated");
    cases.add({repeated(cases.operand(0, dtype, {3, 1, 4}), {3, 6, 4})}, {}, "middle repeated");
  } else {
    const Shape shapes[][3] = {{{5, 70}, {70}, {5, 70}},   {{70}, {5, 70}, {1, 1}},
                               {{5, 1}, {1, 70}, {5, 70}}, {{5, 70}, {5, 1}, {}},
                               {{}, {3, 21}, {3, 1}},      {{2, 65}, {}, {65}},
                               {{4, 1, 6}, {3, 1}, {1}},   {{0, 3}, {1, 3}, {3}},
                               {{1}, {4097}, {4097}},      {{7, 1, 1}, {1, 9, 8}, {7, 9, 1}}};
    for (const auto& three : shapes) cases.add(operands({three[0], three[1], three[2]}));
  }
}

void special_cases(Cases& cases, DType dtype) {
  const OpDef& op = cases.op();
  if (op.arity == 1) {
    cases.add_laid_out({special(dtype)}, {});
    return;
  }
  std::vector<Tensor> pairs = special_pairs(dtype);
  if (op.arity == 2) {
    cases.add(pairs, {}, "special");
    cases.add({laid_out(pairs[0], Layout::backwards), laid_out(pairs[1], Layout::stepped)}, {},
              "special, apart");
    return;
  }
  const Tensor third = listed(dtype, pairs[0].shape(), std::vector<double>{0.5, 2, -1, 0});
  if (is_condition(op, 0)) {
    cases.add({cases.operand(0, dtype, pairs[0].shape()), pairs[0], pairs[1]}, {}, "special");
  } else {
    cases.add({pairs[0], pairs[1], third}, {}, "special");
    cases.add({third, pairs[0], pairs[1]}, {}, "special");
  }
}

void mixed_cases(Cases& cases) {
  const OpDef& op = cases.op();
  if (op.arity < 2) return;
  const std::vector<DType> dtypes = swept_dtypes(op);
  for (const DType a : dtypes) {
    for (const DType b : dtypes) {
      if (a == b || !admits(op, promote(a, b))) continue;
      const Tensor x = cases.draw(a, {3, 23}), y = cases.draw(b, {3, 23});
      if (op.arity == 2) {
        cases.add({x, y}, {}, "mixed");
        if (full_counts()) cases.add_laid_out({x, y}, {});
      } else {
        cases.add({cases.draw(a, {3, 23}), x, y}, {}, "mixed");
      }
    }
  }
}

std::vector<Case> pointwise(const OpDef& op) {
  Cases cases(op);
  for (const DType dtype : swept_dtypes(op)) {
    if (!admits(op, dtype)) continue;
    pointwise_cases(cases, dtype);
    special_cases(cases, dtype);
  }
  mixed_cases(cases);
  return cases.take();
}

std::vector<Case> casts(const OpDef& op) {
  Cases cases(op);
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      const Attrs attrs = Attrs().add(to);
      for (const int64_t n : {1, 16, 33, 70, 257})
        cases.add({cases.draw(from, {n}, {-300, 300})}, attrs);
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{2, 0}})
        cases.add({cases.draw(from, shape)}, attrs);
      cases.add_laid_out({special(from)}, attrs);
      cases.add_laid_out({cases.draw(from, {4, 19}, {-300, 300})}, attrs);
      cases.add({repeated(cases.draw(from, {3, 1}), {3, 40})}, attrs, "repeated");
    }
  }
  return cases.take();
}

// ---- reductions and rows ------------------------------------------------------------------------

// Products of many numbers stay in range when each is near 1.
SampleRange reduce_range(const OpDef& op, int64_t count) {
  if (op.monoid != Monoid::product) return op.sample;
  const double width = 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(4, count)));
  return {1 - width, 1 + width};
}

Attrs reduce_attrs(const AxisList& axes, bool keep) { return Attrs().add(axes).add(keep); }

bool has_identity(const OpDef& op) {
  return !op.gives_index && (op.monoid == Monoid::sum || op.monoid == Monoid::product ||
                             op.accepts == TypeSet::booleans);
}

void reduce_cases(Cases& cases, DType dtype) {
  const OpDef& op = cases.op();
  const auto draw = [&](const Shape& shape) {
    return cases.draw(dtype, shape, reduce_range(op, shape.size()));
  };
  for (const int64_t n : lengths(true)) cases.add({draw({n})}, reduce_attrs({0}, n % 2 == 0));
  struct Form {
    Shape shape;
    std::vector<AxisList> axes;
  };
  const std::vector<Form> forms = {
      {{5, 13}, {{0}, {1}, {0, 1}}},
      {{3, 4, 65}, {{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1}, {0, 1, 2}}},
      {{2, 300}, {{0}, {1}}},
      {{300, 2}, {{0}, {1}, {0, 1}}},
      {{1, 7, 1}, {{0}, {1}, {2}, {0, 2}}},
      {{2, 3, 1, 2, 3, 2, 2}, {{0}, {6}, {1, 3, 5}, {0, 2, 4, 6}}},
  };
  for (const Form& form : forms) {
    const Tensor x = draw(form.shape);
    for (const AxisList& axes : form.axes) {
      if (op.gives_index && axes.size() != 1 && axes.size() != static_cast<size_t>(x.rank()))
        continue;
      for (const Layout layout : kLayouts)
        cases.add({laid_out(x, layout)}, reduce_attrs(axes, axes[0] == 1), name(layout));
    }
  }
  cases.add({draw({})}, reduce_attrs({}, false), "scalar");
  cases.add({repeated(draw({1}), {70})}, reduce_attrs({0}, false), "one element repeated");
  const Tensor columns = repeated(draw({5, 1}), {5, 70}), rows = repeated(draw({1, 70}), {5, 70});
  for (int64_t axis = 0; axis < 2; ++axis) {
    cases.add({columns}, reduce_attrs({axis}, false), "columns repeated");
    cases.add({rows}, reduce_attrs({axis}, true), "rows repeated");
  }
  if (has_identity(op)) {
    cases.add({draw({0})}, reduce_attrs({0}, false), "empty");
    cases.add({draw({3, 0})}, reduce_attrs({1}, true), "empty");
    cases.add({draw({0, 0})}, reduce_attrs({0, 1}, false), "empty");
  }
  cases.add({draw({3, 0})}, reduce_attrs({0}, false), "empty");
  // Every special value alone, and each at every place of a row of plain ones.
  const Tensor list = special(dtype);
  const Shape one_each{list.size(), 1};
  cases.add({laid_out(list, Layout::stepped)}, reduce_attrs({0}, false), "special");
  if (is_float(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (const int64_t n : {5, 70, 257}) {
      for (const double value : {double(NAN), inf, -inf, -0.0}) {
        for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
          std::vector<double> row(static_cast<size_t>(n), value == 0 ? -0.0 : 1.0);
          row[static_cast<size_t>(at)] = value;
          cases.add({listed(dtype, {n}, row)}, reduce_attrs({0}, false), "special");
          cases.add({listed(dtype, {n, 1}, row)}, reduce_attrs({0}, false), "special");
        }
      }
    }
  }
  // Ties: the first of equals.
  const std::vector<int64_t> ties = {1, 0, 1, 1, 0};
  for (const int64_t n : {5, 64, 133}) {
    cases.add({listed(dtype, {n}, ties)}, reduce_attrs({0}, false), "ties");
    cases.add({listed(dtype, {n, 7}, ties)}, reduce_attrs({0}, false), "ties");
  }
}

std::vector<Case> reductions(const OpDef& op) {
  Cases cases(op);
  for (const DType dtype : swept_dtypes(op)) {
    if (admits(op, dtype)) reduce_cases(cases, dtype);
  }
  return cases.take();
}

std::vector<Case> rows(const OpDef& op) {
  Cases cases(op);
  for (const DType dtype : swept_dtypes(op)) {
    const auto axis = [](int64_t number) { return Attrs().add(number); };
    for (const int64_t n : lengths(true)) cases.add({cases.draw(dtype, {n})}, axis(0));
    for (const Shape& shape : {Shape{5, 13}, Shape{3, 4, 65}, Shape{1, 7, 1}, Shape{70, 5},
                               Shape{2, 3, 2, 2, 1, 2, 3}}) {
      for (int64_t i = 0; i < shape.rank(); ++i)
        cases.add_laid_out({cases.draw(dtype, shape)}, axis(i));
    }
    cases.add({cases.draw(dtype, {0})}, axis(0), "empty");
    cases.add({cases.draw(dtype, {3, 0})}, axis(0), "empty");
    cases.add({repeated(cases.draw(dtype, {1, 9}), {4, 9})}, axis(0), "repeated");
    cases.add({repeated(cases.draw(dtype, {4, 1}), {4, 9})}, axis(1), "repeated");
    if (!is_float(dtype)) continue;
    const double inf = std::numeric_limits<double>::infinity();
    const std::vector<double> lists[] = {{1, 2, NAN},  {1, inf, 2},    {-inf, 0, 1},
                                         {-inf, -inf}, {500, 0, -500}, {-0.0, 0.0}};
    for (const std::vector<double>& list : lists) {
      cases.add({listed(dtype, {list.size()}, list)}, axis(0), "special");
      cases.add({listed(dtype, {list.size(), 1}, list)}, axis(0), "special");
    }
  }
  return cases.take();
}

// ---- views and pieces ---------------------------------------------------------------------------

void reshape_cases(Cases& cases, DType dtype) {
  const std::pair<Shape, Shape> table[] = {{{6}, {2, 3}},
                                           {{2, 3, 4}, {6, 4}},
                                           {{2, 3, 4}, {2, 12}},
                                           {{2, 3, 4}, {24}},
                                           {{4, 6}, {2, 2, 3, 2}},
                                           {{1, 6, 1}, {6}},
                                           {{6}, {1, 1, 6, 1}},
                                           {{}, {1, 1}},
                                           {{1}, {}},
                                           {{0, 3}, {3, 0, 5}},
                                           {{6, 4}, {4, 6}},
                                           {{70, 3}, {3, 70}},
                                           {{2, 3, 1, 2, 3, 2, 2}, {12, 12}}};
  for (const auto& [from, to] : table)
    cases.add_laid_out({cases.draw(dtype, from)}, Attrs().add(to));
  cases.add({repeated(cases.draw(dtype, {3, 1}), {3, 4})}, Attrs().add(DimList{12}), "repeated");
  cases.add({repeated(cases.draw(dtype, {1, 4}), {3, 4})}, Attrs().add(DimList{12}), "repeated");
}

void stop_gradient_cases(Cases& cases, DType dtype) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 5}, Shape{2, 3, 70}})
    cases.add_laid_out({cases.draw(dtype, shape)}, {});
}

void transpose_cases(Cases& cases, DType dtype) {
  const std::pair<Shape, AxisList> table[] = {{{3, 5}, {1, 0}},
                                              {{2, 3, 4}, {2, 0, 1}},
                                              {{2, 3, 4}, {1, 0, 2}},
                                              {{7}, {0}},
                                              {{}, {}},
                                              {{0, 3}, {1, 0}},
                                              {{1, 70}, {1, 0}},
                                              {{2, 3, 1, 2, 3, 2, 2}, {6, 4, 2, 0, 1, 3, 5}}};
  for (const auto& [shape, order] : table)
    cases.add_laid_out({cases.draw(dtype, shape)}, Attrs().add(order));
}

void slice_cases(Cases& cases, DType dtype) {
  struct Form {
    Shape shape;
    DimList begin, size;
    AxisList step;
  };
  const Form table[] = {{{10}, {2}, {5}, {1}},
                        {{10}, {1}, {4}, {2}},
                        {{10}, {9}, {10}, {-1}},
                        {{10}, {8}, {3}, {-3}},
                        {{10}, {0}, {0}, {1}},
                        {{5, 7}, {1, 2}, {2, 3}, {3, 2}},
                        {{5, 7}, {4, 6}, {3, 4}, {-2, -2}},
                        {{}, {}, {}, {}},
                        {{0, 3}, {0, 0}, {0, 2}, {1, 2}},
                        {{2, 3, 70}, {1, 0, 69}, {1, 3, 70}, {1, 1, -1}},
                        {{6, 5}, {0, 1}, {6, 2}, {1, 2}},
                        {{3, 4, 2}, {2, 0, 0}, {2, 4, 2}, {-1, 1, 1}}};
  for (const Form& form : table)
    cases.add_laid_out({cases.draw(dtype, form.shape)},
                       Attrs().add(form.begin).add(form.size).add(form.step));
}

void broadcast_cases(Cases& cases, DType dtype) {
  const std::pair<Shape, Shape> table[] = {
      {{1}, {5}},       {{}, {2, 3}},           {{3, 1}, {3, 4}},
      {{4}, {3, 4}},    {{3, 1, 2}, {3, 5, 2}}, {{1}, {0}},
      {{0, 1}, {0, 3}}, {{1, 1}, {1, 1, 1}},    {{2, 1, 1, 2}, {2, 1, 3, 2, 5, 3, 2}}};
  for (const auto& [from, to] : table)
    cases.add_laid_out({cases.draw(dtype, from)}, Attrs().add(to));
}

void concat_cases(Cases& cases, DType dtype) {
  const auto axis = [](int64_t number) { return Attrs().add(number); };
  const auto draws = [&](std::initializer_list<Shape> shapes) {
    std::vector<Tensor> list;
    for (const Shape& shape : shapes) list.push_back(cases.draw(dtype, shape));
    return list;
  };
  cases.add_laid_out(draws({{3, 5}, {2, 5}}), axis(0));
  cases.add_laid_out(draws({{3, 5}, {3, 1}, {3, 70}}), axis(1));
  cases.add_laid_out(draws({{2, 3, 4}, {2, 1, 4}}), axis(1));
  cases.add_laid_out(draws({{7}}), axis(0));
  cases.add_laid_out(draws({{0}, {3}, {0}}), axis(0));
  cases.add_laid_out(draws({{0, 2}, {0, 3}}), axis(1));
  cases.add(draws({{65}, {4097}, {1}}), axis(0));
}

void pad_cases(Cases& cases, DType dtype) {
  struct Form {
    Shape shape;
    DimList low, high;
    AxisList inside;
  };
  const Form table[] = {{{5}, {2}, {3}, {0}},
                        {{5}, {0}, {0}, {2}},
                        {{3, 4}, {1, 0}, {0, 2}, {0, 1}},
                        {{2, 3, 70}, {0, 1, 1}, {1, 0, 2}, {1, 0, 0}},
                        {{}, {}, {}, {}},
                        {{0}, {2}, {1}, {3}},
                        {{1, 1}, {1, 1}, {1, 1}, {5, 5}},
                        {{6, 3, 4}, {0, 1, 0}, {0, 2, 0}, {0, 1, 0}}};
  for (const Form& form : table) {
    for (const double value : {0.0, 1.0, 0.5}) {
      if (value == 0.5 && !is_float(dtype)) continue;
      cases.add_laid_out({cases.draw(dtype, form.shape)}, Attrs()
                                                              .add(form.low)
                                                              .add(form.high)
                                                              .add(form.inside)
                                                              .add(value)
                                                              .add(static_cast<int64_t>(value)));
    }
  }
}

void update_cases(Cases& cases, DType dtype) {
  struct Form {
    Shape shape;
    DimList begin, size;
    AxisList step;
  };
  const Form table[] = {{{5}, {1}, {3}, {1}},
                        {{9}, {8}, {3}, {-3}},
                        {{3, 70}, {1, 2}, {2, 30}, {1, 2}},
                        {{2, 3, 4}, {0, 1, 0}, {2, 1, 4}, {1, 1, 1}},
                        {{}, {}, {}, {}},
                        {{4, 3}, {2, 0}, {0, 3}, {1, 1}}};
  for (const Form& form : table) {
    const Shape part(form.size);
    cases.add_laid_out({cases.draw(dtype, form.shape), cases.draw(dtype, part)},
                       Attrs().add(form.begin).add(form.size).add(form.step));
  }
}

// ---- indices and running sums -------------------------------------------------------------------

// Indices in [-size, size).
Tensor indices(Cases& cases, DType dtype, const Shape& shape, int64_t size) {
  const double low = is_signed_integer(dtype) ? -static_cast<double>(size) : 0;
  return cases.draw(dtype, shape, {low, static_cast<double>(size) - 1});
}

// The usual ones, and one of the others that changes with the dtype of the elements.
std::vector<DType> index_dtypes(DType element) {
  constexpr DType others[] = {DType::u8, DType::i8, DType::u64, DType::u16, DType::i16, DType::u32};
  return {DType::i32, DType::i64, others[static_cast<size_t>(element) % std::size(others)]};
}

struct IndexForm {
  Shape shape;
  Shape indices;
  int64_t axis;
};

void gather_cases(Cases& cases, DType dtype) {
  const IndexForm table[] = {
      {{7}, {5}, 0},           {{7, 3}, {4}, 0},          {{7, 3}, {4}, 1},
      {{5, 6, 70}, {2, 3}, 1}, {{5, 6}, {}, 0},           {{5}, {0}, 0},
      {{5, 0}, {3}, 0},        {{2, 3, 4}, {2, 2, 2}, 2}, {{300}, {1000}, 0}};
  for (const IndexForm& form : table) {
    for (const DType index : index_dtypes(dtype)) {
      const int64_t size = std::min<int64_t>(form.shape[form.axis], 255);
      cases.add_laid_out({cases.draw(dtype, form.shape), indices(cases, index, form.indices, size)},
                         Attrs().add(form.axis));
    }
  }
}

constexpr int kAlongForms = 6;
const IndexForm* along_forms() {
  static const IndexForm table[kAlongForms] = {{{7}, {5}, 0},       {{7, 3}, {4, 3}, 0},
                                               {{7, 3}, {7, 9}, 1}, {{2, 5, 70}, {2, 3, 70}, 1},
                                               {{5, 2}, {0, 2}, 0}, {{300}, {1000}, 0}};
  return table;
}

void take_along_cases(Cases& cases, DType dtype) {
  for (const IndexForm& form : std::span(along_forms(), kAlongForms)) {
    for (const DType index : index_dtypes(dtype)) {
      const int64_t size = std::min<int64_t>(form.shape[form.axis], 255);
      cases.add_laid_out({cases.draw(dtype, form.shape), indices(cases, index, form.indices, size)},
                         Attrs().add(form.axis).add(true));
    }
  }
}

void scatter_cases(Cases& cases, DType dtype) {
  const IndexForm table[] = {{{7}, {5}, 0},           {{7, 3}, {9}, 0}, {{7, 3}, {4}, 1},
                             {{5, 6, 70}, {2, 3}, 1}, {{5}, {0}, 0},    {{5, 6}, {}, 0},
                             {{3}, {1000}, 0}};
  for (const IndexForm& form : table) {
    Shape updates;
    for (int64_t i = 0; i < form.axis; ++i) updates.push_back(form.shape[i]);
    for (const Dim dim : form.indices) updates.push_back(dim);
    for (int64_t i = form.axis + 1; i < form.shape.rank(); ++i) updates.push_back(form.shape[i]);
    for (const DType index : index_dtypes(dtype))
      cases.add_laid_out(
          {cases.draw(dtype, form.shape),
           indices(cases, index, form.indices, form.shape[form.axis]), cases.draw(dtype, updates)},
          Attrs().add(form.axis).add(false));
  }
  for (const IndexForm& form : std::span(along_forms(), kAlongForms)) {
    const int64_t size = std::min<int64_t>(form.shape[form.axis], 255);
    cases.add_laid_out(
        {cases.draw(dtype, form.shape), indices(cases, DType::i64, form.indices, size),
         cases.draw(dtype, form.indices)},
        Attrs().add(form.axis).add(true));
  }
}

void put_cases(Cases& cases, DType dtype) {
  const std::pair<Shape, Shape> table[] = {{{7}, {}},           {{7, 3}, {}},   {{5, 4}, {9}},
                                           {{5, 2, 3}, {2, 2}}, {{5}, {0}},     {{5, 0}, {3}},
                                           {{2, 6}, {}},        {{300}, {1000}}};
  for (const auto& [shape, index_shape] : table) {
    Shape element = index_shape;
    for (int64_t i = 1; i < shape.rank(); ++i) element.push_back(shape[i]);
    for (const DType index : index_dtypes(dtype))
      cases.add_laid_out({cases.draw(dtype, shape),
                          indices(cases, index, index_shape, std::min<int64_t>(shape[0], 255)),
                          cases.draw(dtype, element)},
                         {});
  }
}

// As many operands as the op has, of one shape. Products of many numbers stay in range when each is
// near 1.
void scan_cases(Cases& cases, DType dtype) {
  if (!admits(cases.op(), dtype)) return;
  const bool multiplies = cases.op().self == &ops::cumprod || cases.op().self == &ops::linear_scan;
  const auto draw = [&](const Shape& shape) {
    std::vector<Tensor> list;
    for (int i = 0; i < cases.op().arity; ++i)
      list.push_back(multiplies && i == 0 ? cases.draw(dtype, shape, {-1.1, 1.1})
                                          : cases.draw(dtype, shape));
    return list;
  };
  for (const bool reverse : {false, true}) {
    for (const int64_t n : {1, 7, 65, 257, 1000})
      cases.add(draw({n}), Attrs().add(int64_t{0}).add(reverse));
    for (const Shape& shape :
         {Shape{5, 13}, Shape{3, 4, 65}, Shape{0, 3}, Shape{1, 7, 1}, Shape{9, 130}}) {
      for (int64_t axis = 0; axis < shape.rank(); ++axis)
        cases.add_laid_out(draw(shape), Attrs().add(axis).add(reverse));
    }
    if (cases.op().arity > 1) continue;
    cases.add({repeated(cases.draw(dtype, {1, 9}), {4, 9})}, Attrs().add(int64_t{0}).add(reverse),
              "repeated");
    if (cases.op().results == 1 || !is_float(dtype)) continue;
    const std::vector<double> list = {1, -0.0, 0.0, 2, 2, INFINITY, NAN, -1, -INFINITY, NAN, 0.0};
    cases.add({listed(dtype, {11, 2}, list)}, Attrs().add(int64_t{0}).add(reverse), "special");
  }
}

void searchsorted_cases(Cases& cases, DType dtype) {
  for (const bool right : {false, true}) {
    const auto rows = [&](const Shape& shape) { return sort(cases.draw(dtype, shape)); };
    for (const int64_t n : {0, 1, 7, 300})
      cases.add({rows({n}), cases.draw(dtype, {65})}, Attrs().add(right));
    cases.add_laid_out({rows({3, 2, 9}), cases.draw(dtype, {3, 2, 5})}, Attrs().add(right));
    cases.add({rows({2, 5}), cases.draw(dtype, {2, 0})}, Attrs().add(right), "empty");
    const Tensor ties = sort(listed(dtype, {9}, std::vector<int64_t>{1, 0, 1, 1, 0}));
    cases.add({ties, listed(dtype, {3}, std::vector<int64_t>{0, 1})}, Attrs().add(right), "ties");
    if (!is_float(dtype)) continue;
    const std::vector<double> list = {1, -0.0, 0.0, NAN, -1, INFINITY, -INFINITY, NAN};
    cases.add({sort(listed(dtype, {8}, list)), listed(dtype, {8}, list)}, Attrs().add(right),
              "special");
  }
}

// Every radix, the general primes, chirps, and rows side by side along each axis.
void fourier_cases(Cases& cases, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64) return;
  const auto attrs = [](int64_t axis, int64_t last, bool inverse, double scale) {
    return Attrs().add(AxisList{axis, last}).add(inverse).add(scale);
  };
  for (const int64_t n : {1,  2,  3,  4,  5,  6,  7,  8,   11,  12,  13,  15,  16,  17,
                          19, 26, 30, 34, 49, 64, 97, 120, 128, 168, 200, 384, 1000})
    cases.add({cases.draw(dtype, {n, 2})}, attrs(0, 1, n % 2 == 0, 1));
  for (const Shape& shape : {Shape{3, 8, 2}, Shape{20, 12, 2}, Shape{5, 17, 2}, Shape{2, 6, 3, 2},
                             Shape{24, 40, 2}, Shape{0, 4, 2}}) {
    for (int64_t axis = 0; axis + 1 < shape.rank(); ++axis) {
      if (shape[axis] == 0) continue;
      cases.add_laid_out({cases.draw(dtype, shape)},
                         attrs(axis, shape.rank() - 1, axis == 1, 0.25));
    }
  }
}

// Even and odd numbers of reals, in both directions.
void real_fourier_cases(Cases& cases, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64) return;
  for (const bool inverse : {false, true}) {
    for (const bool adjoint : {false, true}) {
      for (const int64_t n : {1, 2, 3, 4, 5, 6, 8, 9, 15, 16, 26, 34, 64, 97, 600}) {
        const ops::RealFourierSpec spec{inverse, 0.5, n, adjoint};
        const auto draw = [&](Shape shape) {
          shape.push_back(inverse ? n / 2 + 1 : n);
          if (inverse) shape.push_back(2);
          return cases.draw(dtype, shape);
        };
        cases.add({draw({})}, spec.attrs());
        if (n < 20) cases.add_laid_out({draw({3, 7})}, spec.attrs());
      }
    }
  }
}

void first_equal_cases(Cases& cases, DType dtype) {
  if (!is_integer(dtype)) return;
  for (const int64_t n : {0, 1, 7, 300}) cases.add_laid_out({indices(cases, dtype, {n}, 40)}, {});
}

void add_rows_to_sort(Cases& cases, DType dtype, int64_t axis_size,
                      const std::function<Attrs(int64_t axis)>& attrs) {
  const int64_t n = axis_size;
  cases.add({cases.draw(dtype, {n})}, attrs(0));
  cases.add_laid_out({cases.draw(dtype, {n, 5})}, attrs(0));
  cases.add_laid_out({cases.draw(dtype, {2, 3, n})}, attrs(2));
  cases.add_laid_out({cases.draw(dtype, {3, n, 2})}, attrs(1));
  cases.add({repeated(cases.draw(dtype, {1, 3}), {n, 3})}, attrs(0), "repeated");
  cases.add({listed(dtype, {n, 2}, std::vector<int64_t>{1, 0, 1, 1, 0})}, attrs(0), "ties");
  cases.add({cases.draw(dtype, {0, n})}, attrs(1), "empty");
  if (special(dtype).size() >= n) cases.add({special(dtype)}, attrs(0), "special");
  if (is_float(dtype)) {
    const std::vector<double> list = {1, -NAN, -0.0, 0.0, NAN, -1, INFINITY, -INFINITY, NAN, 0.0};
    cases.add({listed(dtype, {20, n}, list)}, attrs(1), "special");
  }
}

void sort_cases(Cases& cases, DType dtype) {
  for (const bool descending : {false, true}) {
    for (const int64_t n : {0, 1, 2, 7, 65, 300})
      add_rows_to_sort(cases, dtype, n,
                       [&](int64_t axis) { return Attrs().add(axis).add(descending); });
  }
}

void top_k_cases(Cases& cases, DType dtype) {
  for (const auto& [n, k] :
       {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {7, 0}, {7, 3}, {7, 7}, {65, 1}, {300, 17}})
    add_rows_to_sort(cases, dtype, n,
                     [&, k = k](int64_t axis) { return Attrs().add(axis).add(Dim(k)); });
}

// ---- contractions -------------------------------------------------------------------------------

void matmul_cases(Cases& cases, DType dtype) {
  if (dtype == DType::boolean) return;
  std::vector<std::array<int64_t, 3>> sizes = {
      {1, 1, 1},  {2, 3, 4},  {5, 1, 7},     {16, 16, 16}, {17, 33, 15}, {3, 257, 2},
      {1, 70, 9}, {9, 70, 1}, {33, 513, 18}, {0, 3, 2},    {3, 0, 2},    {64, 64, 65}};
  if (full_counts()) {
    for (int64_t n = 1; n <= 40; ++n) sizes.push_back({n, 41 - n, (n * 7) % 40 + 1});
  }
  for (const auto& [m, k, n] : sizes)
    cases.add_laid_out({cases.draw(dtype, {m, k}), cases.draw(dtype, {k, n})}, {});
  const std::pair<Shape, Shape> batches[] = {{{3, 4, 5}, {3, 5, 2}},
                                             {{3, 4, 5}, {5, 2}},
                                             {{4, 5}, {3, 5, 2}},
                                             {{2, 1, 4, 5}, {3, 5, 2}},
                                             {{1, 4, 5}, {3, 5, 2}},
                                             {{0, 4, 5}, {5, 2}},
                                             {{2, 3, 2, 17, 33}, {1, 2, 33, 18}}};
  for (const auto& [a, b] : batches)
    cases.add_laid_out({cases.draw(dtype, a), cases.draw(dtype, b)}, {});
  cases.add({repeated(cases.draw(dtype, {1, 9}), {4, 9}), cases.draw(dtype, {9, 5})}, {},
            "repeated");
  cases.add({cases.draw(dtype, {4, 9}), repeated(cases.draw(dtype, {9, 1}), {9, 20})}, {},
            "repeated");
}

void distances_cases(Cases& cases, DType dtype) {
  if (!is_float(dtype)) return;
  const std::array<int64_t, 3> sizes[] = {{1, 1, 1},   {2, 3, 4},   {7, 1, 5}, {17, 33, 15},
                                          {3, 257, 2}, {13, 9, 70}, {0, 3, 2}, {3, 0, 2}};
  for (const auto& [m, k, n] : sizes)
    cases.add_laid_out({cases.draw(dtype, {m, k}), cases.draw(dtype, {k, n})}, Attrs().add(true));
  const std::pair<Shape, Shape> batches[] = {
      {{3, 4, 5}, {3, 5, 2}}, {{3, 4, 5}, {5, 2}}, {{4, 5}, {3, 5, 2}}, {{2, 1, 4, 5}, {3, 5, 2}}};
  for (const auto& [a, b] : batches)
    cases.add_laid_out({cases.draw(dtype, a), cases.draw(dtype, b)}, Attrs().add(true));
}

void weighted_differences_cases(Cases& cases, DType dtype) {
  if (!is_float(dtype)) return;
  const auto add = [&](const Shape& weights, const Shape& a, const Shape& b) {
    cases.add_laid_out({cases.draw(dtype, weights), cases.draw(dtype, a), cases.draw(dtype, b)},
                       {});
  };
  const std::array<int64_t, 3> sizes[] = {{1, 1, 1},   {2, 3, 4},   {7, 1, 5}, {17, 33, 15},
                                          {3, 257, 2}, {13, 9, 70}, {0, 3, 2}, {3, 0, 2}};
  for (const auto& [m, k, n] : sizes) add({m, k}, {m, n}, {k, n});
  add({3, 4, 5}, {3, 4, 2}, {3, 5, 2});
  add({3, 4, 5}, {4, 2}, {5, 2});
  add({4, 5}, {3, 4, 2}, {5, 2});
  add({2, 1, 4, 5}, {4, 2}, {3, 5, 2});
}

struct ConvForm {
  Shape x, w;
  ops::ConvSpec spec;
};

std::vector<ConvForm> conv_forms() {
  return {
      {{1, 5, 5, 1}, {3, 3, 1, 1}, {}},
      {{2, 6, 7, 3}, {3, 2, 3, 4}, {}},
      {{2, 6, 7, 3}, {3, 3, 3, 4}, {.pad_low = {1, 1}, .pad_high = {1, 1}}},
      {{2, 9, 8, 2}, {3, 3, 2, 5}, {.stride = {2, 3}, .pad_low = {1, 0}, .pad_high = {0, 2}}},
      {{1, 9, 9, 2}, {3, 2, 2, 3}, {.pad_low = {2, 1}, .pad_high = {2, 1}, .dilation = {2, 3}}},
      {{1, 7, 6, 4}, {3, 3, 2, 6}, {.pad_low = {1, 1}, .pad_high = {1, 1}, .groups = 2}},
      {{2, 5, 5, 3}, {2, 2, 1, 3}, {.stride = {2, 2}, .groups = 3}},
      {{1, 4, 4, 2}, {1, 1, 2, 3}, {.pad_low = {2, 3}, .pad_high = {3, 1}}},
      {{1, 8, 8, 2}, {2, 2, 2, 2}, {.stride = {3, 3}, .dilation = {2, 2}}},
      {{2, 4, 3, 2}, {3, 3, 2, 3}, {.pad_low = {1, 2}, .pad_high = {1, 2}, .spread = {2, 3}}},
      {{1, 4, 5, 2},
       {3, 2, 1, 4},
       {.stride = {1, 2}, .pad_low = {-1, 1}, .pad_high = {2, 0}, .groups = 2, .spread = {3, 1}}},
      {{1, 2, 2, 1}, {3, 3, 1, 1}, {}},  // The kernel does not fit: nothing comes out.
      {{0, 5, 5, 1}, {3, 3, 1, 2}, {}},
  };
}

std::vector<ConvForm> volume_forms() {
  return {
      {{1, 3, 4, 5, 2}, {2, 2, 3, 2, 3}, {.axes = 3}},
      {{2, 4, 3, 4, 2},
       {3, 2, 2, 1, 4},
       {.stride = {2, 1, 2},
        .pad_low = {1, 0, 1},
        .pad_high = {1, 1, 0},
        .dilation = {1, 2, 1},
        .groups = 2,
        .axes = 3}},
      {{1, 2, 3, 2, 2},
       {2, 3, 2, 2, 2},
       {.pad_low = {1, 1, 0}, .pad_high = {1, 0, 1}, .spread = {2, 1, 3}, .axes = 3}},
      {{1, 2, 2, 2, 1}, {3, 1, 1, 1, 1}, {.axes = 3}},
  };
}

void conv3d_cases(Cases& cases, DType dtype) {
  if (!is_float(dtype)) return;
  for (const ConvForm& form : volume_forms())
    cases.add_laid_out({cases.draw(dtype, form.x), cases.draw(dtype, form.w)}, form.spec.attrs());
}

void resample_cases(Cases& cases, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64) return;
  struct Sizes {
    int64_t from, to;
  };
  for (const Sizes size : {Sizes{5, 9}, {9, 5}, {1, 4}, {4, 1}, {7, 7}, {0, 0}, {20, 3}}) {
    for (const Sampling sampling :
         {Sampling::nearest, Sampling::linear, Sampling::cubic, Sampling::mean}) {
      for (const bool transposed : {false, true}) {
        ops::ResampleSpec spec{0, Dim(size.to), sampling, size.from == 9, transposed};
        cases.add_laid_out({cases.draw(dtype, {size.from, 3})}, spec.attrs());
        spec.axis = 1;
        cases.add({cases.draw(dtype, {2, size.from, 9})}, spec.attrs());
        cases.add({cases.draw(dtype, {2, size.from})}, spec.attrs());
      }
    }
  }
}

void conv_cases(Cases& cases, DType dtype) {
  if (!is_float(dtype)) return;
  std::vector<ConvForm> forms = conv_forms();
  forms.push_back({{2, 12, 11, 17}, {3, 3, 17, 33}, {.pad_low = {1, 1}, .pad_high = {1, 1}}});
  forms.push_back({{1, 6, 6, 64}, {3, 3, 64, 16}, {}});
  if (dtype == DType::f32 || dtype == DType::f64) {
    forms.push_back(
        {{3, 9, 8, 5}, {9, 8, 5, 7}, {.pad_low = {1, 1}, .pad_high = {1, 1}, .by_channel = true}});
    forms.push_back({{2, 4, 4, 3}, {3, 3, 3, 2}, {.by_channel = true}});
  }
  for (const ConvForm& form : forms)
    cases.add_laid_out({cases.draw(dtype, form.x), cases.draw(dtype, form.w)}, form.spec.attrs());
}

// The gradient of these convolutions by their kernel.
std::vector<ConvForm> kernel_forms() {
  std::vector<ConvForm> forms = conv_forms();
  const std::vector<ConvForm> volumes = volume_forms();
  forms.insert(forms.end(), volumes.begin(), volumes.end());
  std::erase_if(forms, [](const ConvForm& form) { return form.spec.is_spread(); });
  forms.push_back({{3, 4, 7, 5},
                   {3, 2, 1, 5},
                   {.stride = {1, 2}, .pad_low = {1, 1}, .pad_high = {1, 0}, .groups = 5}});
  forms.push_back({{2, 3, 4, 3, 4},
                   {2, 2, 2, 1, 4},
                   {.pad_low = {1, 0, 1}, .dilation = {1, 2, 1}, .groups = 4, .axes = 3}});
  return forms;
}

// The attributes of conv_kernel, and the shape of what the convolution gives.
struct KernelForm {
  explicit KernelForm(const ConvForm& form) : x(form.x), by{form.x[0]} {
    ops::ConvSpec spec = form.spec;
    for (size_t i = 0; i < spec.axes; ++i) {
      const auto axis = static_cast<int64_t>(i);
      spec.taps.push_back(form.w[axis]);
      by.push_back(spec.out_size(i, form.x[axis + 1], form.w[axis]));
    }
    by.push_back(form.w[-1]);
    attrs = spec.attrs();
  }
  Shape x, by;
  Attrs attrs;
};

void conv_kernel_cases(Cases& cases, DType dtype) {
  if (!is_float(dtype)) return;
  std::vector<ConvForm> forms = kernel_forms();
  forms.push_back({{2, 19, 9, 37}, {3, 3, 1, 37}, {.pad_low = {1, 1}, .groups = 37}});
  for (const ConvForm& form : forms) {
    const KernelForm kernel(form);
    cases.add_laid_out({cases.draw(dtype, kernel.x), cases.draw(dtype, kernel.by)}, kernel.attrs);
  }
}

// ---- linear algebra -----------------------------------------------------------------------------

// Matrices whose condition is small: of a shape, and square ones with a diagonal that dominates.
Tensor dominant(Cases& cases, DType dtype, const Shape& shape) {
  const int64_t n = shape[-1];
  return cases.draw(dtype, shape) + (2.0 * static_cast<double>(n)) * eye(n, dtype);
}

// The operands of an op of linear algebra for matrices of m rows and n columns.
std::vector<Tensor> linalg_operands(Cases& cases, DType dtype, const Shape& batch, int64_t m,
                                    int64_t n) {
  const OpDef& op = cases.op();
  const auto shaped = [&](int64_t rows, int64_t columns) {
    Shape shape = batch;
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
  };
  if (op.arity == 2) return {dominant(cases, dtype, shaped(m, m)), cases.draw(dtype, shaped(m, n))};
  if (op.self == &ops::cholesky || op.self == &ops::lu)
    return {dominant(cases, dtype, shaped(m, m))};
  if (op.self == &ops::expm) return {cases.draw(dtype, shaped(m, m), {-0.5, 0.5})};
  return {cases.draw(dtype, shaped(m, op.self == &ops::eigh ? m : n))};
}

std::vector<Attrs> linalg_attrs(const OpDef& op) {
  const auto with = [](std::initializer_list<bool> list) {
    Attrs attrs;
    for (const bool each : list) attrs.add(each);
    return attrs;
  };
  if (op.self == &ops::pinv) return {Attrs().add(-1.0), Attrs().add(0.25)};
  if (op.attrs.size() == 1) return {with({false}), with({true})};
  if (op.attrs.empty()) return {{}};
  return {with({true, false, false}), with({false, false, false}), with({true, true, false}),
          with({false, true, true})};
}

void linalg_cases(Cases& cases, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64) return;
  const std::pair<int64_t, int64_t> sizes[] = {{0, 2}, {1, 1}, {2, 3},  {3, 2},
                                               {4, 4}, {5, 1}, {17, 9}, {9, 33}};
  for (const Attrs& attrs : linalg_attrs(cases.op())) {
    for (const auto& [m, n] : sizes) cases.add(linalg_operands(cases, dtype, {}, m, n), attrs);
    for (const Shape& batch : {Shape{3}, Shape{2, 2}, Shape{0}})
      cases.add(linalg_operands(cases, dtype, batch, 3, 2), attrs);
    cases.add_laid_out(linalg_operands(cases, dtype, {2}, 5, 3), attrs);
  }
}

// ---- draws --------------------------------------------------------------------------------------

Tensor key(int64_t bits) { return full({}, bits, DType::i64); }

void fold_cases(Cases& cases, DType dtype) {
  if (dtype != DType::i64) return;
  for (const int64_t data : {int64_t{0}, int64_t{7}, int64_t{-1}, int64_t{INT64_MAX}})
    cases.add({key(1234), key(data)});
}

void draw_cases(Cases& cases, DType dtype) {
  const OpDef& op = cases.op();
  const bool integers = op.self == &ops::random_integers;
  const bool fits = op.self == &ops::random_bernoulli     ? dtype == DType::boolean
                    : op.self == &ops::random_permutation ? dtype == DType::i64
                    : integers                            ? is_integer(dtype)
                    : op.self == &ops::arange             ? dtype != DType::boolean
                                                          : is_float(dtype);
  if (!fits) return;
  for (const int64_t n : {0, 1, 5, 64, 65, 257, 5000}) {
    Attrs attrs = Attrs().add(DimList{n}).add(dtype);
    if (integers)
      attrs.add(int64_t{3}).add(int64_t{100});
    else
      attrs.add(op.self == &ops::arange ? 1.0 : 0.25).add(op.self == &ops::arange ? 0.5 : 1.5);
    if (op.self == &ops::arange) {
      // What a double cannot tell apart, going down.
      if (is_integer(dtype))
        cases.add({}, Attrs(attrs).add(true).add(int64_t{INT64_MAX - 2}).add(int64_t{-3}));
      attrs.add(false).add(int64_t{0}).add(int64_t{0});
    }
    if (op.self == &ops::arange)
      cases.add({}, attrs);
    else
      cases.add({key(1234)}, attrs);
  }
}

void by_element_cases(Cases& cases, DType dtype) {
  if (dtype != DType::f64) return;
  for (const ops::Drawn drawn : {ops::Drawn::log_gamma, ops::Drawn::poisson}) {
    for (const int64_t n : {0, 1, 15, 257, 5000}) {
      // Around the limits at which the method changes, and far above them.
      const Tensor parameters =
          random::uniform({n}, {.high = 20, .dtype = dtype, .key = random::Key(5)});
      cases.add({key(1234), parameters},
                Attrs().add(DimList{n}).add(dtype).add(static_cast<int64_t>(drawn)));
    }
  }
}

// ---- by name ------------------------------------------------------------------------------------

struct Table {
  const NamedOp* op;
  void (*add)(Cases& cases, DType dtype);
};
constexpr Table kTables[] = {{&ops::reshape, reshape_cases},
                             {&ops::stop_gradient, stop_gradient_cases},
                             {&ops::transpose, transpose_cases},
                             {&ops::slice, slice_cases},
                             {&ops::broadcast_to, broadcast_cases},
                             {&ops::concat, concat_cases},
                             {&ops::pad, pad_cases},
                             {&ops::update, update_cases},
                             {&ops::gather, gather_cases},
                             {&ops::put, put_cases},
                             {&ops::take_along_axis, take_along_cases},
                             {&ops::scatter_add, scatter_cases},
                             {&ops::scatter_max, scatter_cases},
                             {&ops::scatter_min, scatter_cases},
                             {&ops::scatter_mul, scatter_cases},
                             {&ops::cummax, scan_cases},
                             {&ops::cummin, scan_cases},
                             {&ops::cumprod, scan_cases},
                             {&ops::cumsum, scan_cases},
                             {&ops::fourier, fourier_cases},
                             {&ops::real_fourier, real_fourier_cases},
                             {&ops::linear_scan, scan_cases},
                             {&ops::searchsorted, searchsorted_cases},
                             {&ops::first_equal, first_equal_cases},
                             {&ops::sort, sort_cases},
                             {&ops::top_k, top_k_cases},
                             {&ops::matmul, matmul_cases},
                             {&ops::distances, distances_cases},
                             {&ops::weighted_differences, weighted_differences_cases},
                             {&ops::conv2d, conv_cases},
                             {&ops::conv3d, conv3d_cases},
                             {&ops::conv_kernel, conv_kernel_cases},
                             {&ops::resample, resample_cases},
                             {&ops::cholesky, linalg_cases},
                             {&ops::eigh, linalg_cases},
                             {&ops::expm, linalg_cases},
                             {&ops::lu, linalg_cases},
                             {&ops::pinv, linalg_cases},
                             {&ops::qr, linalg_cases},
                             {&ops::solve, linalg_cases},
                             {&ops::solve_triangular, linalg_cases},
                             {&ops::svd, linalg_cases},
                             {&ops::arange, draw_cases},
                             {&ops::random_bernoulli, draw_cases},
                             {&ops::random_by_element, by_element_cases},
                             {&ops::random_fold, fold_cases},
                             {&ops::random_integers, draw_cases},
                             {&ops::random_normal, draw_cases},
                             {&ops::random_permutation, draw_cases},
                             {&ops::random_uniform, draw_cases}};

std::vector<Case> tabled(const OpDef& op) {
  Cases cases(op);
  for (const Table& table : kTables) {
    if (table.op != op.self) continue;
    // Permutations and keys are i64, which may not be among those that are swept.
    const bool is_one = op.self == &ops::random_permutation || op.self == &ops::random_fold;
    for (const DType dtype : is_one ? all_dtypes() : swept_dtypes(op)) table.add(cases, dtype);
  }
  return cases.take();
}

}  // namespace

std::vector<Case> cases_of(const OpDef& op) {
  std::vector<Case> list = op.self == &ops::cast            ? casts(op)
                           : op.family == Family::pointwise ? pointwise(op)
                           : op.family == Family::reduce    ? reductions(op)
                           : op.family == Family::row       ? rows(op)
                                                            : tabled(op);
  // The program of polygamma is the largest by far: every case takes long to compile.
  const bool is_costly = op.self == &polygamma && !full_counts();
  if (!small_counts() && !is_costly) return list;
  // Special values, and one of seven of the others: 7 has no factor in common with the tables.
  const size_t kept = small_counts() && is_costly ? 49 : 7;
  size_t number = 0;
  std::erase_if(list, [&](const Case& c) {
    const bool is_special = c.text.find("special") != std::string::npos && !is_costly;
    return number++ % kept != 0 && !is_special;
  });
  return list;
}

std::vector<Case> large_cases_of(const OpDef& op) {
  Cases cases(op);
  const auto draws = [&](DType dtype, std::initializer_list<Shape> shapes) {
    std::vector<Tensor> list;
    int index = 0;
    for (const Shape& shape : shapes) {
      if (index == op.arity) break;
      list.push_back(is_condition(op, index) ? cases.draw(DType::boolean, shape)
                                             : cases.draw(dtype, shape, reduce_range(op, 100)));
      ++index;
    }
    return list;
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::boolean}) {
    if (op.self == &ops::cast) {
      cases.add(draws(dtype, {{100003}}), Attrs().add(DType::f16));
      cases.add(draws(dtype, {{300, 301}}), Attrs().add(DType::i64));
    } else if (op.family == Family::pointwise) {
      if (!admits(op, dtype)) continue;
      cases.add(draws(dtype, {{100003}, {100003}, {100003}}));
      cases.add(draws(dtype, {{301, 300}, {300}, {301, 1}}));
    } else if (op.family == Family::reduce) {
      if (!admits(op, dtype)) continue;
      const auto draw = [&](const Shape& shape, int64_t folded) {
        return cases.draw(dtype, shape, reduce_range(op, folded));
      };
      cases.add({draw({200003}, 200003)}, reduce_attrs({0}, false));
      cases.add({draw({3, 70001}, 70001)}, reduce_attrs({1}, false));
      cases.add({draw({70001, 3}, 70001)}, reduce_attrs({0}, false));
      cases.add({draw({301, 302}, 302)}, reduce_attrs({1}, false));
      cases.add({draw({301, 302}, 301)}, reduce_attrs({0}, false));
      if (!op.gives_index) cases.add({draw({31, 41, 51}, 1581)}, reduce_attrs({0, 2}, false));
    } else if (op.family == Family::row) {
      if (!is_float(dtype)) continue;
      cases.add(draws(dtype, {{40, 3000}}), Attrs().add(int64_t{1}));
      cases.add(draws(dtype, {{3000, 40}}), Attrs().add(int64_t{0}));
    } else if (op.self == &ops::matmul) {
      if (dtype == DType::boolean) continue;
      cases.add(draws(dtype, {{130, 300}, {300, 70}}));
      cases.add(draws(dtype, {{1, 3000}, {3000, 70}}));
      cases.add(draws(dtype, {{9, 40, 50}, {50, 60}}));
    } else if (op.self == &ops::distances) {
      if (!is_float(dtype)) continue;
      cases.add(draws(dtype, {{130, 300}, {300, 170}}), Attrs().add(true));
      cases.add(draws(dtype, {{9, 40, 50}, {50, 60}}), Attrs().add(true));
    } else if (op.self == &ops::weighted_differences) {
      if (!is_float(dtype)) continue;
      cases.add(draws(dtype, {{130, 300}, {130, 170}, {300, 170}}));
      cases.add(draws(dtype, {{9, 40, 50}, {40, 60}, {50, 60}}));
    } else if (op.self == &ops::conv2d) {
      if (!is_float(dtype)) continue;
      cases.add(draws(dtype, {{3, 30, 31, 8}, {3, 3, 8, 16}}), ops::ConvSpec{}.attrs());
    } else if (op.self == &ops::conv3d) {
      if (!is_float(dtype)) continue;
      cases.add(draws(dtype, {{2, 7, 12, 13, 8}, {3, 3, 3, 8, 16}}),
                ops::ConvSpec{.axes = 3}.attrs());
    } else if (op.self == &ops::conv_kernel) {
      if (!is_float(dtype)) continue;
      for (const int64_t groups : {2, 24}) {
        const KernelForm kernel(
            {{3, 30, 31, 24}, {3, 3, 24 / groups, 24}, {.pad_low = {1, 1}, .groups = groups}});
        cases.add(draws(dtype, {kernel.x, kernel.by}), kernel.attrs);
      }
    } else if (op.self == &ops::resample) {
      if (dtype != DType::f32 && dtype != DType::f64) continue;
      const ops::ResampleSpec spec{1, Dim(61), Sampling::cubic, true, false};
      cases.add(draws(dtype, {{40, 90, 20}}), spec.attrs());
    } else if (op.family == Family::linalg) {
      if (dtype != DType::f32 && dtype != DType::f64) continue;
      cases.add(linalg_operands(cases, dtype, {}, 130, 110), linalg_attrs(op)[0]);
      cases.add(linalg_operands(cases, dtype, {60}, 20, 12), linalg_attrs(op)[0]);
    } else if (op.self == &ops::fourier) {
      if (dtype != DType::f32 && dtype != DType::f64) continue;
      const auto attrs = [](AxisList axes) { return Attrs().add(axes).add(false).add(1.0); };
      cases.add({cases.draw(dtype, {50, 120, 2})}, attrs({1, 2}));
      cases.add({cases.draw(dtype, {37, 101, 2})}, attrs({0, 2}));
    } else if (op.self == &ops::real_fourier) {
      if (dtype != DType::f32 && dtype != DType::f64) continue;
      cases.add({cases.draw(dtype, {50, 120})}, ops::RealFourierSpec{.count = 120}.attrs());
      cases.add({cases.draw(dtype, {37, 51, 2})},
                ops::RealFourierSpec{.inverse = true, .count = 101}.attrs());
    } else if (op.self == &ops::searchsorted) {
      cases.add({sort(cases.draw(dtype, {50, 300})), cases.draw(dtype, {50, 900})},
                Attrs().add(true));
    } else if (op.attrs.data() == ops::kCumsumAttrs) {
      if (!admits(op, dtype)) continue;
      cases.add(draws(dtype, {{50, 3000}, {50, 3000}}), Attrs().add(int64_t{1}).add(false));
      cases.add(draws(dtype, {{3000, 50}, {3000, 50}}), Attrs().add(int64_t{0}).add(false));
    } else if (op.self == &ops::sort) {
      cases.add(draws(dtype, {{50, 3000}}), Attrs().add(int64_t{1}).add(false));
      cases.add(draws(dtype, {{3000, 50}}), Attrs().add(int64_t{0}).add(true));
      cases.add(draws(dtype, {{7, 9, 700}}), Attrs().add(int64_t{1}).add(true));
    } else if (op.self == &ops::top_k) {
      cases.add(draws(dtype, {{50, 3000}}), Attrs().add(int64_t{1}).add(Dim(20)));
      cases.add(draws(dtype, {{3000, 50}}), Attrs().add(int64_t{0}).add(Dim(20)));
    } else if (op.self == &ops::gather) {
      cases.add({cases.draw(dtype, {50, 60}), indices(cases, DType::i32, {900}, 60)},
                Attrs().add(int64_t{1}));
    } else if (op.self == &ops::take_along_axis) {
      cases.add({cases.draw(dtype, {50, 60}), indices(cases, DType::i32, {50, 900}, 60)},
                Attrs().add(int64_t{1}).add(true));
    } else if (op.attrs.data() == ops::kScatterAttrs) {
      cases.add({cases.draw(dtype, {50, 60}), indices(cases, DType::i32, {900}, 50),
                 cases.draw(dtype, {900, 60})},
                Attrs().add(int64_t{0}).add(false));
    } else if (op.self == &ops::concat) {
      cases.add({cases.draw(dtype, {200, 300}), cases.draw(dtype, {200, 100})},
                Attrs().add(int64_t{1}));
    } else if (op.self == &ops::update) {
      cases.add({cases.draw(dtype, {200, 300}), cases.draw(dtype, {100, 300})},
                Attrs().add(DimList{50, 0}).add(DimList{100, 300}).add(AxisList{1, 1}));
    } else if (op.self == &ops::pad) {
      cases.add({cases.draw(dtype, {200, 300})}, Attrs()
                                                     .add(DimList{1, 2})
                                                     .add(DimList{3, 4})
                                                     .add(AxisList{0, 1})
                                                     .add(1.0)
                                                     .add(int64_t{1}));
    } else if (op.family == Family::random) {
      if (op.self == &ops::random_fold || op.self == &ops::random_by_element) continue;
      Cases more(op);
      draw_cases(more, dtype);
      for (const Case& c : more.take()) cases.add(c.operands, c.attrs);
      if (op.self != &ops::arange && op.self != &ops::random_integers &&
          op.self != &ops::random_permutation &&
          is_float(dtype) != (op.self == &ops::random_bernoulli))
        cases.add({key(7)}, Attrs().add(DimList{100003}).add(dtype).add(0.5).add(1.0));
    }
  }
  return cases.take();
}

std::vector<Case> smooth_cases_of(const OpDef& op) {
  Cases cases(op);
  if (op.self == &ops::cast) {
    cases.add({cases.draw(DType::f64, {7})}, Attrs().add(DType::f32));
  } else if (op.family == Family::pointwise) {
    const Shape shapes[][3] = {{{7}, {7}, {7}}, {{3, 1}, {4}, {3, 4}}};
    for (const auto& three : shapes) {
      std::vector<Tensor> list;
      for (int i = 0; i < op.arity; ++i)
        list.push_back(cases.operand(i, DType::f64, three[static_cast<size_t>(i)]));
      cases.add(std::move(list));
    }
  } else if (op.family == Family::reduce) {
    for (const bool keep : {false, true}) {
      cases.add({cases.draw(DType::f64, {6})}, reduce_attrs({0}, keep));
      cases.add({cases.draw(DType::f64, {3, 4, 2})}, reduce_attrs({0, 2}, keep));
      cases.add({cases.draw(DType::f64, {3, 4})}, reduce_attrs({1}, keep));
    }
  } else if (op.family == Family::row) {
    cases.add({cases.draw(DType::f64, {6})}, Attrs().add(int64_t{0}));
    cases.add({cases.draw(DType::f64, {3, 4, 2})}, Attrs().add(int64_t{1}));
  } else if (op.self == &ops::conv2d || op.self == &ops::conv3d) {
    for (const ConvForm& form : op.self == &ops::conv2d ? conv_forms() : volume_forms())
      cases.add({cases.draw(DType::f64, form.x), cases.draw(DType::f64, form.w)},
                form.spec.attrs());
  } else if (op.self == &ops::conv_kernel) {
    for (const ConvForm& form : kernel_forms()) {
      const KernelForm kernel(form);
      cases.add({cases.draw(DType::f64, kernel.x), cases.draw(DType::f64, kernel.by)},
                kernel.attrs);
    }
  } else if (op.family != Family::random) {
    Cases more(op);
    for (const Table& table : kTables) {
      if (table.op == op.self) table.add(more, DType::f64);
    }
    for (Case& c : more.take()) {
      const bool small = std::all_of(c.operands.begin(), c.operands.end(),
                                     [](const Tensor& x) { return x.size() <= 80; });
      if (op.self == &ops::qr && c.attrs.read().boolean() &&
          is_less(c.operands[0].shape()[-1], c.operands[0].shape()[-2]))
        continue;  // Its last columns are not determined.
      if (op.self == &ops::pinv && c.attrs.read().number() > 0)
        continue;  // What rtol cuts off counts as 0, which it is not.
      if (small && (c.text.empty() || c.text == "dense")) cases.add(std::move(c.operands), c.attrs);
    }
  }
  std::vector<Case> list = cases.take();
  std::erase_if(list, [](const Case& c) { return c.result != 0; });  // Places have no slope.
  return list;
}

std::string described(const Case& c) {
  std::ostringstream out;
  out << c.op->name;
  if (c.op->results > 1) out << " result " << c.result << " of";
  for (const Tensor& operand : c.operands) out << ' ' << detail::type_of(operand, Source::none());
  if (!c.text.empty()) out << ", " << c.text;
  // The words of the attributes, in the order of the op's schema.
  Attrs::Reader read = c.attrs.read();
  for (const AttrDef& attr : c.op->attrs) {
    out << ", " << attr.name << " =";
    if (attr.kind == AttrKind::integers) {
      for (const int64_t item : read.integers()) out << ' ' << item;
    } else if (attr.kind == AttrKind::sizes) {
      for (const Dim item : read.sizes()) out << ' ' << item;
    } else if (attr.kind == AttrKind::number) {
      out << ' ' << read.number();
    } else if (attr.kind == AttrKind::dtype) {
      out << ' ' << read.dtype();
    } else if (attr.kind == AttrKind::size) {
      out << ' ' << read.size();
    } else {
      out << ' ' << read.integer();
    }
  }
  return out.str();
}

// ---- running ------------------------------------------------------------------------------------

Tensor run(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs, int result) {
  const Source at = Source::here();
  if (op.results > 1)
    return detail::bind_results(op, operands, attrs, uint32_t{1} << result,
                                at)[static_cast<size_t>(result)];
  if (op.self == &ops::cast) return detail::cast_to(operands[0], attrs.read().dtype(), at);
  if (op.family == Family::row)
    return (*static_cast<const RowOp*>(op.self))(operands[0], attrs.read().integer(), at);
  return detail::bind_op(op, operands, attrs, at);
}

namespace {

// The type of a pointwise op's result, and what it computes in.
std::pair<PointwiseType, Shape> pointwise_type(const OpDef& op, std::span<const Tensor> operands) {
  std::vector<OperandType> types;
  Shape shape;
  for (const Tensor& operand : operands) {
    types.push_back({operand.dtype(), Weak::no, &operand.shape()});
    broadcast_into(shape, operand.shape(), op.name, Source::none());
  }
  return {infer_pointwise(op, types, Source::none()), shape};
}

}  // namespace

Tensor run_kernel(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs,
                  int result_number) {
  if (op.family != Family::pointwise || op.value == nullptr)
    return run(op, operands, attrs, result_number);
  const auto [type, shape] = pointwise_type(op, operands);
  std::vector<ArrayRef> arrays;
  for (const Tensor& operand : operands)
    arrays.push_back(detail::array_of(repeated(operand, shape), Source::none()));
  std::vector<compile::Input> inputs;
  for (const ArrayRef& array : arrays) inputs.push_back({.array = &array});
  Tensor result = detail::make_tensor(type.result, shape, Source::here());
  compile::run_pointwise(op, inputs, type, detail::array_of(result, Source::none()));
  return result;
}

Tensor expected(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs,
                int result_number) {
  if (op.family == Family::random && op.reference == nullptr) return {};
  std::vector<Tensor> dense;
  for (const Tensor& operand : operands) dense.push_back(dense_copy(operand));
  std::vector<TensorType> types;
  std::vector<ArrayRef> arrays;
  for (const Tensor& operand : dense) {
    types.push_back(detail::type_of(operand, Source::none()));
    arrays.push_back(detail::array_of(operand, Source::none()));
  }
  std::vector<TensorType> wanted;
  if (op.infer != nullptr) {
    wanted = infer_results({op, types, attrs, Source::none()});
  } else {
    const auto [pointwise, shape] = pointwise_type(op, operands);
    wanted = {{pointwise.result, shape}};
  }
  std::vector<Tensor> results;
  std::vector<ArrayRef> places;
  for (const TensorType& type : wanted) {
    results.push_back(detail::make_tensor(type.dtype, type.shape, Source::here()));
    places.push_back(detail::array_of(results.back(), Source::none()));
  }
  reference::evaluate(op, arrays, attrs, places);
  return results[static_cast<size_t>(result_number)];
}

}  // namespace tidemark::sweep
