#include "tidemark/compile/backends.h"

#include <atomic>

#include "tidemark/base/error.h"
#include "tidemark/compile/cpu/backend.h"
#include "tidemark/ops/structure.h"

namespace tidemark::compile {
namespace {

constinit std::atomic<const Backend*> backends[device::kMostMemories] = {};

TaskPlan cast_task(const Backend& backend, const OperandLayout& from, const ArrayRef& to,
                   int threads) {
  Attrs attrs;
  attrs.add(to.dtype);
  return backend.op({.op = def_of(&ops::cast),
                     .operands = {&from, 1},
                     .attrs = attrs,
                     .results = {&to, 1},
                     .threads = threads});
}

}  // namespace

const Backend& backend_of(int32_t memory) {
  if (memory == device::kHostMemory) return cpu_backend();
  // Throws if there is no such memory.
  const std::string_view name = device::memory(memory).name();
  const Backend* const found = backends[memory].load(std::memory_order_acquire);
  if (found == nullptr) {
    throw UserError(
        cat("memory ", memory, " (\"", name, "\") has no backend"), Source::none(),
        "the device must register one that computes there: compile::BackendRegistration");
  }
  return *found;
}

BackendRegistration::BackendRegistration(int32_t memory, const Backend& backend) : memory_(memory) {
  (void)device::memory(memory);
  backends[memory].store(&backend, std::memory_order_release);
}

BackendRegistration::~BackendRegistration() { backends[memory_].store(nullptr); }

TaskPlan copy_task(const Backend& backend, const ArrayRef& from, const ArrayRef& to, int threads) {
  if (is_complex(to.dtype)) return copy_task(backend, pairs_of(from), pairs_of(to), threads);
  return cast_task(backend, {.layout = from}, to, threads);
}

TaskPlan fill_task(const Backend& backend, uint64_t number, const ArrayRef& to, int threads) {
  const ArrayRef one{.data = nullptr, .dtype = to.dtype, .shape = {}, .strides = {}};
  return cast_task(backend, {.is_number = true, .number = number, .layout = one}, to, threads);
}

}  // namespace tidemark::compile
