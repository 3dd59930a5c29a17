// td.io: NumPy's files, safetensors and checkpoints.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>

#include "convert.h"
#include "data.h"
#include "errors.h"
#include "holds.h"
#include "model.h"
#include "path.h"
#include "source.h"

namespace tidemark::python {
namespace {

using io::CheckpointEntry;
using io::detail::CheckpointChange;
using io::detail::CheckpointItems;

using Texts = std::map<std::string, std::string>;

std::map<std::string, Tensor> tensors_in(const nb::dict& named, Source at) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, value] : named)
    tensors.emplace(text_from(name, "the name of a tensor", at), tensor_from(value, at));
  return tensors;
}

void put_tensors(nb::handle dict, std::map<std::string, Tensor>& tensors) {
  for (auto& [name, tensor] : tensors)
    dict.attr("__setitem__")(name, nb::steal(wrap(std::move(tensor))));
}

void bind_files(nb::module_& io) {
  io.def(
        "load_npy",
        [](const PathText& path, bool copy) {
          const Source at = calling_line();
          const nb::gil_scoped_release released;
          return io::load_npy(path.text, {.copy = copy}, at);
        },
        nb::arg("path"), nb::kw_only(), nb::arg("copy") = false,
        "The tensor of a .npy file. The file is mapped unless `copy` is true.")
      .def(
          "save_npy",
          [](const PathText& path, nb::handle tensor) {
            const Source at = calling_line();
            const Tensor saved = tensor_from(tensor, at);
            const nb::gil_scoped_release released;
            io::save_npy(path.text, saved, at);
          },
          nb::arg("path"), nb::arg("tensor"),
          "Writes one tensor. If it fails, the file is unchanged.")
      .def(
          "load_npz",
          [](const PathText& path, bool copy) {
            const Source at = calling_line();
            std::map<std::string, Tensor> tensors;
            {
              const nb::gil_scoped_release released;
              tensors = io::load_npz(path.text, {.copy = copy}, at);
            }
            nb::dict named;
            put_tensors(named, tensors);
            return named;
          },
          nb::arg("path"), nb::kw_only(), nb::arg("copy") = false,
          "The tensors of a .npz file by name.")
      .def(
          "save_npz",
          [](const PathText& path, const nb::dict& tensors) {
            const Source at = calling_line();
            const std::map<std::string, Tensor> saved = tensors_in(tensors, at);
            const nb::gil_scoped_release released;
            io::save_npz(path.text, saved, at);
          },
          nb::arg("path"), nb::arg("tensors"),
          "Writes tensors by name, one after another, uncompressed and without a copy.")
      .def(
          "load_safetensors",
          [](const PathText& path, bool copy) {
            const Source at = calling_line();
            io::Safetensors file;
            {
              const nb::gil_scoped_release released;
              file = io::load_safetensors(path.text, {.copy = copy}, at);
            }
            nb::object named = nb::module_::import_("tidemark.io").attr("Safetensors")();
            put_tensors(named, file);
            named.attr("metadata") = nb::cast(file.metadata);
            return named;
          },
          nb::arg("path"), nb::kw_only(), nb::arg("copy") = false,
          "The tensors of a safetensors file by name; the result has the file's `metadata` too.")
      .def(
          "save_safetensors",
          [](const PathText& path, const nb::dict& tensors, const Texts& metadata) {
            const Source at = calling_line();
            const std::map<std::string, Tensor> saved = tensors_in(tensors, at);
            const nb::gil_scoped_release released;
            io::save_safetensors(path.text, saved, {.metadata = metadata}, at);
          },
          nb::arg("path"), nb::arg("tensors"), nb::kw_only(), nb::arg("metadata") = Texts(),
          "Writes tensors by name. If it fails, the file is unchanged.");
}

// ---- checkpoints --------------------------------------------------------------------------------

bool is_number(nb::handle object) {
  return PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr());
}

DType dtype_of_number(nb::handle number) {
  if (PyBool_Check(number.ptr())) return DType::boolean;
  return PyFloat_Check(number.ptr()) ? DType::f64 : DType::i64;
}

