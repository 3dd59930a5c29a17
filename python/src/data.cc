// td.data: datasets. Every call into a pipeline is made without the GIL, because its threads take
// the GIL for the user's functions.
#include "data.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "budget.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "holds.h"
#include "path.h"
#include "source.h"
#include "tidemark/data/files.h"
#include "tidemark/data/images.h"

namespace tidemark::python {
namespace {

using data::Element;
using data::FormPtr;
using nb::arg;

// ---- structures ---------------------------------------------------------------------------------

struct TreeForm : data::Form {
  TreeForm(std::string key, SharedTree tree) : Form(std::move(key)), tree(std::move(tree)) {}
  SharedTree tree;
};

// Numbers, tensors and arrays are tensors of an element; anything else is part of its structure.
Atom classify(PyObject* atom) {
  if (is_value(atom) || PyObject_CheckBuffer(atom) != 0) return Atom::leaf;
  if (atom == Py_None || PyUnicode_Check(atom) || PyBytes_Check(atom)) return Atom::constant;
  return PyObject_HasAttrString(atom, "__array__") != 0 ? Atom::leaf : Atom::object;
}

std::vector<Tensor> tensors_of(const std::vector<nb::object>& leaves, Source at) {
  std::vector<Tensor> tensors;
  tensors.reserve(leaves.size());
  for (const nb::object& leaf : leaves) tensors.push_back(tensor_from(leaf, at));
  return tensors;
}

// Packs the results of one function of the user. Most have the structure of the one before, whose
// form they then share.
class Packer {
 public:
  explicit Packer(Source at) : at_(at) {}
  Element pack(nb::handle object) {
    FlatTree flat = flatten(object, classify);
    return {tensors_of(flat.leaves, at_), form_of(std::move(flat.tree))};
  }

 private:
  FormPtr form_of(SharedTree tree) {
    if (last_ == nullptr || !last_->tree->is_like(*tree)) {
      std::string key = tree->key("element");
      last_ = std::make_shared<TreeForm>(std::move(key), std::move(tree));
    }
    return last_;
  }
  Source at_;
  std::shared_ptr<const TreeForm> last_;  // Read and written under the GIL.
};

// The element as the user sees it. Moves its tensors.
nb::object unpack(Element element, const SharedTree& known) {
  const Tree* const tree = element.form != nullptr
                               ? static_cast<const TreeForm&>(*element.form).tree.get()
                               : known.get();
  std::vector<nb::object> leaves;
  leaves.reserve(element.tensors.size());
  for (Tensor& tensor : element.tensors) leaves.push_back(nb::steal(wrap(std::move(tensor))));
  return tree == nullptr ? leaves.at(0) : tree->filled(leaves);
}

SharedTree tuple_of(const std::vector<SharedTree>& parts) {
  Tree whole;
  whole.nodes.push_back(
      {.kind = TreeNode::Kind::tuple, .arity = static_cast<int32_t>(parts.size())});
  for (const SharedTree& part : parts) {
    if (part == nullptr)
      whole.nodes.emplace_back();
    else
      whole.nodes.insert(whole.nodes.end(), part->nodes.begin(), part->nodes.end());
    whole.leaves += part == nullptr ? 1 : part->leaves;
  }
  return share(std::move(whole));
}

// ---- the user's functions -----------------------------------------------------------------------

// What a stage holds, for the collector: the stage's copies all share one Held, and every owner of
// the stage refers to what this returns. `inputs` are those of the stages before.
Held holding(std::shared_ptr<Holds> holds, const std::vector<Held>& inputs) {
  std::vector<nb::object> before;
  for (const Held& input : inputs)
    if (input) before.push_back(nb::borrow(input.get()));
  if (holds->empty() && before.empty()) return {};
  return Held(holds_object(std::move(holds), std::move(before)));
}
Held holding(const std::shared_ptr<const Held>& function, const Dataset& input) {
  const auto holds = std::make_shared<Holds>();
  holds->add(*function, 1);
  return holding(holds, {input.functions()});
}

// A function of an element. The parts of a tuple are its arguments if it takes as many.
class UserFunction {
 public:
  UserFunction(nb::handle f, SharedTree known, Source at)
      : f_(std::make_shared<const Held>(f)),
        known_(std::move(known)),
        packer_(std::make_shared<Packer>(at)) {
    if (!PyCallable_Check(f.ptr()))
      throw UserTypeError(cat("a ", Py_TYPE(f.ptr())->tp_name, " cannot be called"), at,
                          "give a function of an element");
  }

