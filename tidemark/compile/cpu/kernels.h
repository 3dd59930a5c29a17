// Kernels for eager code: made once per op, dtypes and layout class, never per size. Kernels for
// programs: made once per nest.
//
// The first uses of a kernel run the tile interpreter, which costs nothing to make. Once a kernel
// has done enough work to pay for compiling it, machine code takes over. Both give the same bits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tidemark/compile/backend.h"
#include "tidemark/device/kernel.h"
#include "tidemark/device/threads.h"
#include "tidemark/loops/nest.h"
#include "tidemark/loops/recurrence.h"

namespace tidemark::compile {

// Who runs nests. `automatic` unless TIDEMARK_KERNELS (tile, llvm, checked) or a test says
// otherwise.
enum class Emitter : uint8_t { automatic, tile, llvm, checked };
void set_emitter(Emitter emitter);
Emitter emitter();

// What a kernel is looked up by: the op (or the name of a lowering), and everything about dtypes
// and layout that its nest depends on, packed.
struct KernelKey {
  const void* op = nullptr;
  uint64_t form = 0;
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};

// How much work an element of a nest is, in units of an addition: decides how finely threads split.
int64_t weight_of(const Nest& nest);

class CachedKernel {
 public:
  CachedKernel(const KernelKey& key, Nest nest);
  ~CachedKernel();
  CachedKernel(const CachedKernel&) = delete;
  CachedKernel& operator=(const CachedKernel&) = delete;

  // The kernel to run over `elements` now.
  const Kernel& pick(int64_t elements);
  // The kernel to run from now on, compiled at once unless the emitter is an interpreter. Throws
  // std::bad_alloc where there is no memory to compile.
  const Kernel& settle();
  // Whether machine code serves it, made or still to be made.
  bool may_be_code();
  const KernelKey& key() const { return key_; }
  const Nest& nest() const { return nest_; }
  int64_t weight() const { return weight_; }

 private:
  friend class KernelBatch;
  const Kernel& tile();
  const Kernel* code() const { return ready_.load(std::memory_order_acquire); }
  const Kernel* machine_code();
  const Kernel* adopt(std::unique_ptr<Kernel> made);

  KernelKey key_;
  Nest nest_;
  int64_t weight_;
  std::atomic<int64_t> work_{0};
  std::atomic<const Kernel*> ready_{nullptr};  // Machine code, once it exists.
  std::atomic<const Kernel*> interpreted_{nullptr};
  std::atomic<bool> refused_{false};  // The JIT does not do this nest.
};

// The kernel of a key; `make` gives its nest the first time. Kept for the life of the process:
// their number is bounded by ops x dtypes x layout classes.
CachedKernel& cached_kernel(const KernelKey& key, device::FunctionRef<Nest()> make);

// The kernel of a nest, for programs: equal nests have one, and it goes with the last who holds it.
std::shared_ptr<CachedKernel> shared_kernel(Nest nest);

// The kernels of one program, compiled together once all are known: code generation is cheaper for
// many than for each, and two threads share it.
class KernelBatch final : public TaskBatch {
 public:
  // `place` gets the kernel to run from now on: at once where it is there or interpreted, else when
  // the batch is compiled.
  void add(std::shared_ptr<CachedKernel> kernel, const Kernel*& place);
  // Where the program is ending, kernels that were not compiled are interpreted. Throws
  // std::bad_alloc.
  void compile() override;

 private:
  struct Wish {
    std::shared_ptr<CachedKernel> kernel;
    const Kernel** place = nullptr;
  };
  static void compile_all(const std::vector<CachedKernel*>& kernels);
  std::vector<Wish> wishes_;
};

// The kernel of a loop on few numbers.
std::unique_ptr<Kernel> recurrence_kernel(const Recurrence& recurrence);

// How many kernels were made so far in this process, by LLVM or for the interpreter.
int64_t kernels_made();

// The bytes of machine code held by kernels.
int64_t code_bytes();
// The bytes of code that were made for programs compiled on this thread, since it began.
int64_t code_made_here();
void note_code_made(const Kernel& kernel);

}  // namespace tidemark::compile