Tensor number_as_tensor(nb::handle number) {
  switch (dtype_of_number(number)) {
    case DType::boolean:
      return constant(std::vector<bool>{number.ptr() == Py_True}, Shape{});
    case DType::f64:
      return constant(std::vector<double>{PyFloat_AS_DOUBLE(number.ptr())}, Shape{});
    default:
      return constant(std::vector<int64_t>{nb::cast<int64_t>(number)}, Shape{});
  }
}

nb::object tensor_as_number(const Tensor& tensor) {
  if (tensor.dtype() == DType::boolean) return nb::bool_(tensor.item<bool>());
  if (tensor.dtype() == DType::f64) return nb::float_(tensor.item<double>());
  return nb::int_(tensor.item<int64_t>());
}

// An item of a list or dict, and the value that a load has for it.
struct ItemChange {
  Held container, key;
  bool is_number;
  Tensor value;

  void make() const {
    const nb::object next = is_number ? tensor_as_number(value) : nb::steal(wrap(Tensor(value)));
    if (PyObject_SetItem(container.get().ptr(), key.get().ptr(), next.ptr()) != 0)
      nb::raise_python_error();
  }
};
using ItemChanges = std::shared_ptr<std::vector<ItemChange>>;

// The library asks for values and installs them while it holds locks of Variables, under which
// nothing may wait for the GIL. So a value is read when the items are listed, before any lock, and
// a change is made when the load is over.
class PartListing {
 public:
  PartListing(CheckpointItems& items, ItemChanges changes)
      : items_(items), changes_(std::move(changes)) {}

  // In lists and dicts also numbers and tensors; of everything else the Variables.
  void add(const std::string& name, nb::handle part) {
    if (PyDict_Check(part.ptr()))
      add_items(name, part, part.attr("items")());
    else if (PyList_Check(part.ptr()))
      add_items(name, part, nb::module_::import_("builtins").attr("enumerate")(part));
    else
      see_variables_of(part, detail::VariablePath(),
                       [&](const detail::VariablePath& path, const Variable& variable) {
                         items_.add(io::detail::joined(name, path.text()), variable);
                       });
  }

 private:
  void add_items(const std::string& name, nb::handle container, const nb::object& pairs) {
    for (const nb::handle pair : pairs) {
      const nb::object key = pair[0], value = pair[1];
      const std::string path = io::detail::joined(name, nb::str(key).c_str());
      if (is_number(value) || nb::isinstance<Tensor>(value))
        add_item(path, value, {Held(container), Held(key), is_number(value), {}});
      else
        add(path, value);
    }
  }
  void add_item(const std::string& name, nb::handle value, const ItemChange& place) {
    const Tensor now = place.is_number ? number_as_tensor(value) : nb::cast<Tensor>(value);
    const auto prepare = [place, changes = changes_](const Tensor& loaded) {
      changes->reserve(changes->size() + 1);
      ItemChange change = place;
      change.value = loaded;
      return CheckpointChange{[change, changes] { changes->push_back(change); },
                              [changes] { changes->clear(); }};
    };
    items_.add_place(
        name, now.dtype(), place.is_number ? std::optional(Shape{}) : std::nullopt,
        [now] { return now; }, prepare);
  }

  CheckpointItems& items_;
  ItemChanges changes_;
};

CheckpointEntry entry_of(const std::string& name, nb::handle value, const ItemChanges& changes,
                         Source at) {
  if (is_number(value) || nb::isinstance<Tensor>(value))
    throw UserTypeError(cat("Checkpoint: \"", name, "\" is a ", Py_TYPE(value.ptr())->tp_name,
                            ", which a load could not put back where it came from"),
                        at,
                        cat("keep it in a dict, state = {\"", name,
                            "\": ...}, and give the dict, or keep it in a td.Variable"));
  if (nb::isinstance<nn::Optimizer>(value))
    return CheckpointEntry(name, nb::cast<const nn::Optimizer&>(value));
  if (nb::isinstance<Dataset>(value)) return CheckpointEntry(name, nb::cast<const Dataset&>(value));
  return CheckpointEntry::listed_by(
      name, [held = Held(value), changes](CheckpointItems& items, const std::string& prefix) {
        const nb::gil_scoped_acquire gil;
        PartListing(items, changes).add(prefix, held.get());
      });
}