  // With the GIL.
  nb::object call(Element element) const {
    const UserCode user;
    const nb::object given = unpack(std::move(element), known_);
    const nb::handle f = f_->get();
    if (!PyTuple_CheckExact(given.ptr())) return f(given);
    static const nb::handle takes = imported("tidemark.data", "_takes");
    if (!nb::cast<bool>(takes(f, nb::len(given)))) return f(given);
    return nb::steal(checked(PyObject_Call(f.ptr(), given.ptr(), nullptr)));
  }
  Element pack(nb::handle object) const { return packer_->pack(object); }
  const std::shared_ptr<const Held>& reference() const { return f_; }

 private:
  static PyObject* checked(PyObject* result) {
    if (result == nullptr) nb::raise_python_error();
    return result;
  }

  std::shared_ptr<const Held> f_;
  SharedTree known_;
  std::shared_ptr<Packer> packer_;
};

// Runs f with the GIL. Exceptions of Python get a short text; those that end a program pass.
template <class F>
auto in_python(const F& f) {
  const nb::gil_scoped_acquire gil;
  try {
    return f();
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_Exception)) throw RaisedByUser(std::move(error));
    throw EndsProgram(std::move(error));
  }
}

// The values of an iterator of Python.
class IteratorSource {
 public:
  IteratorSource(std::shared_ptr<const Held> iterator, std::shared_ptr<Packer> packer)
      : iterator_(std::move(iterator)), packer_(std::move(packer)) {}
  std::optional<Element> operator()() const {
    return in_python([&]() -> std::optional<Element> {
      const UserCode user;
      const nb::object next = nb::steal(PyIter_Next(iterator_->get().ptr()));
      if (next.is_valid()) return packer_->pack(next);
      if (PyErr_Occurred() != nullptr) nb::raise_python_error();
      return std::nullopt;
    });
  }

 private:
  std::shared_ptr<const Held> iterator_;
  std::shared_ptr<Packer> packer_;
};

Dataset from_generator(nb::handle generator) {
  const Source at = calling_line();
  const bool is_function = PyCallable_Check(generator.ptr()) != 0;
  if (!is_function && (PyIter_Check(generator.ptr()) || !nb::hasattr(generator, "__iter__")))
    throw UserTypeError(cat("from_generator: a ", Py_TYPE(generator.ptr())->tp_name,
                            " can be walked only once, and a dataset is walked once an epoch"),
                        at, "give a function that makes it: from_generator(lambda: ...)");
  const auto held = std::make_shared<const Held>(generator);
  const auto holds = std::make_shared<Holds>();
  holds->add(*held, 1);
  const auto make = [held, holds, is_function, packer = std::make_shared<Packer>(at)] {
    const nb::gil_scoped_acquire gil;
    const UserCode user;
    const nb::object made = is_function ? held->get()() : nb::borrow(held->get());
    const nb::object iterator = nb::steal(PyObject_GetIter(made.ptr()));
    if (!iterator.is_valid()) nb::raise_python_error();
    const auto walked = std::make_shared<const Held>(iterator);
    holds->add(*walked, 1);
    return data::ElementSource(IteratorSource(walked, packer));
  };
  Held all = holding(holds, {});
  const nb::gil_scoped_release released;
  return Dataset(data::generated(make, at), nullptr, {}, std::move(all));
}

Dataset from_tensor_slices(nb::handle structure) {
  const Source at = calling_line();
  FlatTree flat = flatten(structure, classify);
  std::vector<std::string> paths = flat.tree->paths("");
  Element tensors{tensors_of(flat.leaves, at), nullptr};
  const SharedTree tree = flat.tree->is_one_leaf() ? nullptr : std::move(flat.tree);
  const nb::gil_scoped_release released;
  return Dataset(data::slices(std::move(tensors), std::move(paths), at), tree);
}

