// The functions of the catalogue, and methods of Tensor made from some of them. Names, signatures,
// defaults and documents all come from the catalogue.
#include <array>
#include <cctype>
#include <utility>

#include <nanobind/stl/string.h>
#include "arguments.h"
#include "bindings.h"
#include "dtype.h"
#include "errors.h"
#include "functions.h"
#include "source.h"
#include "variable.h"

namespace tidemark::python {
namespace {

// ---- parameters ---------------------------------------------------------------------------------

// Names that Python's users know better, and others that are accepted too.
struct Spelling {
  std::string_view function, name, python;
  std::string_view also = {};
};
constexpr Spelling kSpellings[] = {
    {"", "axes", "axis", "axes"},
    {"", "keep", "keepdims", "keep"},
    {"", "list", "tensors", "list"},
    {"transpose", "order", "order", "axes"},
    {"repeat", "count", "count", "repeats"},
    {"tile", "counts", "counts", "reps"},
    {"full", "value", "value", "fill_value"},
    {"full_like", "value", "value", "fill_value"},
    {"linspace", "count", "count", "num"},
};

PyObject* interned(std::string_view text) {
  PyObject* made = PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  PyUnicode_InternInPlace(&made);
  return made;
}

void spell(Parameter& parameter, std::string_view function, std::string_view name) {
  parameter.name = name;
  std::string_view also;
  for (const Spelling& each : kSpellings) {
    if (each.name != name || (!each.function.empty() && each.function != function)) continue;
    if (name == "axes" && parameter.kind != "axes" && each.function.empty()) continue;
    parameter.name = each.python;
    also = each.also;
  }
  parameter.keys.push_back(interned(parameter.name));
  if (!also.empty() && also != parameter.name) parameter.keys.push_back(interned(also));
}

// A default as the catalogue writes it: "none", "false", "-1", "1e-5", "[2, 2]", "f32", "valid".
nb::object fallback_of(std::string_view text, std::string_view kind) {
  const std::string plain(text);
  if (text == "none" || text == "automatic") return nb::none();
  if (text == "false" || text == "true") return nb::bool_(text == "true");
  if (kind == "dtype" || kind.find('|') != std::string_view::npos) return nb::str(plain.c_str());
  if (text[0] == '[') {
    nb::list items;
    for (size_t at = 1; at < plain.size(); at = plain.find_first_of(",]", at) + 1)
      items.append(std::stol(plain.substr(at)));
    return nb::tuple(items);
  }
  if (kind == "float" || text.find_first_of(".e") != std::string_view::npos)
    return nb::float_(std::stod(plain));
  return nb::int_(std::stol(plain));
}

std::vector<Parameter> parameters_of(const Callable& callable) {
  std::vector<Parameter> list;
  for (const Argument& argument : callable.argument_list()) {
    Parameter parameter;
    parameter.kind = argument.kind;
    spell(parameter, callable.name, argument.name);
    if (!argument.fallback.empty())
      parameter.fallback = fallback_of(argument.fallback, argument.kind).release().ptr();
    list.push_back(std::move(parameter));
  }
  TIDEMARK_CHECK(list.size() <= Function::kMostParameters, callable.name);
  return list;
}

// ---- texts --------------------------------------------------------------------------------------

std::string short_name(std::string_view name) {
  const size_t colons = name.rfind(':');
  return std::string(colons == std::string_view::npos ? name : name.substr(colons + 1));
}

std::string signature_of(const Function& function, size_t from = 0) {
  std::string text = short_name(function.name) + "(";
  if (from > 0) text += "$self, /, ";
  for (size_t i = from; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    if (i > from) text += ", ";
    text += cat(parameter.kind == "operands" ? "*" : "", parameter.name);
    if (parameter.fallback != nullptr)
      text += cat("=", nb::repr(nb::handle(parameter.fallback)).c_str());
  }
  if (text.ends_with(", ")) text.resize(text.size() - 2);
  return text + ")";
}

// "An ints" as Python's people say it.
std::string kind_text(const Parameter& parameter) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"tensor", "tensor, array or number"},
      {"tensors", "list of tensors"},
      {"operands", "tensors, one by one or in a list"},
      {"numbers", "number, nested lists of numbers, or array"},
      {"ints", "int or sequence of ints"},
      {"contracted", "int, or (axes of a, axes of b)"},
      {"pairs", "sequence of (before, after), one for each axis"},
      {"size", "int or Dim"},
      {"shape", "int or sequence of sizes"},
      {"axes", "int or sequence of ints; None is every axis"},
      {"dtype", "DType, its name, or a dtype of NumPy"},
      {"text", "str"},
      {"key", "Key or seed; None draws from the global generator"},
      {"callback", "callable that fills a memoryview"},
  };
  for (const auto& [kind, text] : words)
    if (kind == parameter.kind) return std::string(text);
  if (parameter.kind.find('|') == std::string::npos) return parameter.kind;
  std::string choices = "'" + parameter.kind + "'";
  for (size_t bar; (bar = choices.find('|')) != std::string::npos;)
    choices.replace(bar, 1, "' or '");
  return choices;
}

