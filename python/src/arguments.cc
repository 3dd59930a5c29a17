#include "arguments.h"

#include <algorithm>

#include "dtype.h"
#include "errors.h"
#include "shape.h"
#include "source.h"

namespace tidemark::python {
namespace {

[[noreturn]] void refuse(const Function& function, const std::string& problem, Source at) {
  const size_t colons = function.name.find("::");
  const std::string module =
      colons == std::string::npos ? "" : function.name.substr(0, colons) + ".";
  throw UserTypeError(
      cat(function.signature.substr(0, function.signature.find('(')), ": ", problem), at,
      cat("write td.", module, function.signature));
}

bool is_key(PyObject* key, PyObject* name) {
  return key == name || PyUnicode_Compare(key, name) == 0;
}

size_t index_of(const Function& function, PyObject* name, Source at) {
  for (size_t i = 0; i < function.parameters.size(); ++i)
    for (PyObject* const key : function.parameters[i].keys)
      if (is_key(key, name)) return i;
  refuse(function, cat("there is no argument `", PyUnicode_AsUTF8(name), "`"), at);
}

// np.sum(x) calls x.sum(axis=None, dtype=None, out=None).
bool is_numpy_default(PyObject* name, PyObject* value) {
  return value == Py_None && (PyUnicode_CompareWithASCIIString(name, "dtype") == 0 ||
                              PyUnicode_CompareWithASCIIString(name, "out") == 0);
}

// x.reshape(2, 3) for x.reshape((2, 3)): the numbers from `from` on as one tuple.
bool spreads(const Function& function, size_t from) {
  if (from >= function.parameters.size()) return false;
  const std::string& kind = function.parameters[from].kind;
  return kind == "shape" || kind == "ints";
}

// einsum("ij,jk", a, b): all arguments from the last parameter on as one tuple.
bool collects(const Function& function, size_t count) {
  return !function.parameters.empty() && function.parameters.back().kind == "operands" &&
         count + 1 >= function.parameters.size();
}

nb::object tuple_of(PyObject* const* args, Py_ssize_t count) {
  nb::object tuple = nb::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, Py_NewRef(args[i]));
  return tuple;
}

}  // namespace

PyObject* Function::call(PyObject* self, PyObject* const* args, Py_ssize_t count,
                         PyObject* keywords) const {
  const Source at = calling_line();
  std::array<PyObject*, kMostParameters> objects = {};
  size_t next = 0;
  nb::object spread;
  if (self != nullptr) objects[next++] = self;
  if (self != nullptr && count > 1 && spreads(*this, 1) && PyIndex_Check(args[0]) != 0) {
    spread = tuple_of(args, count);
    objects[next++] = spread.ptr();
    count = 0;
  }
  Py_ssize_t single = count;  // The arguments that are one parameter each.
  if (self == nullptr && collects(*this, static_cast<size_t>(count))) {
    single = static_cast<Py_ssize_t>(parameters.size()) - 1;
    spread = tuple_of(args + single, count - single);
    objects[static_cast<size_t>(single)] = spread.ptr();
  }
  if (next + static_cast<size_t>(single) > parameters.size())
    refuse(*this, cat(count, " arguments were passed, and it takes ", parameters.size() - next),
           at);
  for (Py_ssize_t i = 0; i < single; ++i) objects[next++] = args[i];
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* const name = PyTuple_GET_ITEM(keywords, k);
    if (self != nullptr && is_numpy_default(name, args[count + k])) continue;
    const size_t i = index_of(*this, name, at);
    if (objects[i] != nullptr)
      refuse(*this, cat("`", parameters[i].name, "` was passed twice"), at);
    objects[i] = args[count + k];
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (objects[i] != nullptr) continue;
    objects[i] = parameters[i].fallback;
    if (objects[i] == nullptr)
      refuse(*this, cat("the argument `", parameters[i].name, "` is missing"), at);
  }
  Arguments arguments(*this, std::span(objects).first(parameters.size()), at);
  return run(arguments);
}

Tensor Arguments::tensor(size_t i) {
  Tensor read = tensor_from(objects_[i], at);
  bytes_ += bytes_of(Operand(read, at));
  return read;
}

std::vector<Tensor> Arguments::tensors(size_t i) {
  std::vector<Tensor> list = tensors_from(objects_[i], at);
  for (const Tensor& each : list) bytes_ += bytes_of(Operand(each, at));
  return list;
}

void Arguments::axis_items(size_t i, std::span<int64_t> items) const {
  const std::vector<int64_t> list = integers(i);
  if (list.size() == 1) {
    std::ranges::fill(items, list[0]);
    return;
  }
  if (list.size() != items.size())
    throw UserError(cat(name(i), ": ", list.size(), " numbers, and ", items.size(), " are wanted"),
                    at, cat("write ", name(i), items.size() == 2 ? "=(1, 1)" : "=(1, 1, 1)"));
  std::ranges::copy(list, items.begin());
}