// ---- stages -------------------------------------------------------------------------------------

Dataset mapped(const Dataset& dataset, nb::handle f, int parallel, bool deterministic) {
  const Source at = calling_line();
  const UserFunction function(f, dataset.tree(), at);
  const auto apply = [function](Element element) {
    return in_python([&] { return function.pack(function.call(std::move(element))); });
  };
  Held holds = holding(function.reference(), dataset);
  const nb::gil_scoped_release released;
  return Dataset(data::mapped(dataset.stage(), apply, {parallel, deterministic}, at), nullptr,
                 dataset.cap(), std::move(holds));
}

Dataset filtered(const Dataset& dataset, nb::handle f) {
  const Source at = calling_line();
  const UserFunction function(f, dataset.tree(), at);
  const auto keep = [function](const Element& element) {
    return in_python([&] {
      const int kept = PyObject_IsTrue(function.call(element).ptr());
      if (kept < 0) nb::raise_python_error();
      return kept == 1;
    });
  };
  Held holds = holding(function.reference(), dataset);
  const nb::gil_scoped_release released;
  return Dataset(data::filtered(dataset.stage(), keep, at), dataset.tree(), dataset.cap(),
                 std::move(holds));
}

Dataset zipped(const nb::args& datasets) {
  const Source at = calling_line();
  std::vector<data::StagePtr> stages;
  std::vector<SharedTree> trees;
  std::vector<Held> inputs;
  std::optional<data::Cap> cap;
  for (const nb::handle each : datasets) {
    if (!nb::isinstance<Dataset>(each))
      throw UserTypeError(cat("zip: a ", Py_TYPE(each.ptr())->tp_name, " is not a dataset"), at,
                          "give datasets: td.data.zip(a, b)");
    const Dataset& dataset = nb::cast<const Dataset&>(each);
    stages.push_back(dataset.stage());
    trees.push_back(dataset.tree());
    inputs.push_back(dataset.functions());
    if (dataset.cap() && (!cap || dataset.cap()->bytes < cap->bytes)) cap = dataset.cap();
  }
  const SharedTree whole = tuple_of(trees);
  // Only where an element of an input has a form of its own.
  const auto join = [trees, whole](const std::vector<FormPtr>& forms) -> FormPtr {
    if (std::all_of(forms.begin(), forms.end(),
                    [](const FormPtr& form) { return form == nullptr; }))
      return nullptr;
    const nb::gil_scoped_acquire gil;
    std::vector<SharedTree> parts;
    for (size_t i = 0; i < forms.size(); ++i)
      parts.push_back(forms[i] == nullptr ? trees[i]
                                          : static_cast<const TreeForm&>(*forms[i]).tree);
    SharedTree joined = tuple_of(parts);
    std::string key = joined->key("element");
    return std::make_shared<TreeForm>(std::move(key), std::move(joined));
  };
  Held holds = holding(std::make_shared<Holds>(), inputs);
  const nb::gil_scoped_release released;
  return Dataset(data::zipped(std::move(stages), join, at), whole, cap, std::move(holds));
}

// The form that elements of a dataset have if they carry none of their own.
FormPtr form_of(const Dataset& dataset) {
  if (dataset.tree() == nullptr) return nullptr;
  return std::make_shared<TreeForm>(dataset.tree()->key("element"), dataset.tree());
}

data::PaddingOptions padding_from(bool drop_remainder, std::vector<std::vector<int64_t>>&& shapes,
                                  std::vector<double>&& values) {
  return {drop_remainder, std::move(shapes), std::move(values)};
}

