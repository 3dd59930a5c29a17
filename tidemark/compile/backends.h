// The table of backends by memory.
#pragma once

#include "tidemark/compile/backend.h"
#include "tidemark/device/memory.h"

namespace tidemark::compile {

// The host's memory has the CPU's backend. Throws a UserError if the memory has none.
const Backend& backend_of(int32_t memory);

// While it exists, `backend` computes in the memory of this number.
class BackendRegistration {
 public:
  BackendRegistration(int32_t memory, const Backend& backend);
  ~BackendRegistration();
  BackendRegistration(const BackendRegistration&) = delete;
  BackendRegistration& operator=(const BackendRegistration&) = delete;

 private:
  int32_t memory_;
};

// Copies, converts or fills: the steps that the layout itself adds to a program.
TaskPlan copy_task(const Backend& backend, const ArrayRef& from, const ArrayRef& to, int threads);
TaskPlan fill_task(const Backend& backend, uint64_t number, const ArrayRef& to, int threads);

}  // namespace tidemark::compile
