// A text that identifies a model's computation: models that may compute differently have different
// texts.
//
// It consists of the unique numbers of Variables and layers, and of plain values. Values that
// cannot be compared (a closure with captures, a class whose fields are not named) have no
// identity.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include "tidemark/structure/variable_walk.h"

namespace tidemark::detail {

// A unique number.
uint64_t next_identity();

// An identity that a copy shares with the original.
class SharedIdentity {
 public:
  uint64_t identity() const { return identity_; }

 private:
  uint64_t identity_ = next_identity();
};

void add_identity(uint64_t number, std::string& key);
void add_identity(const Variable& variable, std::string& key);

// Appends the identity of a value; false if it has none. Type-erased classes implement `bool
// tidemark_identity(std::string& key) const`.
template <class T>
bool add_identity_of(const T& part, std::string& key) {
  bool all = true;
  const auto add = [&](const auto& item) { all = all && add_identity_of(item, key); };
  if constexpr (std::is_same_v<T, Variable>) {
    add_identity(part, key);
  } else if constexpr (requires { part.tidemark_identity(key); }) {
    return part.tidemark_identity(key);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    const std::string_view text = part;
    add_identity(text.size(), key);
    key += text;
  } else if constexpr (std::is_scalar_v<T>) {
    key.append(reinterpret_cast<const char*>(&part), sizeof(part));
  } else if constexpr (is_tuple<T>) {
    std::apply([&](const auto&... items) { (add(items), ...); }, part);
  } else if constexpr (is_list<T>) {
    add_identity(part.size(), key);
    for (const auto& item : part) add(item);
  } else if constexpr (is_optional<T>) {
    add_identity(part.has_value() ? 1 : 0, key);
    if (part) add(*part);
  } else if constexpr (is_map<T>) {
    add_identity(part.size(), key);
    for (const auto& [name, item] : part) {
      add(name);
      add(item);
    }
  } else if constexpr (is_shared<T> || is_unique<T>) {
    add_identity(part != nullptr ? 1 : 0, key);
    if (part != nullptr) add(*part);
  } else if constexpr (std::is_base_of_v<SharedIdentity, T>) {
    add_identity(part.identity(), key);
    // Its Variables may have been replaced since.
    for_each_field(part, [&](const auto& field, std::string_view) { add(field); });
  } else if constexpr (Aggregate<T> && HasFields<T>) {
    for_each_field(part, [&](const auto& field, std::string_view) { add(field); });
  } else {
    return std::is_empty_v<T>;  // A closure without captures is identified by its type.
  }
  return all;
}

}  // namespace tidemark::detail
