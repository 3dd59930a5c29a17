#include "tests/sweep/values.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tidemark/ops/reference.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::sweep {
namespace {

const ArrayRef& array(const Tensor& tensor) { return detail::array_of(tensor, Source::none()); }

Tensor made(DType dtype, const Shape& shape) {
  return detail::make_tensor(dtype, shape, Source::here());
}

constexpr bool is_default(SampleRange range) { return range.low == -2.0 && range.high == 2.0; }

// The whole numbers a range stands for.
std::pair<int64_t, int64_t> whole_range(DType dtype, SampleRange range) {
  if (dtype == DType::boolean) return {0, 1};
  if (is_default(range)) return is_signed_integer(dtype) ? std::pair{-100, 100} : std::pair{0, 255};
  auto low = static_cast<int64_t>(std::ceil(range.low));
  auto high = static_cast<int64_t>(std::floor(range.high));
  if (low >= high) std::tie(low, high) = std::pair{low - 2, high + 2};
  if (is_signed_integer(dtype))
    return {std::max(low, least_of(dtype)), std::min(high, most_of(dtype))};
  return {std::max<int64_t>(0, low), high};
}

std::vector<double> special_reals(DType dtype) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> list = {0.0, -0.0, 1.0,  -1.0, 0.5,  -0.5, 1.5,  2.5,   -2.5,
                              3.0, -7.0, NAN,  inf,  -inf, 88.0, -88,  104.0, -104,
                              710, -745, 1e-3, 1e4,  -1e4, 3e9,  -3e9, 1e19,  -1e19};
  switch (dtype) {
    case DType::f16:  // The least denormal, the least normal number, the largest.
      list.insert(list.end(), {5.9604645e-8, -5.9604645e-8, 6.103515625e-5, 65504.0, -65504.0});
      break;
    case DType::f64:
      list.insert(list.end(), {4.9406564584124654e-324, -1e-310, 2.2250738585072014e-308,
                               1.7976931348623157e308, -1.7976931348623157e308, 1e22});
      break;
    default:
      list.insert(list.end(), {1.4e-45, -1e-39, 1.17549435e-38, 3.4e38, -3.4e38, 1e22});
  }
  return list;
}

std::vector<int64_t> special_wholes(DType dtype) {
  std::vector<int64_t> list = {0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 100};
  if (dtype == DType::boolean) return {0, 1};
  const int64_t low = least_of(dtype), high = most_of(dtype);
  const auto half = static_cast<int64_t>(static_cast<uint64_t>(high) / 2);
  list.insert(list.end(), {high, high - 1, half, half + 1});
  if (is_signed_integer(dtype)) list.insert(list.end(), {-1, -2, -7, -33, low, low + 1});
  if (size_of(dtype) >= 4) list.insert(list.end(), {1 << 24, (1 << 24) + 1});
  return list;
}

Tensor sliced(const Tensor& base, const DimList& begin, const DimList& size, const AxisList& step) {
  return detail::bind_op(def_of(&ops::slice), {&base, 1}, Attrs().add(begin).add(size).add(step),
                         Source::here());
}

// A tensor of rubbish: bytes that no element of a test has, so that reading one shows.
Tensor rubbish(DType dtype, const Shape& shape) {
  Tensor base = made(dtype, shape);
  const int byte = dtype == DType::boolean ? 1 : 0xAB;
  std::memset(array(base).data, byte, static_cast<size_t>(base.size_bytes().count));
  return base;
}

void copy_elements(const ArrayRef& from, const ArrayRef& to) {
  const auto bytes = static_cast<size_t>(size_of(from.dtype));
  reference::for_each_index(from.shape, [&](std::span<const int64_t> index, int64_t) {
    int64_t source = 0, target = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      source += index[axis] * from.strides[axis];
      target += index[axis] * to.strides[axis];
    }
    std::memcpy(to.data + target * static_cast<int64_t>(bytes),
                from.data + source * static_cast<int64_t>(bytes), bytes);
  });
}

}  // namespace

namespace {
bool counts_are(std::string_view wanted) {
  const char* text = std::getenv("TIDEMARK_TEST_COUNTS");
  return text != nullptr && text == wanted;
}
}  // namespace

std::vector<DType> all_dtypes() {
  std::vector<DType> list;
  for (int i = 0; i < kDTypes; ++i) list.push_back(static_cast<DType>(i));
  return list;
}

std::vector<DType> swept_dtypes(const OpDef& op) {
  if (full_counts()) return all_dtypes();
  constexpr DType others[] = {DType::i8,  DType::u64, DType::i16, DType::u32,
                              DType::i64, DType::u16, DType::u8};
  const auto number = static_cast<size_t>(&op - catalogue().data());
  return {DType::f16,     DType::bf16,
          DType::f32,     DType::f64,
          DType::i32,     others[2 * number % 7],
          DType::boolean, others[(2 * number + 1) % 7]};
}

