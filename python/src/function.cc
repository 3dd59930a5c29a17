// td.Function: a user's Python function, traced and compiled.
//
// The object is a type of its own and not nanobind's, because a call goes through Python's
// vectorcall, and because the garbage collector must see the user's function. A function in a class
// is a descriptor: `model.step` is an object of the same type that holds `model`, and whose traces
// are those of that model alone, freed with it.
#include <structmember.h>

#include <any>
#include <memory>
#include <unordered_map>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include "bindings.h"
#include "budget.h"
#include "call.h"
#include "callback.h"
#include "captured.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "exchange.h"
#include "later.h"
#include "signature.h"
#include "source.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::python {
namespace {

struct FunctionObject;

// The traces of a function, or of a function and one object that it is a method of.
struct Traces {
  FunctionObject* of = nullptr;  // Holds the user's function, and outlives this.
  nb::object self = {};          // A weak reference to the object, if there is one.
  KnownStructures known;
  detail::VariablesMade made = {};
  bool reads_dataset = false;  // It runs as Python: no trace holds what a Dataset will give.
  std::unique_ptr<detail::FunctionCore> core;
};

// What the function itself has, and not what is bound to an object.
struct Definition {
  nb::object converted;  // What is traced: the function, or what autograph made of it.
  Signature signature, method_signature;
  FunctionOptions options;
  Source at;
  bool autograph;
  // By the address of the object; an entry goes when the object does.
  struct Instance {
    nb::object weak;
    std::shared_ptr<Traces> traces;
  };
  std::unordered_map<PyObject*, Instance> instances;
};

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* weak_references;
  PyObject* f;     // The user's function; null if bound.
  PyObject* base;  // Of a bound one: the function, a FunctionObject.
  PyObject* self;  // Of a bound one: the object.
  Definition* definition;
  std::shared_ptr<Traces>* traces;
};

PyTypeObject* function_class = nullptr;

FunctionObject& function_in(PyObject* object) { return *reinterpret_cast<FunctionObject*>(object); }
FunctionObject& base_of(FunctionObject& function) {
  return function.base == nullptr ? function : function_in(function.base);
}
const Signature& signature_of(FunctionObject& function) {
  const Definition& definition = *base_of(function).definition;
  return function.base == nullptr ? definition.signature : definition.method_signature;
}

// ---- tracing ------------------------------------------------------------------------------------

nb::object convert(nb::handle f) {
  return nb::module_::import_("tidemark.autograph").attr("convert")(f);
}

nb::handle traced_function(FunctionObject& base) {
  Definition& definition = *base.definition;
  if (base.f == nullptr)  // The garbage collector has taken it apart.
    throw UserError("the function is gone", definition.at);
  if (!definition.converted.is_valid())
    definition.converted = definition.autograph ? convert(base.f) : nb::borrow(base.f);
  return definition.converted;
}

nb::object self_of(const Traces& traces) {
  if (!traces.self.is_valid()) return {};
  PyObject* const self = PyWeakref_GET_OBJECT(traces.self.ptr());
  if (self == Py_None)
    throw UserError("the object that the function is a method of is gone", calling_line());
  return nb::borrow(self);
}

// What has changed of the captured Python values since `then`.
std::string changes_since(const Traces& traces, const Captured& then) {
  const nb::gil_scoped_acquire gil;
  return then.changes(Captured(traces.of->f, self_of(traces)));
}

detail::TraceResult trace_body(Traces& traces, std::span<const detail::Argument> leaves,
                               const std::any& structure) {
  const nb::gil_scoped_acquire gil;
  FunctionObject& base = *traces.of;
  const Definition& definition = *base.definition;
  const std::vector<nb::object> arguments =
      rebuilt_arguments(**std::any_cast<SharedTree>(&structure), leaves);
  const nb::object self = self_of(traces);
  const Signature& signature = self.is_valid() ? definition.method_signature : definition.signature;
  nb::object result;
  {
    const UserCode user;
    const detail::MakeOnce once(traces.made);
    const AutographScope autograph(definition.autograph);
    result = signature.call(traced_function(base), self, arguments);
  }
  detail::TraceResult taken =
      taken_result(result, cat("function \"", definition.options.name, "\""), definition.at);
  traces.known.add_traced(*std::any_cast<SharedTree>(&taken.structure));
  taken.changed = [&traces, then = Captured(base.f, self)] { return changes_since(traces, then); };
  return taken;
}