Dataset bucketed(const Dataset& dataset, nb::handle length, std::vector<int64_t> boundaries,
                 std::vector<int64_t> batch_sizes, bool drop_remainder,
                 std::vector<std::vector<int64_t>> shapes, std::vector<double> values,
                 bool pad_to_boundary) {
  const Source at = calling_line();
  const UserFunction function(length, dataset.tree(), at);
  const auto measure = [function](const Element& element) {
    return in_python([&] {
      const nb::object made = function.call(element);
      const nb::object number = nb::steal(PyNumber_Long(made.ptr()));
      if (!number.is_valid()) nb::raise_python_error();
      return nb::cast<int64_t>(number);
    });
  };
  data::BucketOptions options{padding_from(drop_remainder, std::move(shapes), std::move(values)),
                              pad_to_boundary};
  Held holds = holding(function.reference(), dataset);
  const nb::gil_scoped_release released;
  return Dataset(
      data::bucketed(dataset.stage(), measure, {std::move(boundaries), std::move(batch_sizes)},
                     std::move(options), at),
      dataset.tree(), dataset.cap(), std::move(holds));
}

Dataset interleaved(const Dataset& dataset, nb::handle f, int64_t cycle, int64_t block) {
  const Source at = calling_line();
  const UserFunction function(f, dataset.tree(), at);
  const auto open = [function, at](Element element) {
    return in_python([&] {
      const nb::object made = function.call(std::move(element));
      if (!nb::isinstance<Dataset>(made))
        throw UserTypeError(cat("it returned a ", Py_TYPE(made.ptr())->tp_name), at,
                            "return a dataset, such as td.data.from_tensor_slices(x)");
      const auto& inner = nb::cast<const Dataset&>(made);
      return data::InnerStage{inner.stage(), form_of(inner)};
    });
  };
  Held holds = holding(function.reference(), dataset);
  const nb::gil_scoped_release released;
  return Dataset(data::interleaved(dataset.stage(), open, {cycle, block}, at), nullptr,
                 dataset.cap(), std::move(holds));
}

Dataset sampled(const std::vector<Dataset>& datasets, std::vector<double> weights, int64_t seed,
                bool reshuffle, bool stop_on_empty) {
  const Source at = calling_line();
  std::vector<data::StagePtr> stages;
  std::vector<FormPtr> forms;
  std::vector<Held> inputs;
  std::optional<data::Cap> cap;
  for (const Dataset& each : datasets) {
    stages.push_back(each.stage());
    forms.push_back(form_of(each));
    inputs.push_back(each.functions());
    if (each.cap() && (!cap || each.cap()->bytes < cap->bytes)) cap = each.cap();
  }
  Held holds = holding(std::make_shared<Holds>(), inputs);
  const nb::gil_scoped_release released;
  return Dataset(data::sampled(std::move(stages), std::move(forms),
                               {std::move(weights), seed, reshuffle, stop_on_empty}, at),
                 nullptr, cap, std::move(holds));
}

// A stage that keeps the structure of elements: make(input, options..., at).
template <class Make>
Dataset stage(const Dataset& dataset, const Make& make) {
  const Source at = calling_line();
  Held holds = dataset.functions();
  const nb::gil_scoped_release released;
  return Dataset(make(dataset.stage(), at), dataset.tree(), dataset.cap(), std::move(holds));
}