bool full_counts() { return counts_are("full"); }
bool small_counts() { return counts_are("small"); }

uint64_t Draws::next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

double Draws::real(double low, double high) {
  return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
}

int64_t Draws::whole(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
}

Tensor drawn(DType dtype, const Shape& shape, SampleRange range, uint64_t seed) {
  Tensor result = made(dtype, shape);
  Draws draws(seed);
  const auto [low, high] = whole_range(dtype, range);
  for (int64_t i = 0; i < result.size(); ++i) {
    if (is_float(dtype))
      reference::write(array(result), i,
                       static_cast<long double>(draws.real(range.low, range.high)));
    else
      reference::write(array(result), i, draws.whole(low, high));
  }
  return result;
}

Tensor listed(DType dtype, const Shape& shape, std::span<const double> values) {
  Tensor result = made(dtype, shape);
  for (int64_t i = 0; i < result.size(); ++i)
    reference::write(array(result), i,
                     static_cast<long double>(values[static_cast<size_t>(i) % values.size()]));
  return result;
}

Tensor listed(DType dtype, const Shape& shape, std::span<const int64_t> values) {
  Tensor result = made(dtype, shape);
  for (int64_t i = 0; i < result.size(); ++i)
    reference::write(array(result), i, values[static_cast<size_t>(i) % values.size()]);
  return result;
}

Tensor special(DType dtype) {
  if (is_float(dtype)) {
    const std::vector<double> list = special_reals(dtype);
    return listed(dtype, {list.size()}, list);
  }
  const std::vector<int64_t> list = special_wholes(dtype);
  return listed(dtype, {list.size()}, list);
}

std::vector<Tensor> special_pairs(DType dtype) {
  const Tensor list = special(dtype);
  const int64_t count = list.size();
  Tensor a = made(dtype, {count * count}), b = made(dtype, {count * count});
  const auto bytes = static_cast<size_t>(size_of(dtype));
  for (int64_t i = 0; i < count * count; ++i) {
    const auto from = [&](int64_t n) { return array(list).data + n * size_of(dtype); };
    std::memcpy(array(a).data + i * size_of(dtype), from(i / count), bytes);
    std::memcpy(array(b).data + i * size_of(dtype), from(i % count), bytes);
  }
  return {a, b};
}

const char* name(Layout layout) {
  constexpr const char* names[] = {"dense",   "transposed", "offset",
                                   "stepped", "backwards",  "ragged"};
  return names[static_cast<int>(layout)];
}

Tensor laid_out(const Tensor& dense, Layout layout) {
  const Shape& shape = dense.shape();
  const auto rank = static_cast<size_t>(shape.rank());
  Shape whole;
  DimList begin(rank), size(rank);
  AxisList step(rank, 1), reversed;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = shape[static_cast<int64_t>(i)];
    const bool last = i + 1 == rank;
    size[i] = extent;
    reversed.push_back(static_cast<int64_t>(rank - 1 - i));
    switch (layout) {
      case Layout::offset:  // Begins in the middle of a cache line; rows lie apart.
        begin[i] = 1;
        whole.push_back(extent + 2);
        break;
      case Layout::stepped:
        begin[i] = 1;
        step[i] = 2;
        whole.push_back(2 * extent + 1);
        break;
      case Layout::backwards:
        begin[i] = std::max<int64_t>(0, extent - 1);
        step[i] = -1;
        whole.push_back(extent);
        break;
      case Layout::ragged:  // The last axis plain, the others backwards in steps of two.
        begin[i] = last ? 3 : std::max<int64_t>(0, 2 * extent - 1);
        step[i] = last ? 1 : -2;
        whole.push_back(last ? extent + 3 : 2 * extent);
        break;
      default:
        break;
    }
  }
  if (layout == Layout::dense) return dense;
  Tensor view;
  if (layout == Layout::transposed) {
    Shape back;
    for (const int64_t axis : reversed) back.push_back(shape[axis]);
    const Tensor base = rubbish(dense.dtype(), back);
    view =
        detail::bind_op(def_of(&ops::transpose), {&base, 1}, Attrs().add(reversed), Source::here());
  } else {
    view = sliced(rubbish(dense.dtype(), whole), begin, size, step);
  }
  copy_elements(array(dense), array(view));
  return view;
}

Tensor repeated(const Tensor& x, const Shape& shape) {
  return detail::bind_op(def_of(&ops::broadcast_to), {&x, 1}, Attrs().add(shape), Source::here());
}

Tensor dense_copy(const Tensor& x) {
  Tensor result = made(x.dtype(), x.shape());
  copy_elements(array(x), array(result));
  return result;
}

}  // namespace tidemark::sweep
