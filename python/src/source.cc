// Finding a line costs a walk over the line table of a code object, so lines are remembered by code
// object and instruction. The table has a fixed size: an entry gives way to the next one that falls
// on its slot. An entry holds its code object, so that its address names no other one.
#include "source.h"

#include <array>
#include <string>
#include <unordered_set>

#include "bindings.h"

namespace tidemark::python {
namespace {

struct Known {
  PyCodeObject* code = nullptr;
  int instruction = 0;
  bool ours = false;  // Code of the package: the caller's line is wanted instead.
  Source at = Source::none();
};
constexpr size_t kKnown = 4096;
std::array<Known, kKnown> known;

// The folder of the package, with a slash at its end; empty before it is imported.
std::string package_folder;

const char* interned(const char* text) {
  static auto* const texts =
      new std::unordered_set<std::string>;  // Never freed: sources point here.
  return texts->insert(text).first->c_str();
}

const char* utf8(PyObject* text) {
  const char* bytes = PyUnicode_AsUTF8(text);
  if (bytes == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return bytes;
}

Known& slot(PyCodeObject* code, int instruction) {
  const auto word =
      reinterpret_cast<uintptr_t>(code) / 16 + static_cast<uintptr_t>(instruction) * 31;
  return known[word % kKnown];
}

void learn(Known& entry, PyCodeObject* code, int instruction) {
  PyCodeObject* const previous = entry.code;
  const char* const file = utf8(code->co_filename);
  const int line = PyCode_Addr2Line(code, instruction);
  entry.at = Source::here(interned(file), line > 0 ? static_cast<unsigned>(line) : 1,
                          interned(utf8(code->co_name)));
  entry.ours = !package_folder.empty() &&
               std::string_view(file).substr(0, package_folder.size()) == package_folder;
  entry.instruction = instruction;
  entry.code = reinterpret_cast<PyCodeObject*>(Py_NewRef(reinterpret_cast<PyObject*>(code)));
  Py_XDECREF(reinterpret_cast<PyObject*>(previous));
}

const Known& look_up(PyFrameObject* frame) {
  PyCodeObject* const code = PyFrame_GetCode(frame);
  const int instruction = PyFrame_GetLasti(frame);
  Known& entry = slot(code, instruction);
  if (entry.code != code || entry.instruction != instruction) [[unlikely]]
    learn(entry, code, instruction);
  Py_DECREF(reinterpret_cast<PyObject*>(code));
  return entry;
}

}  // namespace

Source calling_line() {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  Source found = Source::none();
  while (frame != nullptr) {
    const Known& entry = look_up(frame);
    found = entry.at;
    const bool ours = entry.ours;
    PyFrameObject* const caller = ours ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(reinterpret_cast<PyObject*>(frame));
    frame = caller;
  }
  return found;
}

Source line_at(const char* file, unsigned line, const char* function) {
  return Source::here(interned(file), line, interned(function));
}

void bind_source(nb::module_& module) {
  module.def("_set_package_folder", [](const char* folder) { package_folder = folder; });
}

}  // namespace tidemark::python