void bind_stages(nb::class_<Dataset>& dataset) {
  dataset
      .def("map", mapped, arg("f"), nb::kw_only(), arg("parallel") = 1, arg("deterministic") = true,
           "f(element), or f(*element) of a tuple. With `parallel` it is called from threads.")
      .def("filter", filtered, arg("f"), "Keeps the elements for which f(element) is true.")
      .def(
          "shuffle",
          [](const Dataset& dataset, int64_t buffer, int64_t seed, bool reshuffle) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::shuffled(input, {buffer, seed, reshuffle}, at);
            });
          },
          nb::kw_only(), arg("buffer") = 0, arg("seed") = 0, arg("reshuffle") = true,
          "Another order in each pass. By index it is uniform and takes no bytes; else give a "
          "buffer's size.")
      .def(
          "sample",
          [](const Dataset& dataset, std::vector<double> weights, std::optional<int64_t> count,
             int64_t seed, bool reshuffle) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::drawn(input, {std::move(weights), count, seed, reshuffle}, at);
            });
          },
          arg("weights"), nb::kw_only(), arg("count") = nb::none(), arg("seed") = 0,
          arg("reshuffle") = true,
          "Elements drawn by their weights, one for each element, as often as they come.")
      .def(
          "batch",
          [](const Dataset& dataset, int64_t size, bool drop_remainder) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::batched(input, size, {drop_remainder}, at);
            });
          },
          arg("size"), nb::kw_only(), arg("drop_remainder") = false,
          "`size` elements as one, with a new first axis.")
      .def(
          "padded_batch",
          [](const Dataset& dataset, int64_t size, std::vector<std::vector<int64_t>> shapes,
             std::vector<double> values, bool drop_remainder) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::padded_batched(
                  input, size, padding_from(drop_remainder, std::move(shapes), std::move(values)),
                  at);
            });
          },
          arg("size"), nb::kw_only(), arg("shapes") = std::vector<std::vector<int64_t>>(),
          arg("values") = std::vector<double>(), arg("drop_remainder") = false,
          "`size` elements of different sizes as one: filled up to the longest, or to `shapes`, "
          "one "
          "for each tensor of an element, in which -1 is the longest.")
      .def("bucket_by_length", bucketed, arg("length"), arg("boundaries"), arg("batch_sizes"),
           nb::kw_only(), arg("drop_remainder") = false,
           arg("shapes") = std::vector<std::vector<int64_t>>(),
           arg("values") = std::vector<double>(), arg("pad_to_boundary") = false,
           "Padded batches of elements of similar length: each bucket between two boundaries "
           "collects its own.")
      .def(
          "window",
          [](const Dataset& dataset, int64_t size, std::optional<int64_t> shift, int64_t stride,
             bool drop_remainder) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::windowed(input, size, {shift, stride, drop_remainder}, at);
            });
          },
          arg("size"), nb::kw_only(), arg("shift") = nb::none(), arg("stride") = 1,
          arg("drop_remainder") = false,
          "`size` successive elements as one, with a new first axis; windows may overlap.")
      .def("interleave", interleaved, arg("f"), nb::kw_only(), arg("cycle") = 4, arg("block") = 1,
           "The elements of the datasets f(element), `block` elements of each of `cycle` in turn.")
      .def(
          "flat_map",
          [](const Dataset& dataset, nb::handle f) { return interleaved(dataset, f, 1, 1); },
          arg("f"), "The elements of the datasets f(element), one dataset after another.")
      .def(
          "shard",
          [](const Dataset& dataset, int64_t shards, int64_t index) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::sharded(input, shards, index, at);
            });
          },
          arg("shards"), arg("index"), "Every `shards`-th element, from `index` on.")
      .def(
          "repeat",
          [](const Dataset& dataset, std::optional<int64_t> times) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::repeated(input, times, at);
            });
          },
          arg("times") = nb::none(), "Repeats for ever if no number is given.")
      .def(
          "take",
          [](const Dataset& dataset, int64_t count) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::taken(input, count, at);
            });
          },
          arg("count"), "The first elements.")
      .def(
          "skip",
          [](const Dataset& dataset, int64_t count) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::skipped(input, count, at);
            });
          },
          arg("count"), "All but the first elements.")
      .def(
          "cache",
          [](const Dataset& dataset, const std::optional<PathText>& path) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return path ? data::cached_in_file(input, path->text, at) : data::cached(input, at);
            });
          },
          arg("path") = nb::none(), "Stores all elements, in memory or in a file that is mapped.")
      .def(
          "prefetch",
          [](const Dataset& dataset, int64_t count) {
            return stage(dataset, [&](const data::StagePtr& input, Source at) {
              return data::prefetched(input, count, at);
            });
          },
          arg("count"), "Computes up to `count` elements ahead, on a thread.");
}

// ---- walks --------------------------------------------------------------------------------------

// Threads of the library may wait for the GIL while they end. When the process ends they never get
// it, so what they serve stays.
template <class T>
void end_without_gil(std::shared_ptr<T> last) {
  if (last == nullptr) return;
  if (Py_IsInitialized() == 0) {
    new std::shared_ptr<T>(std::move(last));
  } else if (PyGILState_Check() != 0) {
    const nb::gil_scoped_release released;
    last.reset();
  }
}

// Of a Dataset or a DatasetIterator.
template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Held& holds = nb::inst_ptr<T>(self)->holds();
  if (holds.copies() == 1) Py_VISIT(holds.get().ptr());
  return 0;
}
template <class T>
PyType_Slot* slots() {
  static PyType_Slot all[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<T>)}, {0, nullptr}};
  return all;
}

