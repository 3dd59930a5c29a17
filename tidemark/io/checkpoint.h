// Checkpoints: the state of a training run in one safetensors file.
//
//   td::io::Checkpoint checkpoint{{"model", model}, {"optimizer", optimizer}, {"step", &step}};
//   checkpoint.save("last.safetensors");
//   checkpoint.load("last.safetensors");
//
// Variables are found in any struct and named by its fields (structure/variable_walk.h):
// "model/blocks/0/up/kernel". Objects that are not handles are passed by address: a number, a
// Tensor, a vector of numbers, a struct of these. A dataset is saved as its position. The state of
// the global random generator is saved and loaded too.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/api/create.h"
#include "tidemark/api/variable_walk.h"

namespace tidemark::io {

struct SaveOptions {
  bool random = true;                                // The global random generator, as "random".
  std::map<std::string, std::string> metadata = {};  // For readers of the file; `load` ignores it.
};

struct RestoreOptions {
  // Restores items whose names are in both, and leaves the others unchanged. Types must match.
  bool partial = false;
  // Maps names in the file to names here: {{"model/encoder", "model/backbone"}}. A key is a name or
  // a prefix up to a slash; the longest match applies.
  std::map<std::string, std::string> rename = {};
  bool random = true;  // Also restores the global random generator, if the file has its state.
};

// The result of `load`.
struct RestoreReport {
  std::vector<std::string> loaded = {};
  std::vector<std::string> missing = {};     // Names that are not in the file.
  std::vector<std::string> unexpected = {};  // Names that are only in the file.
};

namespace detail {

// Installs a value that was prepared beforehand, such that installing cannot fail. For users'
// types, whose assignment may fail, it can also be undone.
struct CheckpointChange {
  std::function<void()> put = {};
  std::function<void()> undo = {};
};

// One tensor of a checkpoint: a Variable, or something that is read and written as a tensor.
struct CheckpointItem {
  std::string name = {};
  DType dtype = DType::f32;
  std::optional<Shape> shape = {};  // None: any shape.
  // A Variable; or how to read a tensor, and how to install one.
  std::optional<Variable> variable = {};
  std::function<Tensor()> get = {};
  std::function<CheckpointChange(const Tensor&)> prepare = {};
};

// The items of one entry; a Variable that is reached twice is listed once, under its first name.
class CheckpointItems {
 public:
  void add(std::string name, const Variable& variable);
  void add(std::string name, Tensor& tensor);
  template <Number T>
  void add(std::string name, T& number) {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double,
                                    std::conditional_t<std::is_same_v<T, bool>, bool, int64_t>>;
    add_place(
        std::move(name), dtype_of<Wide>, Shape{},
        [&number] { return constant(std::vector<Wide>{static_cast<Wide>(number)}, Shape{}); },
        [&number](const Tensor& value) {
          return CheckpointChange{[&number, next = value.item<T>()] { number = next; }};
        });
  }
  template <Number T>
    requires(!std::same_as<T, bool>)
  void add(std::string name, std::vector<T>& numbers) {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
    add_place(
        std::move(name), dtype_of<Wide>, {},
        [&numbers] { return constant(std::vector<Wide>(numbers.begin(), numbers.end())); },
        [&numbers](const Tensor& value) {
          const auto next = std::make_shared<std::vector<T>>(value.to_vector<T>());
          return CheckpointChange{[&numbers, next] { numbers.swap(*next); }};
        });
  }
  void add_place(std::string name, DType dtype, std::optional<Shape> shape,
                 std::function<Tensor()> get,
                 std::function<CheckpointChange(const Tensor&)> prepare);

  const std::vector<CheckpointItem>& list() const { return items_; }

