// Printing in NumPy's manner: equal widths, as few digits as tell the values apart (8 after the
// point at most), three elements from each end of long axes, lines of 75 characters.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ostream>

#include "tidemark/api/ops.h"
#include "tidemark/api/tensor_state.h"

namespace tidemark {
namespace {

constexpr int64_t kElideAbove = 1000;
constexpr int64_t kEdge = 3;
constexpr size_t kLineWidth = 75;
constexpr int kDigits = 8;

// The digits of a float as short as they can be and still name it, split at the point.
struct Digits {
  std::string left, right, exponent;
};

template <class T>
Digits digits_of(T value, bool scientific) {
  char text[400];
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  char* end = std::to_chars(text, text + sizeof(text), value, format).ptr;
  std::string shortest(text, end);
  Digits digits;
  const size_t mark = shortest.find('e');
  if (mark != std::string::npos) {
    digits.exponent = shortest.substr(mark);
    shortest.resize(mark);
  }
  const size_t point = shortest.find('.');
  if (point != std::string::npos && shortest.size() - point - 1 > kDigits) {
    end = std::to_chars(text, text + sizeof(text), value, format, kDigits).ptr;
    shortest.assign(text, end);
    const size_t again = shortest.find('e');
    if (again != std::string::npos) {
      digits.exponent = shortest.substr(again);
      shortest.resize(again);
    }
    while (shortest.back() == '0') shortest.pop_back();
  }
  const size_t dot = shortest.find('.');
  digits.left = shortest.substr(0, dot);
  if (dot != std::string::npos) digits.right = shortest.substr(dot + 1);
  return digits;
}

// How every element of one tensor is written, found from the elements that will be shown.
class Style {
 public:
  explicit Style(const std::vector<ArrayRef>& shown) {
    for (const ArrayRef& element : shown) {
      if (is_float(element.dtype)) consider(element);
    }
    const double ratio = smallest_ > 0 ? largest_ / smallest_ : 0;
    scientific_ = largest_ >= 1e8 || (smallest_ > 0 && (smallest_ < 1e-4 || ratio > 1e3 * 1.0))
                      ? needs_exponent(ratio)
                      : false;
    for (const ArrayRef& element : shown) measure(element);
    for (const ArrayRef& element : shown) width_ = std::max(width_, write(element).size());
  }

  std::string padded(const ArrayRef& element) const {
    std::string text = write(element);
    if (text.size() < width_) text.insert(0, width_ - text.size(), ' ');
    return text;
  }

 private:
  bool needs_exponent(double ratio) const {
    return largest_ >= 1e8 || smallest_ < 1e-4 || ratio > 1e3;
  }

  static double value_of(const ArrayRef& element) {
    return visit_dtype(element.dtype, [&](auto value) -> double {
      std::memcpy(&value, element.data, sizeof(value));
      if constexpr (std::is_arithmetic_v<decltype(value)>)
        return static_cast<double>(value);
      else
        return static_cast<double>(static_cast<float>(value));
    });
  }

  void consider(const ArrayRef& element) {
    const double magnitude = std::fabs(value_of(element));
    if (!std::isfinite(magnitude) || magnitude == 0) return;
    largest_ = std::max(largest_, magnitude);
    smallest_ = smallest_ == 0 ? magnitude : std::min(smallest_, magnitude);
  }

  Digits digits(const ArrayRef& element) const {
    const double value = value_of(element);
    return element.dtype == DType::f64 ? digits_of(value, scientific_)
                                       : digits_of(static_cast<float>(value), scientific_);
  }

  void measure(const ArrayRef& element) {
    if (!is_float(element.dtype) || !std::isfinite(value_of(element))) return;
    const Digits parts = digits(element);
    left_ = std::max(left_, parts.left.size());
    right_ = std::max(right_, parts.right.size());
  }

  std::string write(const ArrayRef& element) const {
    const double value = value_of(element);
    if (element.dtype == DType::boolean) return value != 0 ? "True" : "False";
    if (!is_float(element.dtype)) {
      int64_t whole = 0;
      visit_dtype(element.dtype, [&](auto number) {
        std::memcpy(&number, element.data, sizeof(number));
        if constexpr (std::is_integral_v<decltype(number)>) whole = static_cast<int64_t>(number);
      });
      return std::to_string(whole);
    }
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    const Digits parts = digits(element);
    std::string text = std::string(left_ - parts.left.size(), ' ') + parts.left + '.' + parts.right;
    // After the point NumPy fills with zeros where there is an exponent, else with blanks.
    text.append(right_ - parts.right.size(), scientific_ ? '0' : ' ');
    return text + parts.exponent;
  }

  double largest_ = 0, smallest_ = 0;
  bool scientific_ = false;
  size_t left_ = 0, right_ = 0, width_ = 0;
};

class Writer {
 public:
  explicit Writer(const ArrayRef& array)
      : array_(array), elide_(array.size() > kElideAbove), style_(shown()) {}

  std::string text() { return array_.rank() == 0 ? style_.padded(at(array_)) : list(array_, 1); }

 private:
  static ArrayRef at(const ArrayRef& array) {
    return {.data = array.data, .dtype = array.dtype, .shape = {}, .strides = {}};
  }

  static ArrayRef item(const ArrayRef& array, int64_t i) {
    ArrayRef inner = array;
    inner.data += i * array.strides[0] * size_of(array.dtype);
    inner.shape.erase(0);
    inner.strides.erase(0);
    return inner;
  }

  // Indices of an axis that are shown; -1 stands for the dots.
  std::vector<int64_t> picked(int64_t size) const {
    std::vector<int64_t> list;
    const bool dots = elide_ && size > 2 * kEdge;
    for (int64_t i = 0; i < size; ++i) {
      if (dots && i == kEdge) {
        list.push_back(-1);
        i = size - kEdge;
      }
      list.push_back(i);
    }
    return list;
  }

  std::vector<ArrayRef> shown() const {
    std::vector<ArrayRef> list;
    collect(array_, list);
    return list;
  }

  void collect(const ArrayRef& array, std::vector<ArrayRef>& list) const {
    if (array.rank() == 0) return list.push_back(array);
    for (const int64_t i : picked(array.shape[0])) {
      if (i >= 0) collect(item(array, i), list);
    }
  }

  std::string list(const ArrayRef& array, size_t indent) {
    return array.rank() == 1 ? row(array, indent) : rows(array, indent);
  }

  std::string row(const ArrayRef& array, size_t indent) {
    std::string text = "[";
    size_t column = indent;
    bool first = true;
    for (const int64_t i : picked(array.shape[0])) {
      const std::string word = i < 0 ? "..." : style_.padded(item(array, i));
      if (!first && column + 1 + word.size() + 1 > kLineWidth) {
        text += '\n' + std::string(indent, ' ');
        column = indent;
      } else if (!first) {
        text += ' ';
        ++column;
      }
      text += word;
      column += word.size();
      first = false;
    }
    return text + "]";
  }

  std::string rows(const ArrayRef& array, size_t indent) {
    std::string text = "[";
    bool first = true;
    const std::string gap =
        std::string(static_cast<size_t>(array.rank()) - 1, '\n') + std::string(indent, ' ');
    for (const int64_t i : picked(array.shape[0])) {
      if (!first) text += gap;
      text += i < 0 ? "..." : list(item(array, i), indent + 1);
      first = false;
    }
    return text + "]";
  }

  const ArrayRef& array_;
  bool elide_;
  Style style_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.has_value()) return out << "<no tensor>";
  return out << Writer(detail::array_of(tensor, Source::none())).text();
}

}  // namespace tidemark