std::string document_of(const Function& function) {
  std::string text = cat(function.brief, "\n");
  if (!function.parameters.empty()) text += "\nArguments:\n";
  for (const Parameter& parameter : function.parameters)
    text += cat("    ", parameter.name, ": ", kind_text(parameter), "\n");
  if (!function.results.empty()) text += cat("\nReturns ", function.results, ".\n");
  if (function.op != nullptr && function.op->grad == nullptr && !function.op->no_gradient.empty())
    text += cat("It has no gradient: ", function.op->no_gradient, ".\n");
  return text;
}

// ---- functions that Python calls ----------------------------------------------------------------

constexpr size_t kMost = 512;
std::vector<Function>& functions() {
  static auto* const made = new std::vector<Function>;  // Python's functions point here until exit.
  return *made;
}

using Entry = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

// Python's built-in functions are told apart by their C functions: one for each row of the table.
template <size_t i, bool is_method>
PyObject* enter(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded(
      [&] { return functions()[i].call(is_method ? self : nullptr, args, count, keywords); });
}
template <bool is_method, size_t... i>
constexpr std::array<Entry, kMost> entries_of(std::index_sequence<i...>) {
  return {enter<i, is_method>...};
}
constexpr std::array<Entry, kMost> kFunctionEntries =
    entries_of<false>(std::make_index_sequence<kMost>());
constexpr std::array<Entry, kMost> kMethodEntries =
    entries_of<true>(std::make_index_sequence<kMost>());

// Lives as long as the process, as Python wants it.
PyMethodDef* definition(const char* name, Entry entry, const std::string& document) {
  auto* const text = new std::string(document);
  return new PyMethodDef{name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(entry)),
                         METH_FASTCALL | METH_KEYWORDS, text->c_str()};
}

void add_function(nb::module_& module, size_t i) {
  const Function& function = functions()[i];
  const size_t colons = function.name.find("::");
  const std::string space =
      colons == std::string::npos ? "" : std::string(function.name.substr(0, colons));
  nb::object home = space.empty() ? nb::object(module) : nb::object(module.attr(space.c_str()));
  const auto* const name = new std::string(short_name(function.name));
  PyMethodDef* const made = definition(name->c_str(), kFunctionEntries[i],
                                       cat(function.signature, "\n--\n\n", function.document));
  const nb::str module_name((space.empty() ? "tidemark" : "tidemark." + space).c_str());
  home.attr(name->c_str()) = nb::steal(PyCFunction_NewEx(made, home.ptr(), module_name.ptr()));
}

struct Method {
  const char* name;
  std::string_view function;
};
constexpr Method kMethods[] = {
    {"all", "all"},        {"any", "any"},         {"argmax", "argmax"},
    {"argmin", "argmin"},  {"argsort", "argsort"}, {"astype", "cast"},
    {"cast", "cast"},      {"clip", "clip"},       {"conj", "conj"},
    {"conjugate", "conj"}, {"cumsum", "cumsum"},   {"dot", "matmul"},
    {"max", "max"},        {"mean", "mean"},       {"min", "min"},
    {"prod", "prod"},      {"repeat", "repeat"},   {"reshape", "reshape"},
    {"round", "round"},    {"sort", "sort"},       {"squeeze", "squeeze"},
    {"std", "std"},        {"sum", "sum"},         {"transpose", "transpose"},
    {"var", "var"},
};