Shape Arguments::shape(size_t i) {
  Shape read = shape_from(objects_[i], at);
  int64_t elements = 1;
  for (const Dim dim : read) elements *= std::min<int64_t>(dim.known_or(1), 1 << 15);
  bytes_ += elements * 4;
  return read;
}

Dim Arguments::size(size_t i) const {
  const std::optional<Dim> read = size_from(objects_[i]);
  return read ? *read : Dim(integer(i));  // Which says what is wrong.
}

DType Arguments::dtype(size_t i) const { return dtype_argument(objects_[i], at); }

std::optional<random::Key> Arguments::maybe_key(size_t i) const {
  if (is_none(i)) return {};
  if (PyLong_Check(objects_[i])) return random::Key(static_cast<uint64_t>(integer(i)));
  return nb::cast<random::Key>(object(i));
}

Padding2 Arguments::pairs(size_t i) const {
  Padding2 list;
  for (const nb::handle item : nb::borrow<nb::sequence>(object(i))) {
    const Shape both = shape_from(item, at);
    if (both.rank() != 2)
      throw UserError(cat(name(i), ": each axis needs two numbers, before and after"), at,
                      cat("write ", name(i), "=[(0, 0), (1, 1)], one pair for each axis"));
    list.emplace_back(both[0], both[1]);
  }
  return list;
}

TensordotAxes Arguments::contracted(size_t i) const {
  const nb::handle both = object(i);
  if (PySequence_Check(both.ptr()) == 0 || nb::len(both) != 2)
    throw UserTypeError(cat(name(i), ": neither a number nor two lists of axes"), at,
                        cat("write ", name(i), "=2, or ", name(i), "=([1, 0], [0, 1])"));
  return {integers_from(both[0], name(i), at), integers_from(both[1], name(i), at)};
}

WindowPadding Arguments::padding(size_t i) const {
  if (PyUnicode_Check(objects_[i])) {
    const int rule = word(i);
    if (rule < 2) return static_cast<Padding>(rule);
  }
  if (PySequence_Check(objects_[i]) == 0 || PyUnicode_Check(objects_[i]))
    throw UserTypeError(cat(name(i), ": ", Py_TYPE(objects_[i])->tp_name, " is no padding"), at,
                        "give \"valid\", \"same\" or a pair (before, after) for each axis");
  return pairs(i);
}

int Arguments::word(size_t i) const {
  const std::string wanted = text(i);
  std::string_view words = function_.parameters[i].kind;
  for (int number = 0;; ++number) {
    const size_t bar = words.find('|');
    std::string lower = wanted;  // "SAME" is TensorFlow's spelling.
    for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
    if (words.substr(0, bar) == lower) return number;
    if (bar == std::string_view::npos) break;
    words = words.substr(bar + 1);
  }
  throw UserError(cat(name(i), ": there is no \"", wanted, "\""), at,
                  cat("the choices are ", function_.parameters[i].kind));
}

namespace {

// A class of named tuples, which lives as long as the process.
PyObject* made_class(const char* name, const char* fields) {
  nb::object made = nb::module_::import_("collections")
                        .attr("namedtuple")(name, fields, nb::arg("module") = "tidemark");
  return made.release().ptr();
}

template <class... T>
PyObject* named_tuple(PyObject* cls, T&&... fields) {
  return nb::handle(cls)(nb::steal(wrap(std::move(fields)))...).release().ptr();
}

}  // namespace

PyObject* wrap(TopK&& result) {
  static PyObject* const cls = made_class("TopK", "values indices");
  return named_tuple(cls, result.values, result.indices);
}

PyObject* wrap(Histogram&& result) {
  static PyObject* const cls = made_class("Histogram", "counts edges");
  return named_tuple(cls, result.counts, result.edges);
}

// Tuples have a method `count` already.
PyObject* wrap(Unique&& result) {
  static PyObject* const cls = made_class("Unique", "values inverse counts size");
  return named_tuple(cls, result.values, result.inverse, result.counts, result.size);
}

PyObject* wrap(Nonzero&& result) {
  static PyObject* const cls = made_class("Nonzero", "indices size");
  return named_tuple(cls, result.indices, result.size);
}

PyObject* wrap(linalg::Slogdet&& result) {
  static PyObject* const cls = made_class("Slogdet", "sign logdet");
  return named_tuple(cls, result.sign, result.logdet);
}

PyObject* wrap(linalg::Lu&& result) {
  static PyObject* const cls = made_class("Lu", "lu permutation");
  return named_tuple(cls, result.lu, result.permutation);
}

PyObject* wrap(linalg::Qr&& result) {
  static PyObject* const cls = made_class("Qr", "q r");
  return named_tuple(cls, result.q, result.r);
}

PyObject* wrap(linalg::Eigh&& result) {
  static PyObject* const cls = made_class("Eigh", "values vectors");
  return named_tuple(cls, result.values, result.vectors);
}

PyObject* wrap(linalg::Svd&& result) {
  static PyObject* const cls = made_class("Svd", "u s vh");
  return named_tuple(cls, result.u, result.s, result.vh);
}

}  // namespace tidemark::python