std::shared_ptr<Traces> new_traces(FunctionObject& base, nb::object self) {
  auto traces = std::make_shared<Traces>();
  traces->of = &base;
  traces->self = std::move(self);
  const Definition& definition = *base.definition;
  Traces* const here = traces.get();
  traces->core = std::make_unique<detail::FunctionCore>(
      definition.options,
      [here](std::span<const detail::Argument> leaves, const std::any& structure) {
        return trace_body(*here, leaves, structure);
      },
      definition.at);
  return traces;
}

// ---- calls --------------------------------------------------------------------------------------

// The structure of a result: copied while the call runs, without the GIL.
class ResultTree {
 public:
  void operator()(const std::any& structure) { tree_ = *std::any_cast<SharedTree>(&structure); }
  const Tree& operator*() const { return *tree_; }

 private:
  SharedTree tree_;
};

// Runs the user's function as it is, on the tensors that a trace would have got.
PyObject* call_as_python(FunctionObject& function, Traces& traces, const PythonCall& call) {
  FunctionObject& base = base_of(function);
  const Definition& definition = *base.definition;
  const std::vector<nb::object> arguments = rebuilt_arguments(call.tree(), call.arguments().leaves);
  nb::object result;
  {
    const UserCode user;
    const detail::MakeOnce once(traces.made, detail::MakeOnce::Where::anywhere);
    result = signature_of(function).call(base.f, self_of(traces), arguments);
  }
  detail::TraceResult taken =
      taken_result(result, cat("function \"", definition.options.name, "\""), definition.at);
  return filled_result(**std::any_cast<SharedTree>(&taken.structure), taken.leaves);
}

// After a trace that came to a Dataset. Under a budget, or inside another trace, that is an error.
bool may_run_as_python(FunctionObject& function, Traces& traces, const nb::python_error& error) {
  const FunctionOptions& options = base_of(function).definition->options;
  const std::optional<Source> line = dataset_in_trace(error);
  if (!line || detail::is_tracing() || options.budget.has_value()) return false;
  detail::warn(
      cat("function \"", options.name,
          "\" reads a Dataset, so it is not compiled: every call runs it as Python, op by op. "
          "Functions that it calls are compiled: put what it does with an element into one"),
      *line);
  traces.reads_dataset = true;
  return true;
}

PyObject* call(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
  return guarded([&]() -> PyObject* {
    FunctionObject& function = function_in(object);
    const Source at = calling_line();
    Traces& traces = **function.traces;
    const PythonCall call(signature_of(function), traces.known, arguments,
                          PyVectorcall_NARGS(flags), names, at);
    if (traces.reads_dataset && !detail::is_tracing()) [[unlikely]]
      return call_as_python(function, traces, call);
    ResultTree tree;
    detail::CallResult results;
    try {
      const nb::gil_scoped_release unlocked;
      results = traces.core->call(call.arguments(), tree, at);
    } catch (const nb::python_error& error) {
      if (!may_run_as_python(function, traces, error)) throw;
      return call_as_python(function, traces, call);
    }
    return filled_result(*tree, results);
  });
}

// Runs f(core, call, option) for a method whose last keyword may be an option of the method itself.
template <class F>
PyObject* ask(PyObject* object, PyObject* const* arguments, Py_ssize_t count, PyObject* names,
              const char* option, F f) {
  return guarded([&]() -> PyObject* {
    FunctionObject& function = function_in(object);
    const Source at = calling_line();
    nb::object given = nb::none();
    std::vector<PyObject*> passed(arguments, arguments + count);
    nb::list keys;
    const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < named; ++i) {
      PyObject* const name = PyTuple_GET_ITEM(names, i);
      if (option != nullptr && PyUnicode_CompareWithASCIIString(name, option) == 0) {
        given = nb::borrow(arguments[count + i]);
      } else {
        keys.append(nb::handle(name));
        passed.push_back(arguments[count + i]);
      }
    }
    const nb::object kept = nb::steal(PySequence_Tuple(keys.ptr()));
    Traces& traces = **function.traces;
    const PythonCall call(signature_of(function), traces.known, passed.data(), count, kept.ptr(),
                          at);
    nb::object answer = f(*traces.core, call.arguments(), given, at);
    return answer.release().ptr();
  });
}

