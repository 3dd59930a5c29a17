// The fields of a struct and their names, found at compile time.
//
// A plain aggregate of up to 16 fields needs no declaration. A class with constructors, private
// fields, more fields, a base or a C array writes TIDEMARK_FIELDS(a_, b_) in its public part.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#define TIDEMARK_FIELDS(...)                                       \
  auto tidemark_fields() { return ::std::tie(__VA_ARGS__); }       \
  auto tidemark_fields() const { return ::std::tie(__VA_ARGS__); } \
  void tidemark_fields_are_here() const {}                         \
  static constexpr ::std::string_view tidemark_field_names() { return #__VA_ARGS__; }

namespace tidemark::detail {

inline constexpr int kMostFields = 16;

template <class T>
concept NamesFields = requires(T& x) { x.tidemark_fields(); };
template <class T>
concept Aggregate = std::is_aggregate_v<T> && std::is_class_v<T> && !NamesFields<T>;

// Stands for a value of any type where only the types matter.
struct AnyValue {
  template <class T>
  operator T() const;
};
template <class T, size_t... I>
constexpr bool takes_values(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyValue{})...}; };
}
// Counts down, since `T{value}` may also fail because the second field has no default.
template <class T, int N = kMostFields + 1>
constexpr int field_count() {
  if constexpr (N == 0 || takes_values<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return field_count<T, N - 1>();
}
template <class T>
concept HasFields = NamesFields<T> || (Aggregate<T> && field_count<T>() <= kMostFields);

// A tuple of references to the fields.
template <class T>
  requires HasFields<std::remove_const_t<T>>
constexpr auto fields(T& x) {
  if constexpr (NamesFields<T>) {
    return x.tidemark_fields();
  } else {
    constexpr int n = field_count<std::remove_const_t<T>>();
    // clang-format off
    if constexpr (n == 0) return std::tuple<>();
    else if constexpr (n == 1) { auto& [a] = x; return std::tie(a); }
    else if constexpr (n == 2) { auto& [a, b] = x; return std::tie(a, b); }
    else if constexpr (n == 3) { auto& [a, b, c] = x; return std::tie(a, b, c); }
    else if constexpr (n == 4) { auto& [a, b, c, d] = x; return std::tie(a, b, c, d); }
    else if constexpr (n == 5) { auto& [a, b, c, d, e] = x; return std::tie(a, b, c, d, e); }
    else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = x; return std::tie(a, b, c, d, e, f); }
    else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = x; return std::tie(a, b, c, d, e, f, g); }
    else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = x; return std::tie(a, b, c, d, e, f, g, h); }
    else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = x; return std::tie(a, b, c, d, e, f, g, h, i); }
    else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = x; return std::tie(a, b, c, d, e, f, g, h, i, j); }
    else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
    else if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
    else if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
    else if constexpr (n == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
    else if constexpr (n == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
    else { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
    // clang-format on
  }
}
template <class... T>
std::tuple<T...> without_references(std::tuple<T&...>);
template <class T>
using FieldTypes = decltype(without_references(fields(std::declval<T&>())));

// ---- names --------------------------------------------------------------------------------------
// __PRETTY_FUNCTION__ prints a template argument that is a pointer to a field with the field's
// name. The object need not exist.

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
struct Nowhere {
  T value;
};
template <class T>
extern const Nowhere<T> nowhere;
template <class Field>
struct FieldPointer {
  const Field* field;
};
template <class Field>
FieldPointer(const Field*) -> FieldPointer<Field>;
template <FieldPointer P>
constexpr std::string_view printed() {
  return __PRETTY_FUNCTION__;
}

constexpr bool is_word(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
// The last word before the last brace: "... {&nowhere.value.image}]" is "image".
constexpr std::string_view last_word(std::string_view text) {
  size_t end = text.rfind('}');
  while (end > 0 && !is_word(text[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}
// Number `at` of "a_, b_".
constexpr std::string_view listed(std::string_view names, size_t at) {
  for (size_t i = 0; i < at; ++i) names.remove_prefix(names.find(',') + 1);
  names = names.substr(0, names.find(','));
  while (!is_word(names.front())) names.remove_prefix(1);
  while (!is_word(names.back())) names.remove_suffix(1);
  return names;
}

template <class T, size_t I>
constexpr std::string_view field_name() {
  if constexpr (NamesFields<T>)
    return listed(T::tidemark_field_names(), I);
  else
    return last_word(
        printed<FieldPointer{std::addressof(std::get<I>(fields(nowhere<T>.value)))}>());
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

// Calls f(field, name) for each field.
template <class T, class F>
void for_each_field(T& x, F&& f) {
  auto all = fields(x);
  [&]<size_t... I>(std::index_sequence<I...>) {
    (f(std::get<I>(all), field_name<std::remove_const_t<T>, I>()), ...);
  }(std::make_index_sequence<std::tuple_size_v<decltype(all)>>{});
}

}  // namespace tidemark::detail
