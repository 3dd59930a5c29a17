#include "tape_holds.h"

#include <algorithm>

#include "holds.h"

namespace tidemark::python {
namespace {

// The one reference that tapes share.
struct TapeReference {
  PyObject* object;
  std::weak_ptr<PyObject> held;
  long tapes;  // That refer to this.

  int traverse(visitproc visit, void* arg) const {
    const long copies = held.use_count();
    if (copies > 0 && copies <= tapes) Py_VISIT(object);
    return 0;
  }
};

std::vector<TapeHolds*>& recording() {
  static auto* const all = new std::vector<TapeHolds*>;
  return *all;
}

}  // namespace

void TapeHolds::start() {
  tape_ = detail::current_tape();
  thread_ = std::this_thread::get_id();
  recording().push_back(this);
}

void TapeHolds::stop() { std::erase(recording(), this); }

int TapeHolds::traverse(visitproc visit, void* arg) const {
  for (const nb::object& each : list_) Py_VISIT(each.ptr());
  return 0;
}

void held_by_tapes(const Held& function, const Tensors& results) {
  const std::thread::id here = std::this_thread::get_id();
  std::vector<TapeHolds*> tapes;
  for (TapeHolds* const each : recording())
    if (each->thread_ == here &&
        std::any_of(results.begin(), results.end(), [&](const Tensor& result) {
          return each->tape_->made_last(detail::tape_id_of(result));
        }))
      tapes.push_back(each);
  if (tapes.empty()) return;
  const nb::object reference = nb::cast(
      TapeReference{function.get().ptr(), function.weak(), static_cast<long>(tapes.size())});
  for (TapeHolds* const each : tapes) each->list_.push_back(reference);
}

void bind_tape_holds(nb::module_& module) {
  nb::class_<TapeReference>(module, "_TapeReference",
                            nb::type_slots(traversed_slots<TapeReference>()));
}

}  // namespace tidemark::python
