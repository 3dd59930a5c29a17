// Finds the Variables in a model, with their paths.
//
// They are found by type, at compile time: in structs (fields.h), tuples, pairs, arrays, vectors,
// optionals, variants, maps and pointers, however deep. A class with private fields writes
// TIDEMARK_FIELDS; one that may hold layers and does not is refused. Variables captured by a
// closure or a std::function are not found: use nn::Lambda(f, layers...).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "tidemark/structure/static.h"
#include "tidemark/tensor/variable.h"

namespace tidemark {

template <class Signature>
class Function;

using NamedVariables = std::vector<std::pair<std::string, Variable>>;

namespace detail {

// The path to a Variable in a model, a linked list on the stack of the traversal: its text is built
// only on request.
class VariablePath {
 public:
  constexpr VariablePath() = default;
  VariablePath field(std::string_view name) const { return VariablePath(this, name, -1); }
  VariablePath item(int64_t number) const { return VariablePath(this, {}, number); }

  // "blocks/0/up/kernel". A field `kernel_` is called "kernel".
  std::string text() const;

 private:
  VariablePath(const VariablePath* parent, std::string_view name, int64_t number)
      : parent_(parent), name_(name), number_(number) {}
  void add_to(std::string& text) const;

  const VariablePath* parent_ = nullptr;
  std::string_view name_;
  int64_t number_ = -1;
};

// Visits a Variable, or replaces it if the model is not const.
using SeeVariable = std::function<void(const VariablePath& path, const Variable& variable)>;
using ReplaceVariable = std::function<void(const VariablePath& path, Variable& variable)>;

// A type-erased class traverses its contents itself. It has both of
//   void tidemark_walk(const detail::VariablePath&, const detail::SeeVariable&) const;
//   void tidemark_walk(const detail::VariablePath&, const detail::ReplaceVariable&);
template <class T>
concept WalksItself = requires(const T& x, const VariablePath& path, const SeeVariable& see) {
  x.tidemark_walk(path, see);
};
template <class T>
inline constexpr bool is_shared = false;
template <class T>
inline constexpr bool is_shared<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool is_unique = false;
template <class T, class D>
inline constexpr bool is_unique<std::unique_ptr<T, D>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
// Type-erased functions.
template <class T>
inline constexpr bool is_function = false;
template <class R, class... A>
inline constexpr bool is_function<std::function<R(A...)>> = true;
template <class Signature>
inline constexpr bool is_function<Function<Signature>> = true;

// Whether a class is a closure, which cannot name its fields. Compilers print it as
// "f()::<lambda(int)>" or "(lambda at f.cc:3:7)".
template <class T>
constexpr bool is_closure() {
  std::string_view printed = __PRETTY_FUNCTION__;
  printed.remove_suffix(1);  // "... T = name]"
  if (printed.ends_with(')')) return printed.find("(lambda at ") != printed.npos;
  if (!printed.ends_with('>')) return false;
  size_t begin = printed.size();
  for (int depth = 0; begin > 0;) {
    const char c = printed[--begin];
    depth += c == '>' ? 1 : c == '<' ? -1 : 0;
    if (depth == 0) break;
  }
  return printed.substr(begin).starts_with("<lambda");
}

// Whether a class without visible fields may hold layers: it can be called with tensors, as layers
// can, and it is not trivially copyable, like Variables.
template <class T>
concept HidesLayers =
    std::is_class_v<T> && !std::is_trivially_copyable_v<T> && !is_function<T> && !is_closure<T>() &&
    (std::is_invocable_v<T&, const Tensor&> ||
     std::is_invocable_v<T&, const Tensor&, const Tensor&> ||
     std::is_invocable_v<T&, const Tensor&, const Tensor&, const Tensor&>);
// The class that wrote a class' TIDEMARK_FIELDS: itself or a base.
template <class C>
C names_fields_of(void (C::*)() const);
template <class T>
concept HidesOwnFields = NamesFields<T> && requires {
  requires sizeof(T) > sizeof(decltype(names_fields_of(&T::tidemark_fields_are_here)));
};
// Lists of numbers or text are skipped.
template <class T>
inline constexpr bool may_hold_variables = std::is_class_v<T> && !std::is_same_v<T, std::string>;

// Throws UserError: the copy of a model would share its const parts.
[[noreturn]] void refuse_to_replace(const VariablePath& path);

template <class T, class F>
void walk_variables(T& part, const VariablePath& path, const F& f);

template <class T, class F>
void walk_pointee(T& pointer, const VariablePath& path, const F& f) {
  using Pointee = std::remove_const_t<typename T::element_type>;
  if (pointer == nullptr) return;
  if constexpr (std::is_same_v<F, SeeVariable>) {
    walk_variables(std::as_const(*pointer), path, f);
  } else {
    // The replacement must not be visible to other owners.
    auto copy = std::make_shared<Pointee>(*pointer);
    walk_variables(*copy, path, f);
    pointer = std::move(copy);
  }
}

// Calls f(path, variable) for each Variable in `part`, in the order of declaration. F is
// SeeVariable if `part` is const, else ReplaceVariable.
template <class T, class F>
void walk_variables(T& part, const VariablePath& path, const F& f) {
  using S = std::remove_const_t<T>;
  [[maybe_unused]] int64_t number = 0;
  if constexpr (std::is_same_v<T, const Variable> && std::is_same_v<F, ReplaceVariable>) {
    refuse_to_replace(path);
  } else if constexpr (std::is_same_v<S, Variable>) {
    f(path, part);
  } else if constexpr (WalksItself<S>) {
    part.tidemark_walk(path, f);
  } else if constexpr (is_tuple<S>) {
    std::apply([&](auto&... items) { (walk_variables(items, path.item(number++), f), ...); }, part);
  } else if constexpr (is_list<S>) {
    if constexpr (may_hold_variables<typename S::value_type>)
      for (auto& item : part) walk_variables(item, path.item(number++), f);
  } else if constexpr (is_optional<S>) {
    if (part) walk_variables(*part, path, f);
  } else if constexpr (is_map<S>) {
    for (auto& [name, item] : part) walk_variables(item, path.field(name), f);
  } else if constexpr (is_shared<S> || (is_unique<S> && std::is_same_v<F, SeeVariable>)) {
    walk_pointee(part, path, f);
  } else if constexpr (is_variant<S>) {
    std::visit([&](auto& held) { walk_variables(held, path, f); }, part);
  } else if constexpr (HasFields<S>) {
    static_assert(!HidesOwnFields<S>,
                  "this class has fields that its base does not name, and its layers would be left "
                  "out: write TIDEMARK_FIELDS(...) with all of them in the class itself");
    for_each_field(part, [&](auto& field, std::string_view name) {
      walk_variables(field, path.field(name), f);
    });
  } else {
    static_assert(!Aggregate<S>,
                  "a struct of more than 16 fields: name them with TIDEMARK_FIELDS(...)");
    static_assert(!HidesLayers<S>,
                  "the layers of this class cannot be found, and would be left out of checkpoints, "
                  "variables, summaries and copies: write TIDEMARK_FIELDS(a_, b_) in its public "
                  "part, or TIDEMARK_FIELDS() where it has none");
  }
}

template <class T>
void see_variables(const T& model, const SeeVariable& see) {
  walk_variables(model, VariablePath(), see);
}

// Collects Variables; one that is reached twice is listed once, under its first name.
class VariablesOnce {
 public:
  // Whether it was not there.
  bool add(const Variable& variable);

 private:
  std::unordered_set<const VariableState*> seen_;
};

// Replaces each Variable by a copy; one that is reached twice gets the same copy.
class VariableClones {
 public:
  explicit VariableClones(Source at) : at_(at) {}
  void replace(Variable& variable);

 private:
  std::unordered_map<const VariableState*, Variable> clones_;
  Source at_;
};

}  // namespace detail
}  // namespace tidemark
