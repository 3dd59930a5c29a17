#include "tidemark/types/array_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace tidemark {
namespace {

constexpr int64_t kElideAbove = 1000;
constexpr int64_t kEdge = 3;
constexpr size_t kLineWidth = 75;
constexpr int kDigits = 8;

// The shortest digits that round-trip, split at the point.
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

// The double with the fewest digits that still rounds to this float. The neighbours of a 16-bit
// float are far away, so few digits are enough.
double shortest_of(double whole, DType dtype) {
  if (!is_low_precision(dtype) || whole == 0 || !std::isfinite(whole)) return whole;
  const auto value = static_cast<float>(whole);
  const auto bits = [&](float x) {
    return dtype == DType::f16 ? f16_of_float(x) : bf16_of_float(x);
  };
  char text[64];
  for (int digits = 0; digits < 9; ++digits) {
    const char* end =
        std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific, digits).ptr;
    double near = 0;
    std::from_chars(text, end, near);
    if (bits(static_cast<float>(near)) == bits(value)) return near;
  }
  return whole;
}

// Larger numbers are written with an exponent: the dtype has no more digits.
double largest_plain(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e8;
    case DType::f32:
      return 1e6;
    default:
      return 1e3;
  }
}

// A number rounded to the dtype, for comparison there.
double in_dtype(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  switch (dtype) {
    case DType::f16:
      return static_cast<double>(float_of_f16(f16_of_float(narrow)));
    case DType::bf16:
      return static_cast<double>(float_of_bf16(bf16_of_float(narrow)));
    case DType::f32:
      return static_cast<double>(narrow);
    default:
      return value;
  }
}

// The format of a tensor's elements, chosen from the elements that will be shown.
class Style {
 public:
  // `with_plus`: numbers that are not negative have a sign too.
  explicit Style(const std::vector<ArrayRef>& shown, bool with_plus = false)
      : with_plus_(with_plus) {
    for (const ArrayRef& element : shown) {
      if (is_float(element.dtype)) consider(element);
    }
    if (smallest_ > 0) {
      const DType dtype = shown[0].dtype;
      scientific_ = largest_ >= largest_plain(dtype) || smallest_ < in_dtype(1e-4, dtype) ||
                    in_dtype(largest_ / smallest_, dtype) > 1e3;
    }
    for (const ArrayRef& element : shown) measure(element);
    for (const ArrayRef& element : shown) width_ = std::max(width_, write(element).size());
  }

  std::string padded(const ArrayRef& element) const {
    std::string text = write(element);
    if (text.size() < width_) text.insert(0, width_ - text.size(), ' ');
    return text;
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

 private:
  void consider(const ArrayRef& element) {
    const double magnitude = std::fabs(value_of(element));
    if (!std::isfinite(magnitude) || magnitude == 0) return;
    largest_ = std::max(largest_, magnitude);
    smallest_ = smallest_ == 0 ? magnitude : std::min(smallest_, magnitude);
  }

  Digits digits(const ArrayRef& element) const {
    const double value = value_of(element);
    Digits found = element.dtype == DType::f32
                       ? digits_of(static_cast<float>(value), scientific_)
                       : digits_of(shortest_of(value, element.dtype), scientific_);
    if (with_plus_ && !std::signbit(value)) found.left.insert(0, "+");
    return found;
  }

  void measure(const ArrayRef& element) {
    if (!is_float(element.dtype) || !std::isfinite(value_of(element))) return;
    const Digits parts = digits(element);
    left_ = std::max(left_, parts.left.size());
    right_ = std::max(right_, parts.right.size());
    if (scientific_) exponent_ = std::max(exponent_, parts.exponent.size() - 1);
  }

  std::string write(const ArrayRef& element) const {
    const double value = value_of(element);
    if (element.dtype == DType::boolean) return value != 0 ? "True" : "False";
    if (!is_float(element.dtype)) {
      return visit_dtype(element.dtype, [&](auto number) -> std::string {
        std::memcpy(&number, element.data, sizeof(number));
        if constexpr (std::is_integral_v<decltype(number)>)
          return std::to_string(number);
        else
          return {};
      });
    }
    if (std::isnan(value)) return with_plus_ ? "+nan" : "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : with_plus_ ? "+inf" : "inf";
    if (scientific_) {
      // Digits beyond those that distinguish the values are the element's own, not zeros.
      char digits[64];
      char* end = std::to_chars(digits, digits + sizeof(digits), value,
                                std::chars_format::scientific, static_cast<int>(right_))
                      .ptr;
      std::string text(digits, end);
      if (with_plus_ && !std::signbit(value)) text.insert(0, "+");
      if (right_ == 0) text.insert(text.find('e'), ".");
      // "e+16" becomes "e+016" where another has three digits.
      const size_t sign = text.find('e') + 1;
      text.insert(sign + 1, exponent_ - (text.size() - sign), '0');
      return text;
    }
    const Digits parts = digits(element);
    std::string text = std::string(left_ - parts.left.size(), ' ') + parts.left + '.' + parts.right;
    text.append(right_ - parts.right.size(), ' ');
    return text;
  }

  double largest_ = 0, smallest_ = 0;
  bool with_plus_ = false, scientific_ = false;
  size_t left_ = 0, right_ = 0, exponent_ = 0, width_ = 0;
};

// The shortest digits that round-trip, as Python writes the parts of a complex number.
std::string short_part(const ArrayRef& part) {
  char text[400];
  const double value = Style::value_of(part);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double most = part.dtype == DType::f64 ? 1e16 : largest_plain(part.dtype);
  const double magnitude = std::fabs(value);
  const bool scientific = value != 0 && (magnitude >= most || magnitude < 1e-4);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const char* const end =
      part.dtype == DType::f32
          ? std::to_chars(text, text + sizeof(text), static_cast<float>(value), format).ptr
          : std::to_chars(text, text + sizeof(text), value, format).ptr;
  return {static_cast<const char*>(text), end};
}

std::string complex_scalar(const ArrayRef& element) {
  const ArrayRef re = parts_of(element, 0), im = parts_of(element, 1);
  const std::string side = short_part(im) + "j";
  const double up = Style::value_of(re);
  if (up == 0 && !std::signbit(up)) return side;
  return cat("(", short_part(re), side[0] == '-' ? "" : "+", side, ")");
}

class Writer {
 public:
  Writer(const ArrayRef& array, ArrayTextStyle wanted)
      : array_(array),
        wanted_(wanted),
        elide_(array.size() > kElideAbove),
        style_(shown(0)),
        side_(is_complex(array.dtype) ? shown(1) : std::vector<ArrayRef>(), true) {}