void add_method(const Method& method, size_t i) {
  const Function& function = functions()[i];
  std::string signature = signature_of(function, 1);
  signature = method.name + signature.substr(signature.find('('));
  PyMethodDef* const made =
      definition(method.name, kMethodEntries[i], cat(signature, "\n--\n\n", function.document));
  const nb::object descriptor = nb::steal(PyDescr_NewMethod(tensor_class, made));
  nb::setattr(nb::handle(reinterpret_cast<PyObject*>(tensor_class)), method.name, descriptor);
}

// Nothing for a function that is bound elsewhere, or for a further signature of one.
std::optional<Function> function_of(const Callable& callable) {
  const Binding* const binding = find_binding(callable.name);
  const bool is_object = callable.op != nullptr && callable.op->calls.empty();
  if (binding == nullptr && !is_object) return {};
  if (!functions().empty() && functions().back().name == callable.name) return {};
  Callable shown = callable;
  if (binding != nullptr && !binding->arguments.empty()) shown.arguments = binding->arguments;
  Function function;
  function.name = callable.name;
  function.parameters = parameters_of(shown);
  function.results = callable.results;
  function.brief = callable.brief;
  function.op = callable.op;
  function.run = is_object ? family_binding(*callable.op) : binding->run;
  function.signature = signature_of(function);
  function.document = document_of(function);
  return function;
}

void bind_print(nb::module_& module) {
  module.def(
      "print",
      [](const nb::args& parts) {
        const Source at = calling_line();
        std::vector<detail::PrintPart> rest;
        for (const nb::handle part : parts) {
          if (is_tensor(part) || variable_in(part.ptr()) != nullptr)
            rest.emplace_back(tensor_from(part, at), at);
          else
            rest.emplace_back(std::string(nb::str(part).c_str()), at);
        }
        std::string first;
        if (!rest.empty() && !rest[0].is_tensor()) {
          first = rest[0].text;
          rest.erase(rest.begin());
        }
        const nb::gil_scoped_release unlocked;  // Lines end in sys.stdout: output.cc.
        detail::print_line(TextAt(first, at), rest);
      },
      nb::arg("parts"),
      "Prints one line of texts, numbers and tensors, also in compiled functions.");
}

// For the stubs: (name, [(parameter, kind, default or None)], results) of each function, and the
// function of each method.
nb::tuple signatures() {
  nb::list list;
  for (const Function& function : functions()) {
    nb::list parameters;
    for (const Parameter& parameter : function.parameters) {
      const nb::object fallback = parameter.fallback == nullptr
                                      ? nb::none()
                                      : nb::object(nb::repr(nb::handle(parameter.fallback)));
      parameters.append(nb::make_tuple(parameter.name, parameter.kind, fallback));
    }
    list.append(nb::make_tuple(function.name, parameters, function.results));
  }
  nb::dict methods;
  for (const Method& method : kMethods)
    methods[method.name] = nb::str(std::string(method.function).c_str());
  return nb::make_tuple(list, methods);
}

}  // namespace

void bind_ops(nb::module_& module) {
  module.def_submodule("random", "Random tensors and keys.");
  module.def_submodule("linalg", "Linear algebra on the matrices in the last two axes.");
  module.def_submodule("fft", "Fourier transforms.");
  functions().reserve(kMost);
  for (const Callable& callable : callables()) {
    std::optional<Function> function = function_of(callable);
    if (!function) continue;
    TIDEMARK_CHECK(functions().size() < kMost, "too many functions for the table of entries");
    functions().push_back(std::move(*function));
    add_function(module, functions().size() - 1);
  }
  for (const Method& method : kMethods)
    for (size_t i = 0; i < functions().size(); ++i)
      if (functions()[i].name == method.function) add_method(method, i);
  bind_print(module);
  module.def("_signatures", signatures);
}

}  // namespace tidemark::python