class CheckpointInPython {
 public:
  explicit CheckpointInPython(const nb::dict& parts) : parts_(parts) {
    (void)entries({}, calling_line());  // Refuses what cannot be saved.
  }

  void save(const PathText& path, bool random, const Texts& metadata) const {
    const Source at = calling_line();
    const io::Checkpoint checkpoint(entries({}, at));
    const nb::gil_scoped_release released;
    checkpoint.save(path.text, {.random = random, .metadata = metadata}, at);
  }
  io::RestoreReport load(const PathText& path, bool partial, const Texts& rename,
                         bool random) const {
    const Source at = calling_line();
    const auto changes = std::make_shared<std::vector<ItemChange>>();
    const io::Checkpoint checkpoint(entries(changes, at));
    io::RestoreReport report;
    {
      const nb::gil_scoped_release released;
      report =
          checkpoint.load(path.text, {.partial = partial, .rename = rename, .random = random}, at);
    }
    for (const ItemChange& change : *changes) change.make();
    return report;
  }

  nb::dict& parts() { return parts_; }

 private:
  std::vector<CheckpointEntry> entries(const ItemChanges& changes, Source at) const {
    std::vector<CheckpointEntry> list;
    for (const auto& [name, value] : parts_)
      list.push_back(entry_of(text_from(name, "the name of an entry", at), value, changes, at));
    return list;
  }
  nb::dict parts_;
};

int traverse_checkpoint(PyObject* self, visitproc visit, void* arg) {
  if (const int stopped = traverse_instance(self, visit, arg)) return stopped;
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<CheckpointInPython>(self)->parts().ptr());
  return 0;
}
int clear_checkpoint(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<CheckpointInPython>(self)->parts() = nb::dict();
  return 0;
}
PyType_Slot checkpoint_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_checkpoint)},
                                  {Py_tp_clear, reinterpret_cast<void*>(clear_checkpoint)},
                                  {0, nullptr}};

// ---- weights of other programs ------------------------------------------------------------------

io::MapHow how_from(nb::handle given, Source at) {
  io::MapHow how;
  if (!nb::isinstance<nb::dict>(given))
    throw UserTypeError(cat("io.load: a row of `map` ends with a ", Py_TYPE(given.ptr())->tp_name),
                        at, "write its options as a dict: {\"transpose\": True}");
  for (const auto& [key, value] : nb::borrow<nb::dict>(given)) {
    const std::string name = text_from(key, "an option of a row of `map`", at);
    if (name == "transpose")
      how.transpose = boolean_from(value, "transpose", at);
    else if (name == "split_axis")
      how.split_axis = integer_from(value, "split_axis", at);
    else
      throw UserTypeError(cat("io.load: a row of `map` has no option \"", name, "\""), at,
                          "there are transpose and split_axis; a function can do anything else");
  }
  return how;
}

// "name", ("from", "to"), ("from", ["a", "b"], {"transpose": True}).
io::MapRow row_from(nb::handle row, Source at) {
  if (nb::isinstance<nb::str>(row)) return io::MapRow(text_from(row, "a name", at));
  const bool is_row = nb::isinstance<nb::tuple>(row) || nb::isinstance<nb::list>(row);
  const size_t count = is_row ? nb::len(row) : 0;
  if (count < 2 || count > 3)
    throw UserTypeError(cat("io.load: ", nb::repr(row).c_str(), " is no row of `map`"), at,
                        "write (\"stored\", \"own\"), (\"stored\", [\"a\", \"b\"], {\"transpose\": "
                        "True}), or a name "
                        "alone for what is left out");
  std::vector<std::string> to;
  if (nb::isinstance<nb::str>(row[1]))
    to.push_back(text_from(row[1], "a name", at));
  else
    for (const nb::handle name : row[1]) to.push_back(text_from(name, "a name", at));
  const io::MapHow how = count == 3 ? how_from(row[2], at) : io::MapHow{};
  return io::MapRow(text_from(row[0], "a name", at), std::move(to), how);
}