  std::string text() {
    if (array_.size() == 0) return "[]";
    return array_.rank() == 0 ? scalar() : list(array_, wanted_.indent + 1);
  }

 private:
  // A scalar: the shortest digits that round-trip, with an exponent if it is large for its dtype or
  // below 1e-4.
  std::string scalar() const {
    if (is_complex(array_.dtype)) return complex_scalar(array_);
    const double value = Style::value_of(array_);
    if (!is_float(array_.dtype) || !std::isfinite(value)) return style_.padded(array_);
    const double magnitude = std::fabs(value);
    const double most = array_.dtype == DType::f64 ? 1e16 : largest_plain(array_.dtype);
    const bool scientific = value != 0 && (magnitude >= most || magnitude < 1e-4);
    const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
    char text[400];
    char* end =
        array_.dtype == DType::f32
            ? std::to_chars(text, text + sizeof(text), static_cast<float>(value), format).ptr
            : std::to_chars(text, text + sizeof(text), shortest_of(value, array_.dtype), format)
                  .ptr;
    std::string written(text, end);
    if (written.find_first_of(".e") == std::string::npos) written += ".0";
    return written;
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

  // The elements that are shown; of complex ones, one of the parts.
  std::vector<ArrayRef> shown(int part) const {
    std::vector<ArrayRef> list;
    collect(is_complex(array_.dtype) ? parts_of(array_, part) : array_, list);
    return list;
  }

  std::string padded(const ArrayRef& element) const {
    if (!is_complex(array_.dtype)) return style_.padded(element);
    std::string side = side_.padded(parts_of(element, 1));
    // Before the spaces at the end.
    side.insert(side.find_last_not_of(' ') + 1, "j");
    return style_.padded(parts_of(element, 0)) + side;
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
      const std::string word = i < 0 ? "..." : padded(item(array, i));
      if (!first) text += wanted_.separator;
      if (!first && column + wanted_.separator.size() + 1 + word.size() + 1 > kLineWidth) {
        while (text.back() == ' ') text.pop_back();
        text += '\n' + std::string(indent, ' ');
        column = indent;
      } else if (!first) {
        text += ' ';
        column += wanted_.separator.size() + 1;
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
    const std::string gap = std::string(wanted_.separator) +
                            std::string(static_cast<size_t>(array.rank()) - 1, '\n') +
                            std::string(indent, ' ');
    for (const int64_t i : picked(array.shape[0])) {
      if (!first) text += gap;
      text += i < 0 ? "..." : list(item(array, i), indent + 1);
      first = false;
    }
    return text + "]";
  }

  const ArrayRef& array_;
  ArrayTextStyle wanted_;
  bool elide_;
  Style style_;
  Style side_;  // Of imaginary parts.
};

}  // namespace

std::string array_text(const ArrayRef& array, ArrayTextStyle style) {
  return Writer(array, style).text();
}

}  // namespace tidemark