template <class F>
auto unlocked(F f) {
  const nb::gil_scoped_release without;
  return f();
}

PyObject* plan(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return ask(self, arguments, count, names, "budget",
             [](const detail::FunctionCore& core, const detail::Arguments& all, nb::handle budget,
                Source at) {
               const PlanOptions options{.budget = budget_from(budget, at)};
               return nb::cast(unlocked([&] { return core.plan(all, options, at); }));
             });
}

PyObject* tradeoff(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return ask(
      self, arguments, count, names, nullptr,
      [](const detail::FunctionCore& core, const detail::Arguments& all, nb::handle, Source at) {
        return nb::cast(unlocked([&] { return core.plan(all, {}, at).tradeoff(); }));
      });
}

PyObject* largest(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return ask(self, arguments, count, names, "budget",
             [](const detail::FunctionCore& core, const detail::Arguments& all, nb::handle given,
                Source at) {
               const std::optional<Budget> budget = budget_from(given, at);
               if (!budget)
                 throw UserTypeError(
                     "largest: a budget is missing", at,
                     "write step.largest(td.spec((None, 784)), budget=64 * td.MiB)");
               return nb::cast(unlocked([&] { return core.largest(all, *budget, at); }));
             });
}

PyObject* saved_for_gradient(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* names) {
  return ask(
      self, arguments, count, names, nullptr,
      [](const detail::FunctionCore& core, const detail::Arguments& all, nb::handle, Source at) {
        return nb::cast(unlocked([&] { return core.saved_for_gradient(all, at); }));
      });
}

PyObject* profile(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return ask(self, arguments, count, names, nullptr,
             [](const detail::FunctionCore& core, const detail::Arguments& all, nb::handle,
                Source at) -> nb::object {
               ResultTree tree;
               auto [results, profile] = unlocked([&] { return core.profile(all, tree, at); });
               const nb::object result = nb::steal(filled_result(*tree, results));
               return nb::make_tuple(result, std::move(profile));
             });
}

// The memory of another Python object, for the results that lie in it.
class Arena {
 public:
  Arena(nb::handle memory, Source at) : held_(std::make_shared<Held>()) {
    if (PyObject_GetBuffer(memory.ptr(), &held_->view, PyBUF_WRITABLE) == 0) return;
    PyErr_Clear();
    throw UserTypeError(
        cat("run_in: memory that can be written is wanted, got ", Py_TYPE(memory.ptr())->tp_name),
        at, "give np.empty(plan.arena + 64, np.uint8)");
  }

  // The part of it from the first aligned address on.
  std::span<std::byte> aligned(Bytes needed, Source at) const {
    const Py_buffer& view = held_->view;
    const int64_t skipped = -static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.buf)) & 63;
    const int64_t left = view.len - skipped;
    if (left < needed.count)
      throw UserError(cat("run_in: the plan needs ", needed.count,
                          " bytes aligned to 64, and of the memory's ", view.len, " bytes ",
                          std::max<int64_t>(left, 0), " lie behind the first such address"),
                      at, "give np.empty(plan.arena + 64, np.uint8)");
    return {static_cast<std::byte*>(view.buf) + skipped, static_cast<size_t>(left)};
  }

  // The same tensor, which keeps the memory.
  Tensor keep(const Tensor& x, Source at) const {
    return over_memory(
        detail::array_of(x, at),
        [held = held_]() mutable {
          release_with_gil([last = std::move(held)]() mutable { last.reset(); });
        },
        at);
  }

 private:
  struct Held {
    Py_buffer view = {};
    ~Held() { PyBuffer_Release(&view); }
  };
  std::shared_ptr<Held> held_;
};