io::WeightMap map_from(nb::handle map, Source at) {
  if (map.is_none()) return {};
  if (!PyCallable_Check(map.ptr())) {
    if (nb::isinstance<nb::dict>(map) || nb::isinstance<nb::str>(map) ||
        !PySequence_Check(map.ptr()))
      throw UserTypeError(cat("io.load: `map` is a ", Py_TYPE(map.ptr())->tp_name), at,
                          "give a list of rows, [(\"stored\", \"own\"), ...], or a function");
    std::vector<io::MapRow> rows;
    for (const nb::handle row : map) rows.push_back(row_from(row, at));
    return rows;
  }
  return [held = Held(map), at](const std::string& name, const Tensor& tensor) {
    const nb::gil_scoped_acquire gil;
    const nb::object given = held.get()(name, nb::steal(wrap(Tensor(tensor))));
    io::MappedTensors mapped;
    if (given.is_none()) return mapped;
    if (!nb::isinstance<nb::dict>(given))
      throw UserTypeError(
          cat("io.load: `map` returned a ", Py_TYPE(given.ptr())->tp_name, " for \"", name, "\""),
          at, "return a dict of names and tensors, or None to leave it out");
    for (const auto& [to, value] : nb::borrow<nb::dict>(given))
      mapped.emplace_back(text_from(to, "a name", at), tensor_from(value, at));
    return mapped;
  };
}

io::RestoreReport load_weights(const PathText& path, nb::handle model, nb::handle map,
                               bool partial) {
  const Source at = calling_line();
  const NamedVariables variables = named_variables_of(model);
  const io::WeightsOptions options{.map = map_from(map, at), .partial = partial};
  const nb::gil_scoped_release released;
  return io::load_variables(path.text, variables, options, at);
}

}  // namespace

void bind_io(nb::module_& module) {
  nb::module_ io = module.def_submodule("io", "Files of NumPy, safetensors, and checkpoints.");
  bind_files(io);
  nb::class_<io::RestoreReport>(io, "RestoreReport", "What a load found in the file.")
      .def_ro("loaded", &io::RestoreReport::loaded)
      .def_ro("missing", &io::RestoreReport::missing, "Names that are not in the file.")
      .def_ro("unexpected", &io::RestoreReport::unexpected, "Names that are only in the file.")
      .def("__repr__", [](nb::handle report) {
        std::string text =
            cat("RestoreReport(", nb::len(nb::object(report.attr("loaded"))), " loaded");
        for (const char* name : {"missing", "unexpected"}) {
          const nb::object names = report.attr(name);
          if (nb::len(names) != 0) text += cat(", ", name, "=", nb::repr(names).c_str());
        }
        return text + ")";
      });
  io.def("load", load_weights, nb::arg("path"), nb::arg("model"), nb::kw_only(),
         nb::arg("map") = nb::none(), nb::arg("partial") = false,
         "Assigns a model's Variables from a safetensors file of another program. `map` is a list "
         "of rows, (\"h.*.fc.weight\", \"blocks/*/up/kernel\", {\"transpose\": True}), with "
         "several names for a tensor that is split along \"split_axis\", or a name alone for one "
         "that is left out; or a function of a name and its tensor that returns a dict.");
  nb::class_<CheckpointInPython>(io, "_Checkpoint", nb::type_slots(checkpoint_slots))
      .def(nb::init<const nb::dict&>())
      .def("save", &CheckpointInPython::save, nb::arg("path"), nb::kw_only(),
           nb::arg("random") = true, nb::arg("metadata") = Texts(),
           "Writes one Variable after another from its own memory. If it fails, the file is "
           "unchanged.")
      .def("load", &CheckpointInPython::load, nb::arg("path"), nb::kw_only(),
           nb::arg("partial") = false, nb::arg("rename") = Texts(), nb::arg("random") = true,
           "Assigns all Variables in place. A load that fails changes nothing.");
}

}  // namespace tidemark::python