// Elements that are read while a function is traced would be the same in every call of it.
void refuse_in_trace() {
  if (!detail::is_tracing()) return;
  throw DatasetInTrace(
      "a Dataset is read while a function is traced: its elements are no part of the program",
      calling_line(), "loop outside of the function, and call it with each element");
}

class DatasetIterator {
 public:
  explicit DatasetIterator(const Dataset& dataset)
      : tree_(dataset.tree()), holds_(dataset.functions()) {
    refuse_in_trace();
    const nb::gil_scoped_release released;
    walk_ = std::make_shared<data::Walk>(dataset.pipeline().begin());
  }
  ~DatasetIterator() { end_without_gil(std::move(walk_)); }
  DatasetIterator(const DatasetIterator&) = delete;
  DatasetIterator& operator=(const DatasetIterator&) = delete;

  nb::object next() {
    refuse_in_trace();
    std::optional<Element> element;
    {
      const nb::gil_scoped_release released;
      element = walk_->next();
    }
    if (!element) throw nb::stop_iteration();
    nb::object given = unpack(*std::move(element), tree_);
    walk_->gave();
    return given;
  }
  data::Position position() const { return walk_->position(); }
  const Held& holds() const { return holds_; }

 private:
  SharedTree tree_;
  Held holds_;
  std::shared_ptr<data::Walk> walk_;
};

std::optional<int64_t> count_of(const Dataset& dataset) {
  const nb::gil_scoped_release released;
  return dataset.pipeline().count();
}

