// What the host of two LLVMs runs once another one is loaded. True when the result is right. Too
// big for the path of tiny tensors; TIDEMARK_KERNELS=llvm makes machine code of it at once.
#include "tidemark/tidemark.h"

namespace td = tidemark;

extern "C" bool use_tidemark() {
  const td::Tensor x = td::ones({64, 64});
  return td::sum(x + x).item<float>() == 8192;
}
