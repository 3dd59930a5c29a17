// The cache of kernels. Eager code has one kernel per op, dtypes and layout class, for all sizes.
// Programs have one kernel per distinct nest.
//
// A kernel of eager code is interpreted at first, which costs nothing to make. After it has done as
// much work as compiling costs, machine code replaces it. Both give the same bits.
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

// How nests are run. `automatic` unless TIDEMARK_KERNELS (tile, llvm, checked) or a test sets
// another.
enum class Emitter : uint8_t { automatic, tile, llvm, checked };
void set_emitter(Emitter emitter);
Emitter emitter();

// The key of a kernel: the op (or the name of a lowering), and all properties of dtypes and layouts
// that its nest depends on, packed.
struct KernelKey {
  const void* op = nullptr;
  uint64_t form = 0;
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};

// The work per element of a nest, in additions: it determines how finely threads split the work.
int64_t weight_of(const Nest& nest);

class CachedKernel {
 public:
  // `known_columns` is the number of columns of every call, or 0: see emit/llvm/jit.h.
  CachedKernel(const KernelKey& key, Nest nest, int32_t known_columns = 0);
  ~CachedKernel();
  CachedKernel(const CachedKernel&) = delete;
  CachedKernel& operator=(const CachedKernel&) = delete;

  // The kernel to run now, over this many elements.
  const Kernel& pick(int64_t elements);
  // The kernel to run from now on, compiled immediately unless it is interpreted. Throws
  // std::bad_alloc if there is no memory to compile.
  const Kernel& settle();
  // Whether machine code is or will be made for it.
  bool may_be_code();
  const KernelKey& key() const { return key_; }
  const Nest& nest() const { return nest_; }
  int32_t known_columns() const { return known_columns_; }
  int64_t weight() const { return weight_; }

 private:
  friend class KernelBatch;
  const Kernel& tile();
  const Kernel* code() const { return ready_.load(std::memory_order_acquire); }
  const Kernel* machine_code();
  const Kernel* adopt(std::unique_ptr<Kernel> made);

  KernelKey key_;
  Nest nest_;
  int32_t known_columns_;
  int64_t weight_;
  std::atomic<int64_t> work_{0};
  std::atomic<const Kernel*> ready_{nullptr};  // Machine code, after it was compiled.
  std::atomic<const Kernel*> interpreted_{nullptr};
  std::atomic<bool> refused_{false};  // The JIT does not support this nest.
};

// The kernel of a key; `make` returns its nest the first time. Kernels are kept for the life of the
// process: their number is bounded by ops x dtypes x layout classes.
CachedKernel& cached_kernel(const KernelKey& key, device::FunctionRef<Nest()> make,
                            int32_t known_columns = 0);

// The kernel of a program's nest. Equal nests share one kernel, which lives as long as its last
// handle.
std::shared_ptr<CachedKernel> shared_kernel(Nest nest, int32_t known_columns = 0);

// The kernels of one program, compiled together after all are known: compiling many at once is
// cheaper, and two threads share the work.
class KernelBatch final : public TaskBatch {
 public:
  // Writes the kernel to run into `place`: immediately if it exists or is interpreted, else when
  // the batch is compiled.
  void add(std::shared_ptr<CachedKernel> kernel, const Kernel*& place);
  // Kernels that were not compiled because the process is ending are interpreted. Throws
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

// The kernel of a loop on a few numbers.
std::unique_ptr<Kernel> recurrence_kernel(const Recurrence& recurrence);

// The number of kernels made in this process so far, by LLVM or for the interpreter.
int64_t kernels_made();

// The bytes of machine code that kernels hold now.
int64_t code_bytes();
// The bytes of machine code that this thread has made for programs so far.
int64_t code_made_here();
void note_code_made(const Kernel& kernel);

}  // namespace tidemark::compile