void bind_walks(nb::module_& data, nb::class_<Dataset>& dataset) {
  nb::class_<DatasetIterator>(data, "DatasetIterator", nb::type_slots(slots<DatasetIterator>()),
                              nb::is_weak_referenceable(), "One pass over a Dataset.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &DatasetIterator::next)
      .def("position", &DatasetIterator::position);
  dataset.def("__iter__",
              [](nb::handle self) { return new DatasetIterator(nb::cast<const Dataset&>(self)); });
  dataset
      .def("count", count_of, "The number of elements, or None if it is not known or not finite.")
      .def("__len__",
           [](const Dataset& dataset) {
             const auto count = count_of(dataset);
             if (!count)
               throw UserTypeError("len: the number of elements is not known or not finite",
                                   calling_line(), "dataset.count() is None then");
             return *count;
           })
      .def("__bool__", [](const Dataset&) { return true; })
      .def(
          "position",
          [](const Dataset& dataset) {
            const nb::gil_scoped_release released;
            return dataset.position();
          },
          "The position of the iteration that was started last.")
      .def(
          "restore",
          [](const Dataset& dataset, const data::Position& position) {
            const Source at = calling_line();
            const nb::gil_scoped_release released;
            dataset.pipeline().restore(position, at);
          },
          arg("position"), "The next iteration begins there.");
}

// ---- bytes --------------------------------------------------------------------------------------

void bind_plan(nb::module_& data, nb::class_<Dataset>& dataset) {
  using data::DatasetPlan;
  using data::StageBytes;
  nb::class_<StageBytes>(data, "StageBytes", "What one stage of a Dataset holds.")
      .def_ro("stage", &StageBytes::stage)
      .def_prop_ro("line", [](const StageBytes& stage) { return stage.at.text(); })
      .def_ro("bytes", &StageBytes::bytes)
      .def_ro("known", &StageBytes::known)
      .def_ro("note", &StageBytes::note);
  nb::class_<DatasetPlan>(data, "DatasetPlan",
                          "The bytes of one iteration, stage by stage. Prints as a table.")
      .def_prop_ro("stages", &DatasetPlan::stages)
      .def_prop_ro("is_known", &DatasetPlan::is_known)
      .def_prop_ro(
          "total", [](const DatasetPlan& plan) { return plan.total(calling_line()); },
          "The peak of the iteration.")
      .def_prop_ro("known_bytes", &DatasetPlan::known_bytes)
      .def("__str__", &DatasetPlan::to_text)
      .def("__repr__", &DatasetPlan::to_text);
  nb::class_<data::Position>(data, "Position",
                             "The number of passes before, and of elements given.")
      .def(
          "__init__",
          [](data::Position* self, int64_t passes, int64_t element) {
            new (self) data::Position{passes, element};
          },
          arg("passes") = 0, arg("element") = 0)
      .def_rw("passes", &data::Position::pass)
      .def_rw("element", &data::Position::element)
      .def(
          "__eq__", [](const data::Position& a, const data::Position& b) { return a == b; },
          nb::is_operator())
      .def("__repr__", [](const data::Position& position) {
        return cat("Position(passes=", position.pass, ", element=", position.element, ")");
      });
  dataset
      .def(
          "plan",
          [](const Dataset& dataset) {
            const nb::gil_scoped_release released;
            return dataset.pipeline().plan();
          },
          "The bytes that an iteration holds, stage by stage.")
      .def(
          "within",
          [](const Dataset& dataset, nb::handle given) {
            const Source at = calling_line();
            const Bytes bytes = bytes_from(given, "within", at);
            Held holds = dataset.functions();
            const nb::gil_scoped_release released;
            Dataset capped(dataset.stage(), dataset.tree(), data::Cap{bytes, at}, std::move(holds));
            capped.pipeline().check();
            return capped;
          },
          arg("bytes"), "Limits the bytes of an iteration, including stages added later.");
}

// ---- files --------------------------------------------------------------------------------------

nb::object wrapped(const Tensor& tensor) { return nb::steal(wrap(Tensor(tensor))); }

nb::dict load_csv(const PathText& path, bool header, char separator,
                  const std::vector<std::string>& columns,
                  const std::map<std::string, DType>& dtypes,
                  const std::map<std::string, double>& missing, const std::string& na) {
  const Source at = calling_line();
  data::Table table;
  {
    const nb::gil_scoped_release released;
    table = data::load_csv(path.text, {header, separator, columns, dtypes, missing, na}, at);
  }
  nb::dict named;
  for (const std::string& name : table.names) named[readable(name)] = wrapped(table.at(name));
  return named;
}

// The bytes of a file: a u8 tensor, bytes, or what else has a buffer. Bytes are copied.
Tensor bytes_of_file(nb::handle given, const char* what, Source at) {
  if (PyBytes_Check(given.ptr())) {
    const std::span<const uint8_t> bytes(
        reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(given.ptr())),
        static_cast<size_t>(PyBytes_GET_SIZE(given.ptr())));
    return constant(bytes, at);
  }
  if (!is_value(given.ptr()) && PyObject_CheckBuffer(given.ptr()) == 0)
    throw UserTypeError(
        cat(what, ": the bytes of a file are wanted, got ", Py_TYPE(given.ptr())->tp_name), at,
        "write open(path, \"rb\").read(), or td.data.load_image(path)");
  return tensor_from(given, at);
}

using Decode = Tensor(const Tensor&, data::ImageOptions, Source);

void bind_decoder(nb::module_& data, const char* name, Decode* decode, const char* text) {
  data.def(
      name,
      [name, decode](nb::handle bytes, int64_t channels) {
        const Source at = calling_line();
        const Tensor given = bytes_of_file(bytes, name, at);
        const nb::gil_scoped_release released;
        return decode(given, {channels}, at);
      },
      arg("bytes"), nb::kw_only(), arg("channels") = 0, text);
}

void bind_images(nb::module_& data) {
  bind_decoder(data, "decode_png", data::decode_png,
               "u8[height, width, channels] from the bytes of a PNG file.");
  bind_decoder(data, "decode_jpeg", data::decode_jpeg,
               "u8[height, width, channels] from the bytes of a JPEG file.");
  bind_decoder(data, "decode_image", data::decode_image,
               "u8[height, width, channels] from the bytes of a PNG or JPEG file.");
  data.def(
      "load_image",
      [](const PathText& path, int64_t channels) {
        const Source at = calling_line();
        const nb::gil_scoped_release released;
        return data::load_image(path.text, {channels}, at);
      },
      arg("path"), nb::kw_only(), arg("channels") = 0,
      "u8[height, width, channels] from a PNG or JPEG file.");
}

