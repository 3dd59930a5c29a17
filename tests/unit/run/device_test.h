// The fixture of tests on a memory that the host can neither read nor write, with its backend.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/machine_code.h"
#include "tests/unit/run/test_memory.h"
#include "tidemark/compile/backends.h"
#include "tidemark/tidemark.h"

namespace tidemark::testing {

class DeviceTest : public ::testing::Test {
 protected:
  Tensor to_device(const Tensor& x) const { return transfer(x, number_.number()); }
  static Tensor to_host(const Tensor& x) { return transfer(x, 0); }

  // What a call that should fail says, without the line that it names.
  template <class F>
  static std::string error_of(F f) {
    try {
      f();
    } catch (const Error& error) {
      return without_line(error.what());
    }
    return "no error";
  }

  const MachineCode machine_;
  TestMemory memory_;
  device::MemoryNumber number_{memory_};
  TestBackend backend_;
  compile::BackendRegistration registration_{number_.number(), backend_};
};

}  // namespace tidemark::testing