PyObject* run_in(PyObject* object, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Source at = calling_line();
    if (count < 2 || !nb::isinstance<Plan>(arguments[0]))
      throw UserTypeError("run_in: a plan and memory for it are wanted in front of the arguments",
                          at, "write f.run_in(f.plan(x), memory, x)");
    const Plan& plan = *nb::inst_ptr<Plan>(arguments[0]);
    const Arena arena(arguments[1], at);
    const std::span<std::byte> memory = arena.aligned(plan.arena(), at);
    FunctionObject& function = function_in(object);
    Traces& traces = **function.traces;
    const PythonCall call(signature_of(function), traces.known, arguments + 2, count - 2, names,
                          at);
    ResultTree tree;
    detail::CallResult results;
    {
      const nb::gil_scoped_release without;
      results = traces.core->run_in(plan, memory, call.arguments(), tree, at);
    }
    for (Tensor& result : results) result = arena.keep(result, at);
    return filled_result(*tree, results);
  });
}

// ---- questions without arguments ----------------------------------------------------------------

template <class F>
PyObject* look(PyObject* self, F f) {
  return guarded([&] {
    const detail::FunctionCore& core = *(*function_in(self).traces)->core;
    return nb::cast(unlocked([&] { return f(core); })).release().ptr();
  });
}

PyObject* cache_info(PyObject* self, PyObject*) {
  return look(self, [](const detail::FunctionCore& core) { return core.cache_info(); });
}
PyObject* report(PyObject* self, PyObject*) {
  return look(self, [](const detail::FunctionCore& core) { return core.report(); });
}
PyObject* check_captures(PyObject* self, PyObject*) {
  const Source at = calling_line();
  return look(self, [at](const detail::FunctionCore& core) { return core.check_captures(at); });
}
PyObject* clear_cache(PyObject* self, PyObject*) {
  return look(self, [](const detail::FunctionCore& core) {
    core.clear_cache();
    return nullptr;
  });
}
PyObject* text(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count > 1 || (count == 1 && !PyUnicode_Check(arguments[0])))
      throw UserTypeError("text: the name of a pass is wanted, or nothing", calling_line());
    const std::string pass =
        count == 1 ? nb::cast<std::string>(nb::handle(arguments[0])) : std::string();
    return look(self, [&](const detail::FunctionCore& core) { return core.text(pass); });
  });
}

// ---- methods of classes -------------------------------------------------------------------------

FunctionObject* new_object() {
  auto* const made = PyObject_GC_New(FunctionObject, function_class);
  if (made == nullptr) nb::raise_python_error();
  made->vectorcall = call;
  made->weak_references = made->f = made->base = made->self = nullptr;
  made->definition = nullptr;
  made->traces = nullptr;
  return made;
}

// The traces for one object. They go when it goes.
std::shared_ptr<Traces> traces_for(FunctionObject& base, PyObject* self) {
  auto& instances = base.definition->instances;
  const auto known = instances.find(self);
  if (known != instances.end()) return known->second.traces;
  const nb::object of_base =
      nb::steal(PyWeakref_NewRef(reinterpret_cast<PyObject*>(&base), nullptr));
  const nb::object drop = nb::cpp_function([of_base, self](nb::handle) {
    PyObject* const alive = PyWeakref_GET_OBJECT(of_base.ptr());
    if (alive == Py_None) return;
    auto& all = function_in(alive).definition->instances;
    const auto entry = all.find(self);
    if (entry == all.end()) return;
    const Definition::Instance dropped = std::move(entry->second);
    all.erase(entry);
  });
  PyObject* const weak = PyWeakref_NewRef(self, drop.ptr());
  if (weak == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  Definition::Instance made{nb::steal(weak), nullptr};
  made.traces = new_traces(base, made.weak);
  return instances.emplace(self, std::move(made)).first->second.traces;
}

PyObject* get(PyObject* object, PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    FunctionObject& base = function_in(object);
    if (self == nullptr || self == Py_None || base.base != nullptr) return Py_NewRef(object);
    std::shared_ptr<Traces> traces = traces_for(base, self);
    if (traces == nullptr)
      throw UserTypeError(
          cat("function \"", base.definition->options.name, "\": ", Py_TYPE(self)->tp_name,
              " cannot be referred to weakly, so its traces could not be freed with it"),
          calling_line(), "add \"__weakref__\" to its __slots__");
    FunctionObject* const made = new_object();
    made->base = Py_NewRef(object);
    made->self = Py_NewRef(self);
    made->traces = new std::shared_ptr<Traces>(std::move(traces));
    PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
    return reinterpret_cast<PyObject*>(made);
  });
}

