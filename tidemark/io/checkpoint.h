// Checkpoints: the state of a training in one safetensors file.
//
//   td::io::Checkpoint checkpoint{{"model", model}, {"optimizer", optimizer}, {"step", &step}};
//   checkpoint.save("last.safetensors");
//   checkpoint.load("last.safetensors");
//
// Variables are found in any struct and named by its fields (structure/variable_walk.h):
// "model/blocks/0/up/kernel". What is not a handle is given by its address: a number, a Tensor, a
// vector of numbers, a struct of such. A dataset is saved as the position it has. The state of the
// global random generator is saved and loaded too.
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
  std::map<std::string, std::string> metadata = {};  // For the reader; `load` looks at none.
};

struct RestoreOptions {
  // Takes what has the same name in both, and leaves the rest as it is. Types must agree.
  bool partial = false;
  // From names in the file to names here: {{"model/encoder", "model/backbone"}}. A name, or what
  // stands before one of its slashes; the longest that fits is taken.
  std::map<std::string, std::string> rename = {};
  bool random = true;  // Also sets the global random generator, where the file has its state.
};

// What `load` did.
struct Restored {
  std::vector<std::string> loaded = {};
  std::vector<std::string> missing = {};     // Here, and not in the file.
  std::vector<std::string> unexpected = {};  // In the file, and not here.
};

namespace detail {

// What puts a value in its place, made of it beforehand: all that can fail has been done by then.
// Where that cannot be said, as of users' types, it can be undone.
struct CheckpointChange {
  std::function<void()> put = {};
  std::function<void()> undo = {};
};

// One tensor of a checkpoint: a Variable, or something that is read and written as a tensor.
struct CheckpointItem {
  std::string name = {};
  DType dtype = DType::f32;
  std::optional<Shape> shape = {};  // None: any will do.
  // A Variable; or how to read a tensor, and what a tensor would change.
  std::optional<Variable> variable = {};
  std::function<Tensor()> get = {};
  std::function<CheckpointChange(const Tensor&)> prepare = {};
};

// Items under a name; one Variable that is reached twice comes once, under its first name.
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

// All that is in a handle: its Variables.
template <class T>
void add_variables(CheckpointItems& items, const std::string& name, const T& value) {
  tidemark::detail::see_variables(
      value, [&](const tidemark::detail::VariablePath& path, const Variable& variable) {
        items.add(joined(name, path.text()), variable);
      });
}

// All that is at an address, numbers and tensors included.
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

// What can be asked where it is and put there again: a dataset.
template <class T>
concept HasPosition = requires(const T& x) {
  x.restore(x.position());
  requires tidemark::detail::HasFields<std::remove_cvref_t<decltype(x.position())>>;
};
template <class T>
void add_position(CheckpointItems& items, const std::string& name, const T& value) {
  using Position = std::remove_cvref_t<decltype(value.position())>;
  // The fields in one tensor, so that they are set at once.
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

// Variables under names, as a model.
struct NamedModel {
  NamedVariables variables = {};
  void tidemark_walk(const tidemark::detail::VariablePath& path,
                     const tidemark::detail::SeeVariable& see) const {
    for (const auto& [name, variable] : variables) see(path.field(name), variable);
  }
};
// What declares Variables for those of a model: an optimizer, whose state is there before its first
// update only where somebody asks.
template <class T>
concept BuildsForAModel = requires(const T& x, const NamedModel& model) { x.build(model); };
// What can take back what it has declared since it was asked how much there was.
template <class T>
concept TakesBuildBack = requires(const T& x) { x.take_back_build(x.built()); };

}  // namespace detail

class CheckpointEntry {
 public:
  // A handle, or a struct of handles, is copied and means the same Variables.
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
  // What stands at the address, at each save and load. It has to be there then.
  template <class T>
  CheckpointEntry(std::string name, T* place)
      : name_(std::move(name)),
        list_([place](detail::CheckpointItems& items, const std::string& n) {
          detail::add_places(items, n, *place);
        }) {}

  const std::string& name() const { return name_; }
  void list(detail::CheckpointItems& items) const { list_(items, name_); }
  // Null where it declares nothing for others.
  const std::function<void(const detail::NamedModel&)>& build() const { return build_; }
  // What takes back all that is declared from now on; null where nothing can.
  std::function<void()> build_undo() const { return build_undo_ ? build_undo_() : nullptr; }

 private:
  std::string name_;
  std::function<void(detail::CheckpointItems&, const std::string&)> list_;
  std::function<void(const detail::NamedModel&)> build_;
  std::function<std::function<void()>()> build_undo_;
};

class Checkpoint {
 public:
  Checkpoint(std::initializer_list<CheckpointEntry> entries) : entries_(entries) {}
  explicit Checkpoint(std::vector<CheckpointEntry> entries) : entries_(std::move(entries)) {}

  // One Variable after another, from its own bytes: takes none. Whole or not at all: a save that
  // fails, or is killed, leaves the file as it was. All Variables are as they were at one moment,
  // also where other threads assign or run compiled steps meanwhile; those then take new bytes.
  void save(const std::string& path, const SaveOptions& options = {},
            Source at = Source::here()) const;
  // Assigns in place, all or nothing and at one moment: a load that fails has changed nothing. A
  // Variable that has no shape yet takes that of the file.
  Restored load(const std::string& path, const RestoreOptions& options = {},
                Source at = Source::here()) const;

 private:
  detail::CheckpointItems items() const;

  std::vector<CheckpointEntry> entries_;
};

}  // namespace tidemark::io