void bind_data_files(nb::module_& data) {
  bind_images(data);
  data.def("load_csv", load_csv, arg("path"), nb::kw_only(), arg("header") = true,
           arg("separator") = ',', arg("columns") = std::vector<std::string>(),
           arg("dtypes") = std::map<std::string, DType>(),
           arg("missing") = std::map<std::string, double>(), arg("na") = "",
           "The columns of a CSV file, plain or gzip, by name: i64 if all are whole numbers, else "
           "f32, unless `dtypes` names another.")
      .def(
          "load_idx",
          [](const PathText& path) {
            const Source at = calling_line();
            const nb::gil_scoped_release released;
            return data::load_idx(path.text, at);
          },
          arg("path"), "An IDX file, as MNIST's, plain or gzip.")
      .def(
          "load_cifar",
          [](const PathText& path, int64_t labels) {
            const Source at = calling_line();
            data::CifarBatch batch;
            {
              const nb::gil_scoped_release released;
              batch = data::load_cifar(path.text, labels, at);
            }
            return nb::make_tuple(wrapped(batch.images), wrapped(batch.labels));
          },
          arg("path"), arg("labels") = 1,
          "(images, labels) of a file of CIFAR-10; with labels=2 of CIFAR-100.");
}

}  // namespace

Dataset::Dataset(data::StagePtr stage, SharedTree tree, std::optional<data::Cap> cap, Held holds)
    : pipeline_(std::make_shared<data::Pipeline>(std::move(stage), cap)),
      tree_(std::move(tree)),
      holds_(std::move(holds)) {}

Dataset::~Dataset() { end_without_gil(std::move(pipeline_)); }

void bind_data(nb::module_& module) {
  nb::module_ data =
      module.def_submodule("data", "Datasets: sequences of elements that are computed on demand.");
  nb::class_<Dataset> dataset(
      data, "Dataset", nb::type_slots(slots<Dataset>()), nb::is_weak_referenceable(),
      "A sequence of elements. Stages make new datasets; iterating computes the elements.");
  bind_plan(data, dataset);
  bind_stages(dataset);
  bind_walks(data, dataset);
  bind_data_files(data);
  data.def("from_tensor_slices", from_tensor_slices, arg("tensors"),
           "The rows of tensors or arrays along their first axis. Nothing is copied.")
      .def(
          "from_npy",
          [](const PathText& path) {
            const Source at = calling_line();
            const nb::gil_scoped_release released;
            return Dataset(data::npy_rows(path.text, at), nullptr);
          },
          arg("path"), "The rows of a .npy file, which is mapped.")
      .def("from_generator", from_generator, arg("generator"),
           "The values of an iterable, or of what a function makes once a pass.")
      .def(
          "text_lines",
          [](nb::handle paths) {
            const Source at = calling_line();
            std::vector<std::string> list;
            if (nb::isinstance<nb::list>(paths) || nb::isinstance<nb::tuple>(paths))
              for (const nb::handle path : nb::borrow<nb::sequence>(paths))
                list.push_back(nb::cast<PathText>(path).text);
            else
              list.push_back(nb::cast<PathText>(paths).text);
            const nb::gil_scoped_release released;
            return Dataset(data::lines_of(list, at), nullptr);
          },
          arg("paths"), "The lines of text files, plain or gzip, as u8 tensors without their ends.")
      .def("sample_from", sampled, arg("datasets"), nb::kw_only(),
           arg("weights") = std::vector<double>(), arg("seed") = 0, arg("reshuffle") = true,
           arg("stop_on_empty") = false,
           "Elements of several datasets, each drawn from one of them by its weight.")
      .def("zip", zipped, "Tuples of the elements of several datasets; ends with the shortest.")
      .def(
          "range",
          [](int64_t begin, std::optional<int64_t> end, int64_t step) {
            const Source at = calling_line();
            return Dataset(data::numbers(end ? begin : 0, end ? *end : begin, step, at), nullptr);
          },
          arg("begin"), arg("end") = nb::none(), arg("step") = 1,
          "0, 1, ... as i64 tensors of one element.");
}

}  // namespace tidemark::python