// ---- the object ---------------------------------------------------------------------------------

std::vector<TensorSpec> signature_from(nb::handle given, Source at) {
  std::vector<TensorSpec> list;
  if (given.is_none()) return list;
  for (const nb::object& leaf : flatten(given).leaves) {
    if (!nb::isinstance<TensorSpec>(leaf))
      throw UserTypeError(
          cat("input_signature: a spec is wanted, got ", Py_TYPE(leaf.ptr())->tp_name), at,
          "write input_signature=[td.spec((None, 784))]");
    list.push_back(nb::cast<TensorSpec>(leaf));
  }
  return list;
}

PyObject* make(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Source at = calling_line();
    static const char* names[] = {"f",         "name",        "budget",         "input_signature",
                                  "jit",       "cache_limit", "check_captures", "autograph",
                                  "when_full", "autocast",    nullptr};
    PyObject *f = nullptr, *name = Py_None, *budget = Py_None, *signature = Py_None,
             *limit = Py_None, *when_full = Py_None, *autocast = Py_None;
    int jit = 1, check = 0, autograph = 1;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|$OOOpOppOO:Function",
                                     const_cast<char**>(names), &f, &name, &budget, &signature,
                                     &jit, &limit, &check, &autograph, &when_full, &autocast))
      return nullptr;
    if (!PyCallable_Check(f))
      throw UserTypeError(cat("function: ", Py_TYPE(f)->tp_name, " cannot be called"), at,
                          "write @td.function above a function");
    FunctionOptions options;
    if (name == Py_None && PyObject_HasAttrString(f, "__name__") != 0)
      options.name = nb::cast<std::string>(nb::handle(f).attr("__name__"));
    else if (name == Py_None)
      options.name = Py_TYPE(f)->tp_name;
    else
      options.name = nb::cast<std::string>(nb::handle(name));
    options.budget = budget_from(budget, at);
    options.input_signature = signature_from(signature, at);
    if (autocast != Py_None) {
      options.autocast = dtype_argument(autocast, at);
      const Autocast checked(*options.autocast, at);
    }
    options.jit = jit != 0;
    options.check_captures = check != 0;
    options.when_full = wait_from(when_full, at);
    if (limit != Py_None) options.cache_limit = bytes_from(limit, "cache_limit", at);
    FunctionObject* const made = new_object();
    const nb::object held = nb::steal(reinterpret_cast<PyObject*>(made));
    made->f = Py_NewRef(f);
    made->definition = new Definition{
        {}, Signature(f), Signature(f, 1), std::move(options), at, autograph != 0, {}};
    made->traces = new std::shared_ptr<Traces>(new_traces(*made, {}));
    PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
    return Py_NewRef(held.ptr());
  });
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  FunctionObject& function = function_in(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(function.f);
  Py_VISIT(function.base);
  Py_VISIT(function.self);
  if (function.definition == nullptr) return 0;  // A bound one: the function itself reports.
  const Definition& definition = *function.definition;
  Py_VISIT(definition.converted.ptr());
  int stopped = definition.signature.traverse(visit, arg);
  if (stopped == 0) stopped = definition.method_signature.traverse(visit, arg);
  if (stopped == 0 && function.traces != nullptr)
    stopped = (*function.traces)->known.traverse(visit, arg);
  for (const auto& [object, instance] : definition.instances)
    if (stopped == 0) stopped = instance.traces->known.traverse(visit, arg);
  return stopped;
}

// Traces may hold what refers to the function: td.Static((f, 2)).
void forget_traces(FunctionObject& function) {
  // Dropping an object may drop another whose traces are in the list.
  std::vector<std::shared_ptr<Traces>> all;
  if (function.traces != nullptr) all.push_back(*function.traces);
  for (const auto& [object, instance] : function.definition->instances)
    all.push_back(instance.traces);
  for (const auto& traces : all) {
    traces->core->clear_cache();
    traces->known.clear();
  }
}

int clear(PyObject* object) {
  FunctionObject& function = function_in(object);
  if (function.definition != nullptr) {
    function.definition->converted = {};
    forget_traces(function);
  }
  Py_CLEAR(function.f);
  Py_CLEAR(function.self);
  Py_CLEAR(function.base);
  return 0;
}

