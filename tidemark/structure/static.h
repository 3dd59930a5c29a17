// A value that is part of a function's key: one trace for each value, in which `if` and `for` work.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/structure/fields.h"
#include "tidemark/types/dtype.h"
#include "tidemark/types/shape.h"

namespace tidemark {
namespace detail {

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class T, size_t N>
inline constexpr bool is_tuple<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;

// ---- what a key says of a value -----------------------------------------------------------------
// Readable, and different for different values of one type.

std::string key_text(std::string_view text);  // In quotes, one line.
std::string key_text(Dim size);
std::string key_text(const Shape& shape);
std::string key_text(DType dtype);
std::string float_key_text(long double value, int digits);

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, Dim> ||
                std::same_as<T, Shape> || std::convertible_to<const T&, std::string_view>;

template <class T>
constexpr bool makes_key();
template <class Tuple>
constexpr bool all_make_keys() {
  return []<size_t... I>(std::index_sequence<I...>) {
    return (makes_key<std::remove_cvref_t<std::tuple_element_t<I, Tuple>>>() && ...);
  }(std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}
template <class T>
constexpr bool makes_key() {
  if constexpr (Plain<T>)
    return true;
  else if constexpr (is_list<T> || is_optional<T>)
    return makes_key<typename T::value_type>();
  else if constexpr (is_tuple<T>)
    return all_make_keys<T>();
  else if constexpr (HasFields<T>)
    return all_make_keys<FieldTypes<T>>();
  else
    return false;
}

template <class T>
std::string key_text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    return float_key_text(value, std::numeric_limits<T>::max_digits10);
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
    return std::to_string(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (Plain<T>) {
    return key_text(value);
  } else if constexpr (is_optional<T>) {
    return value ? "(" + key_text_of(*value) + ")" : "none";
  } else {
    std::string text = "{";
    const auto add = [&text](const auto& part) { text += key_text_of(part) + ", "; };
    if constexpr (is_list<T>)
      for (const auto& part : value) add(part);
    else if constexpr (is_tuple<T>)
      std::apply([&](const auto&... parts) { (add(parts), ...); }, value);
    else
      std::apply([&](const auto&... parts) { (add(parts), ...); }, fields(value));
    return text + "}";
  }
}

// Whether two values have the same text. May be false for NaNs.
template <class T>
bool has_same_key(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a == b && std::signbit(a) == std::signbit(b);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T> || Plain<T>) {
    return a == b;
  } else if constexpr (is_optional<T>) {
    return a.has_value() == b.has_value() && (!a || has_same_key(*a, *b));
  } else if constexpr (is_list<T>) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return has_same_key(x, y); });
  } else if constexpr (is_tuple<T>) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return (has_same_key(std::get<I>(a), std::get<I>(b)) && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return has_same_key(fields(a), fields(b));
  }
}

}  // namespace detail

template <class T>
class Static {
  static_assert(
      detail::makes_key<T>(),
      "Static<T> is part of a function's key, so T must be a number, an enum, a string, a "
      "Shape, a DType, or a vector, array, tuple, pair, optional or struct of them");

 public:
  Static(T value) : value_(std::move(value)) {}
  Static(const char* value)
    requires std::same_as<T, std::string>
      : value_(value) {}
  operator const T&() const { return value_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_;
};

}  // namespace tidemark
