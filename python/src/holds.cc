#include "holds.h"

#include <algorithm>

#include "model.h"

namespace tidemark::python {
namespace {

struct Recorded {
  Held held;
  bool is_initializer;
};
// Those of the object that this thread is making; null if it is making none.
thread_local std::vector<Recorded>* recording = nullptr;

class Recording {
 public:
  Recording() : outer_(std::exchange(recording, &recorded_)) {}
  ~Recording() { recording = outer_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // What `owner` holds, or none. One copy of each reference is here.
  nb::object holds_of(nb::handle owner) {
    const auto holds = std::make_shared<Holds>();
    bool has_initializers = false;
    for (const auto& [held, is_initializer] : recorded_) {
      const long copies = held.copies() - 1;
      if (copies == 0) continue;
      is_initializer ? holds->add_initializer(held, copies) : holds->add(held, copies);
      has_initializers |= is_initializer;
    }
    if (holds->empty()) return nb::none();
    if (has_initializers) holds->set_variables(variables_of(owner));
    return holds_object(holds);
  }

 private:
  static Holds::Variables variables_of(nb::handle owner) {
    Holds::Variables variables;
    see_own_variables_of(owner, [&](const detail::VariablePath&, const Variable& variable) {
      const auto& state = detail::VariableState::of(variable);
      variables.emplace_back(state, state.use_count());
    });
    return variables;
  }
  std::vector<Recorded> recorded_;
  std::vector<Recorded>* outer_;
};

// Calls f, which makes an object or initialises its first argument. Returns its result, and the
// references that the object holds.
nb::object holding(nb::handle f, const nb::args& args, const nb::kwargs& kwargs) {
  Recording made;
  const nb::object result = nb::steal(PyObject_Call(f.ptr(), args.ptr(), kwargs.ptr()));
  if (!result.is_valid()) nb::raise_python_error();
  return nb::make_tuple(result, made.holds_of(result.is_none() ? nb::object(args[0]) : result));
}

// ---- the object ---------------------------------------------------------------------------------

struct HoldsObject {
  std::shared_ptr<Holds> holds;
  std::vector<nb::object> inputs;

  int traverse(visitproc visit, void* arg) const {
    for (const nb::object& input : inputs) Py_VISIT(input.ptr());
    return holds->traverse(visit, arg);
  }
};

Held record(nb::handle object, Held::Drop drop, bool is_initializer) {
  Held held(object, drop);
  if (recording != nullptr) recording->push_back({held, is_initializer});
  return held;
}

}  // namespace

void Holds::add(const Held& held, long copies) { add_reference(held, copies, false); }

void Holds::add_reference(const Held& held, long copies, bool is_initializer) {
  std::erase_if(references_, [](const Reference& each) { return each.held.expired(); });
  references_.push_back({held.get().ptr(), held.weak(), copies, is_initializer});
}

int Holds::traverse(visitproc visit, void* arg) const {
  const bool owns_variables =
      std::all_of(variables_.begin(), variables_.end(),
                  [](const auto& each) { return each.first.use_count() == each.second; });
  for (const Reference& each : references_)
    if (each.held.use_count() == each.copies && (!each.is_initializer || owns_variables))
      Py_VISIT(each.object);
  return 0;
}

nb::object holds_object(std::shared_ptr<Holds> holds, std::vector<nb::object> inputs) {
  return nb::cast(HoldsObject{std::move(holds), std::move(inputs)});
}

Held recorded(nb::handle object) { return record(object, Held::Drop::waits, false); }
// A Variable drops its initializer under its lock, where nothing may wait for the GIL.
Held recorded_initializer(nb::handle object) { return record(object, Held::Drop::later, true); }

int traverse_instance(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  PyObject** const attributes = _PyObject_GetDictPtr(self);
  if (attributes != nullptr) Py_VISIT(*attributes);
  return 0;
}

void bind_holds(nb::module_& module) {
  nb::class_<HoldsObject>(module, "_Holds", nb::type_slots(traversed_slots<HoldsObject>()));
  module.def("_holding", holding);
}

}  // namespace tidemark::python
