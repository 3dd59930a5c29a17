// For tests that count the bytes of a plan. Sanitizer builds interpret kernels, which needs other
// scratch than machine code, and do not compile loops.
#pragma once

#include "tidemark/compile/cpu/kernels.h"

namespace tidemark {

// While it exists kernels are machine code in every build.
class MachineCode {
 public:
  MachineCode() : before_(compile::emitter()) { compile::set_emitter(compile::Emitter::llvm); }
  ~MachineCode() { compile::set_emitter(before_); }
  MachineCode(const MachineCode&) = delete;
  MachineCode& operator=(const MachineCode&) = delete;

 private:
  compile::Emitter before_;
};

}  // namespace tidemark
