// Plans, profiles and what they list: the fields of C++ under the same names.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include "bindings.h"
#include "budget.h"
#include "errors.h"
#include "shape.h"
#include "source.h"

namespace tidemark::python {
namespace {

// A plain record: its fields, and a text that lists them.
template <class T>
class Record {
 public:
  Record(nb::module_& module, const char* name, const char* doc)
      : cls_(module, name, doc), name_(name) {}
  template <class Field>
  Record& field(const char* name, Field T::* place) {
    cls_.def_ro(name, place);
    names_.push_back(name);
    return *this;
  }
  void finish() {
    cls_.def("__repr__", [name = name_, names = names_](nb::handle self) {
      std::string text = name + "(";
      for (size_t i = 0; i < names.size(); ++i) {
        const nb::object value = self.attr(names[i].c_str());
        text += cat(i == 0 ? "" : ", ", names[i], "=", nb::cast<std::string>(nb::repr(value)));
      }
      return text + ")";
    });
  }

 private:
  nb::class_<T> cls_;
  std::string name_;
  std::vector<std::string> names_;
};

void bind_records(nb::module_& module) {
  Record<PlanDecision>(module, "PlanDecision", "What a program does to need fewer bytes.")
      .field("what", &PlanDecision::what)
      .field("line", &PlanDecision::line)
      .field("layer", &PlanDecision::layer)
      .field("times", &PlanDecision::times)
      .field("bytes", &PlanDecision::bytes)
      .field("flop", &PlanDecision::flop)
      .field("more_work", &PlanDecision::more_work)
      .field("op", &PlanDecision::op)
      .finish();
  Record<TradeoffPoint>(module, "TradeoffPoint", "A program: its bytes, and the work it repeats.")
      .field("peak", &TradeoffPoint::peak)
      .field("flop", &TradeoffPoint::flop)
      .field("bytes_moved", &TradeoffPoint::bytes_moved)
      .field("more_work", &TradeoffPoint::more_work)
      .field("estimated_ms", &TradeoffPoint::estimated_ms)
      .finish();
  Record<PlanStep>(module, "PlanStep", "A step of the timeline.")
      .field("name", &PlanStep::name)
      .field("line", &PlanStep::line)
      .field("layer", &PlanStep::layer)
      .field("in_use", &PlanStep::in_use)
      .finish();
  Record<PlanTensor>(module, "PlanTensor", "A tensor that is live at the peak.")
      .field("type", &PlanTensor::type)
      .field("line", &PlanTensor::line)
      .field("layer", &PlanTensor::layer)
      .field("reason", &PlanTensor::reason)
      .field("bytes", &PlanTensor::bytes)
      .field("held_for", &PlanTensor::held_for)
      .finish();
  Record<PlanBuffer>(module, "PlanBuffer", "A buffer of a call: its lifetime and offset.")
      .field("name", &PlanBuffer::name)
      .field("type", &PlanBuffer::type)
      .field("line", &PlanBuffer::line)
      .field("layer", &PlanBuffer::layer)
      .field("reason", &PlanBuffer::reason)
      .field("byte_class", &PlanBuffer::byte_class)
      .field("bytes", &PlanBuffer::bytes)
      .field("offset", &PlanBuffer::offset)
      .field("begin", &PlanBuffer::begin)
      .field("end", &PlanBuffer::end)
      .field("memory", &PlanBuffer::memory)
      .field("arena", &PlanBuffer::arena)
      .finish();
  Record<PlanBlame>(module, "PlanBlame", "The part of the peak of a line or a layer.")
      .field("where", &PlanBlame::where)
      .field("bytes", &PlanBlame::bytes)
      .field("tensors", &PlanBlame::tensors)
      .finish();
  Record<PlanRecompute>(module, "PlanRecompute", "A td.recompute in the path of a gradient.")
      .field("line", &PlanRecompute::line)
      .field("times", &PlanRecompute::times)
      .field("peak", &PlanRecompute::peak)
      .field("without", &PlanRecompute::without)
      .finish();
  Record<PlanMemory>(module, "PlanMemory", "The needs of a call in one memory.")
      .field("name", &PlanMemory::name)
      .field("bytes", &PlanMemory::bytes)
      .field("load", &PlanMemory::load)
      .finish();
  Record<ProfileMemory>(module, "ProfileMemory", "What a run used of one memory.")
      .field("name", &ProfileMemory::name)
      .field("planned", &ProfileMemory::planned)
      .field("touched", &ProfileMemory::touched)
      .finish();
  Record<ProfileStep>(module, "ProfileStep", "The measurements of one step.")
      .field("name", &ProfileStep::name)
      .field("line", &ProfileStep::line)
      .field("layer", &ProfileStep::layer)
      .field("planned", &ProfileStep::planned)
      .field("in_use", &ProfileStep::in_use)
      .field("runs", &ProfileStep::runs)
      .field("time_ns", &ProfileStep::time_ns)
      .field("flop", &ProfileStep::flop)
      .field("bytes_moved", &ProfileStep::bytes_moved)
      .finish();
  Record<ProfileSlice>(module, "ProfileSlice", "An interval in which a thread worked on a step.")
      .field("step", &ProfileSlice::step)
      .field("thread", &ProfileSlice::thread)
      .field("begin_ns", &ProfileSlice::begin_ns)
      .field("end_ns", &ProfileSlice::end_ns)
      .finish();
  Record<CacheEntry>(module, "CacheEntry", "A trace of a function, and why it was made.")
      .field("signature", &CacheEntry::signature)
      .field("reason", &CacheEntry::reason)
      .field("bytes", &CacheEntry::bytes)
      .field("calls", &CacheEntry::calls)
      .field("trace_ms", &CacheEntry::trace_ms)
      .field("compile_ms", &CacheEntry::compile_ms)
      .finish();
}

// A search or a compilation, during which other threads run.
template <class R, R (Plan::*ask)() const>
R asked(const Plan& plan) {
  const nb::gil_scoped_release unlocked;
  return (plan.*ask)();
}

ByteClass byte_class_from(const std::string& given, Source at) {
  std::string all;
  for (int i = 0; i < kByteClasses; ++i) {
    const auto each = static_cast<ByteClass>(i);
    if (given == name(each)) return each;
    all += cat(all.empty() ? "" : ", ", name(each));
  }
  throw UserError(cat("of: there is no class ", given), at, cat("one of: ", all));
}

void bind_plan_class(nb::module_& module) {
  nb::class_<Plan>(module, "Plan", "The memory of a call, before it runs.")
      .def_prop_ro("peak", &Plan::peak, "The most bytes a call adds, besides the Variables.")
      .def_prop_ro("first_call", &Plan::first_call,
                   "The same of the next call, which may make Variables.")
      .def_prop_ro("floor", asked<Bytes, &Plan::floor>, "The least budget that fits.")
      .def_prop_ro("usual_peak", &Plan::usual_peak, "The peak without a budget.")
      .def_prop_ro("load", &Plan::load, "The largest sum of live bytes.")
      .def_prop_ro("arena", &Plan::arena, "The bytes of the arena and the results.")
      .def_prop_ro("flop", &Plan::flop, "The scalar operations of a call.")
      .def_prop_ro("bytes_moved", &Plan::bytes_moved, "The bytes of operands and results.")
      .def_prop_ro("more_work", &Plan::more_work, "Work done again, as a share of all work.")
      .def_prop_ro("decisions", asked<std::vector<PlanDecision>, &Plan::decisions>,
                   "What the program does to stay within its budget.")
      .def_prop_ro("memories", &Plan::memories, "The needs in each memory; the host's first.")
      .def_prop_ro(
          "timeline", [](const Plan& plan) { return plan.timeline(); }, "The steps, in order.")
      .def_prop_ro("peak_step", &Plan::peak_step, "The index of the step with the peak.")
      .def_prop_ro(
          "at_peak", [](const Plan& plan) { return plan.at_peak(); }, "The tensors at the peak.")
      .def_prop_ro("by_line", &Plan::by_line, "The bytes at the peak by line.")
      .def_prop_ro("by_layer", &Plan::by_layer, "The bytes at the peak by layer.")
      .def_prop_ro("buffers", &Plan::buffers, "Every buffer, with its place and lifetime.")
      .def_prop_ro("recomputes", asked<std::vector<PlanRecompute>, &Plan::recomputes>,
                   "The savings of each td.recompute.")
      .def_prop_ro(
          "open_sizes", [](const Plan& plan) { return plan.open_sizes(); },
          "The sizes that may differ from call to call.")
      .def("tradeoff", asked<std::vector<TradeoffPoint>, &Plan::tradeoff>,
           "Programs from the usual one down to the floor.")
      .def(
          "within",
          [](const Plan& plan, nb::handle budget) {
            const Source at = calling_line();
            const std::optional<Budget> bytes = budget_from(budget, at);
            if (!bytes)
              throw UserTypeError("within: a budget is missing", at,
                                  "write plan.within(64 * td.MiB)");
            const nb::gil_scoped_release unlocked;
            return plan.within(*bytes, at);
          },
          nb::arg("budget"), "The plan of the same call within a budget.")
      .def(
          "at",
          [](const Plan& plan, nb::handle sizes) {
            const Source at = calling_line();
            const Shape numbers = shape_from(sizes, at);
            const std::vector<int64_t> list(numbers.begin(), numbers.end());
            const nb::gil_scoped_release unlocked;
            return plan.at(list, at);
          },
          nb::arg("sizes"), "The plan for other values of the open sizes.")
      .def(
          "of",
          [](const Plan& plan, const std::string& byte_class) {
            return plan.of(byte_class_from(byte_class, calling_line()));
          },
          nb::arg("byte_class"), "The bytes of one class: \"outputs\", \"temporaries\", ...")
      .def("explain", asked<std::string, &Plan::explain>, "What causes the peak, for people.")
      .def("to_text", asked<std::string, &Plan::to_text>)
      .def("to_json", asked<std::string, &Plan::to_json>, "docs/plan_json.md has the schema.")
      .def("__repr__", [](const Plan& plan) { return cat(plan); });
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::enum_<ByteClass> classes(module, "ByteClass", "What bytes are held for.");
  for (int i = 0; i < kByteClasses; ++i)
    classes.value(name(static_cast<ByteClass>(i)), static_cast<ByteClass>(i));
  bind_records(module);
  bind_plan_class(module);
  nb::class_<Profile>(module, "Profile", "A measured run.")
      .def_ro("function", &Profile::function)
      .def_ro("planned", &Profile::planned)
      .def_ro("touched", &Profile::touched)
      .def_ro("steps", &Profile::steps)
      .def_ro("slices", &Profile::slices)
      .def_ro("slices_left_out", &Profile::slices_left_out)
      .def_ro("time_ns", &Profile::time_ns)
      .def_ro("flop", &Profile::flop)
      .def_ro("bytes_moved", &Profile::bytes_moved)
      .def_ro("memories", &Profile::memories)
      .def_ro("donated", &Profile::donated)
      .def_ro("not_donated", &Profile::not_donated)
      .def("to_json", &Profile::to_json, "docs/plan_json.md has the schema.")
      .def("__repr__", [](const Profile& profile) { return cat(profile); });
  nb::class_<CacheInfo>(module, "CacheInfo", "The traces and programs of a function.")
      .def_ro("entries", &CacheInfo::entries)
      .def_ro("bytes", &CacheInfo::bytes)
      .def_ro("limit", &CacheInfo::limit)
      .def_ro("traces", &CacheInfo::traces)
      .def_ro("evictions", &CacheInfo::evictions)
      .def_ro("remade", &CacheInfo::remade)
      .def("__repr__", [](const CacheInfo& info) { return cat(info); });
}

}  // namespace tidemark::python