 private:
  std::vector<CheckpointItem> items_;
  tidemark::detail::VariablesOnce once_;
};

std::string joined(const std::string& name, const std::string& path);

// Adds the Variables of a handle.
template <class T>
void add_variables(CheckpointItems& items, const std::string& name, const T& value) {
  tidemark::detail::see_variables(
      value, [&](const tidemark::detail::VariablePath& path, const Variable& variable) {
        items.add(joined(name, path.text()), variable);
      });
}

// Adds everything at an address, including numbers and tensors.
template <class T>
void add_places(CheckpointItems& items, const std::string& name, T& part) {
  if constexpr (std::is_const_v<T> || std::is_same_v<T, Variable> ||
                tidemark::detail::WalksItself<T>) {
    add_variables(items, name, part);
  } else if constexpr (requires { items.add(name, part); }) {
    items.add(name, part);
  } else if constexpr (tidemark::detail::is_tuple<T>) {
    int64_t number = 0;
    std::apply(
        [&](auto&... parts) {
          (add_places(items, joined(name, std::to_string(number++)), parts), ...);
        },
        part);
  } else if constexpr (tidemark::detail::is_list<T>) {
    int64_t number = 0;
    for (auto& each : part) add_places(items, joined(name, std::to_string(number++)), each);
  } else if constexpr (tidemark::detail::is_map<T>) {
    for (auto& [key, each] : part) add_places(items, joined(name, key), each);
  } else if constexpr (tidemark::detail::HasFields<T>) {
    tidemark::detail::for_each_field(part, [&](auto& field, std::string_view field_name) {
      add_places(items, joined(name, std::string(field_name)), field);
    });
  } else {
    add_variables(items, name, part);
  }
}

// Objects with a position that can be saved and restored, such as a dataset.
template <class T>
concept HasPosition = requires(const T& x) {
  x.restore(x.position());
  requires tidemark::detail::HasFields<std::remove_cvref_t<decltype(x.position())>>;
};
template <class T>
void add_position(CheckpointItems& items, const std::string& name, const T& value) {
  using Position = std::remove_cvref_t<decltype(value.position())>;
  // All fields in one tensor, so that they are set together.
  const auto get = [value] {
    std::vector<int64_t> numbers;
    const Position position = value.position();
    tidemark::detail::for_each_field(position, [&](const auto& field, std::string_view) {
      numbers.push_back(static_cast<int64_t>(field));
    });
    return constant(numbers);
  };
  const auto prepare = [value](const Tensor& tensor) {
    const Position before = value.position();
    Position position = before;
    const std::vector<int64_t> numbers = tensor.to_vector<int64_t>();
    size_t next = 0;
    tidemark::detail::for_each_field(position, [&](auto& field, std::string_view) {
      field = static_cast<std::remove_cvref_t<decltype(field)>>(numbers[next++]);
    });
    return CheckpointChange{[value, position] { value.restore(position); },
                            [value, before] { value.restore(before); }};
  };
  items.add_place(name, DType::i64, get().shape(), get, prepare);
}

// Objects that list their Variables by name, as models do.
struct NamedModel {
  NamedVariables variables = {};
  void tidemark_walk(const tidemark::detail::VariablePath& path,
                     const tidemark::detail::SeeVariable& see) const {
    for (const auto& [name, variable] : variables) see(path.field(name), variable);
  }
};
// Objects that declare Variables for those of a model, such as an optimizer, whose state does not
// exist before its first update unless it is requested.
template <class T>
concept BuildsForAModel = requires(const T& x, const NamedModel& model) { x.build(model); };
// Objects that can undo such declarations.
template <class T>
concept TakesBuildBack = requires(const T& x) { x.take_back_build(x.built()); };

}  // namespace detail

class CheckpointEntry {
 public:
  // A handle, or a struct of handles, is copied; the copy refers to the same Variables.
  template <class T>
  CheckpointEntry(std::string name, const T& value) : name_(std::move(name)) {
    static_assert(!std::is_arithmetic_v<T> && !std::is_same_v<T, Tensor>,
                  "a number or a Tensor is put back where it came from: give its address, "
                  "{\"step\", &step}");
    if constexpr (detail::HasPosition<T>) {
      list_ = [value](detail::CheckpointItems& items, const std::string& name) {
        detail::add_position(items, name, value);
      };
    } else {
      list_ = [value](detail::CheckpointItems& items, const std::string& name) {
        detail::add_variables(items, name, value);
      };
    }
    if constexpr (detail::BuildsForAModel<T>)
      build_ = [value](const detail::NamedModel& model) { value.build(model); };
    if constexpr (detail::TakesBuildBack<T>) {
      build_undo_ = [value]() -> std::function<void()> {
        return [value, before = value.built()] { value.take_back_build(before); };
      };
    }
  }
  // The object at the address is read at each save and written at each load. It must outlive them.
  template <class T>
  CheckpointEntry(std::string name, T* place)
      : name_(std::move(name)),
        list_([place](detail::CheckpointItems& items, const std::string& n) {
          detail::add_places(items, n, *place);
        }) {}

  // For objects that C++ cannot look into, such as those of another language: `list` adds what is
  // saved of them under the entry's name.
  using List = std::function<void(detail::CheckpointItems& items, const std::string& name)>;
  static CheckpointEntry listed_by(std::string name, List list) {
    return CheckpointEntry(std::move(name), std::move(list), Listed());
  }

  const std::string& name() const { return name_; }
  void list(detail::CheckpointItems& items) const { list_(items, name_); }
  // Null if the entry declares nothing for others.
  const std::function<void(const detail::NamedModel&)>& build() const { return build_; }
  // A function that undoes later declarations; null if they cannot be undone.
  std::function<void()> build_undo() const { return build_undo_ ? build_undo_() : nullptr; }

 private:
  struct Listed {};
  CheckpointEntry(std::string name, List list, Listed)
      : name_(std::move(name)), list_(std::move(list)) {}

  std::string name_;
  List list_;
  std::function<void(const detail::NamedModel&)> build_;
  std::function<std::function<void()>()> build_undo_;
};

class Checkpoint {
 public:
  Checkpoint(std::initializer_list<CheckpointEntry> entries) : entries_(entries) {}
  explicit Checkpoint(std::vector<CheckpointEntry> entries) : entries_(std::move(entries)) {}

  // Writes one Variable after another from its own memory, without a copy. The save is atomic: if
  // it fails or is killed, the file is unchanged. It is a consistent snapshot of all Variables:
  // assignments and compiled steps of other threads meanwhile allocate new memory.
  void save(const std::string& path, const SaveOptions& options = {},
            Source at = Source::here()) const;
  // Assigns all Variables in place and atomically: a load that fails changes nothing. A Variable
  // without a shape takes that of the file.
  RestoreReport load(const std::string& path, const RestoreOptions& options = {},
                     Source at = Source::here()) const;

 private:
  detail::CheckpointItems items() const;

  std::vector<CheckpointEntry> entries_;
};

}  // namespace tidemark::io