void destroy(PyObject* object) {
  FunctionObject& function = function_in(object);
  PyObject_GC_UnTrack(object);
  if (function.weak_references != nullptr) PyObject_ClearWeakRefs(object);
  clear(object);
  delete function.traces;
  delete function.definition;
  PyTypeObject* const type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* shown(PyObject* object) {
  return guarded([&] {
    const Definition& definition = *base_of(function_in(object)).definition;
    return nb::cast(cat("<tidemark.Function ", definition.options.name, " of ",
                        definition.at.text(), ">"))
        .release()
        .ptr();
  });
}

PyObject* attribute_of_f(PyObject* object, void* name) {
  PyObject* const f = base_of(function_in(object)).f;
  PyObject* const found = PyObject_GetAttrString(f, static_cast<const char*>(name));
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  Py_RETURN_NONE;
}
PyObject* wrapped(PyObject* object, void*) { return Py_NewRef(base_of(function_in(object)).f); }
PyObject* name_of(PyObject* object, void*) {
  return guarded([&] {
    return nb::cast(base_of(function_in(object)).definition->options.name).release().ptr();
  });
}

template <class F>
PyCFunction method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
PyMethodDef methods[] = {
    {"plan", method(plan), kFast,
     "plan(*arguments, budget=None): the memory plan of such a call; tensors may be specs."},
    {"tradeoff", method(tradeoff), kFast,
     "tradeoff(*arguments): programs from the usual one down to the one of the fewest bytes."},
    {"largest", method(largest), kFast,
     "largest(*arguments, budget): the largest value of the first open size that fits."},
    {"saved_for_gradient", method(saved_for_gradient), kFast,
     "saved_for_gradient(*arguments): the bytes that a tape around such a call stores."},
    {"profile", method(profile), kFast,
     "profile(*arguments): (result, Profile) of a measured run."},
    {"run_in", method(run_in), kFast,
     "run_in(plan, memory, *arguments): runs in a writable buffer of plan.arena bytes, which also "
     "holds the results: they change when it is written again."},
    {"text", method(text), METH_FASTCALL,
     "text(pass=''): the program after a pass, or as it runs."},
    {"cache_info", method(cache_info), METH_NOARGS, "The traces and programs it holds."},
    {"clear_cache", method(clear_cache), METH_NOARGS, "Drops all traces and programs."},
    {"report", method(report), METH_NOARGS, "What tracing has frozen, with the lines."},
    {"check_captures", method(check_captures), METH_NOARGS,
     "Names what was frozen into the program and has changed since; empty if nothing has."},
    {nullptr, nullptr, 0, nullptr}};
char name_text[] = "__name__", qualname_text[] = "__qualname__", module_text[] = "__module__",
     doc_text[] = "__doc__";
PyGetSetDef attributes[] = {{"__name__", attribute_of_f, nullptr, nullptr, name_text},
                            {"__qualname__", attribute_of_f, nullptr, nullptr, qualname_text},
                            {"__module__", attribute_of_f, nullptr, nullptr, module_text},
                            {"__doc__", attribute_of_f, nullptr, nullptr, doc_text},
                            {"__wrapped__", wrapped, nullptr, nullptr, nullptr},
                            {"name", name_of, nullptr, "Its name in plans and messages.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weak_references), READONLY,
     nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_repr, reinterpret_cast<void*>(shown)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(get)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"tidemark.Function", sizeof(FunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

void bind_function(nb::module_& module) {
  function_class = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (function_class == nullptr) nb::raise_python_error();
  module.attr("Function") = nb::handle(reinterpret_cast<PyObject*>(function_class));
  module.def(
      "is_tracing", [] { return detail::is_tracing(); },
      "Whether a function is being traced on this thread.");
  module.def(
      "is_traced",
      [](nb::handle x) {
        return is_tensor(x) && tensor_in(x).has_value() &&
               detail::TensorState::of(tensor_in(x))->kind == detail::TensorState::Kind::traced;
      },
      nb::arg("x").none(),
      "Whether x is a tensor of a function that is being traced, known only at run time.");
}

}  // namespace tidemark::python
