#include "tidemark/compile/kernels.h"

#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/fork.h"
#include "tidemark/device/lock.h"
#include "tidemark/emit/llvm/jit.h"
#include "tidemark/emit/tile/tile.h"

namespace tidemark::compile {
namespace {

Emitter emitter_from_environment() {
  const char* text = std::getenv("TIDEMARK_KERNELS");
  const std::string_view wanted = text == nullptr ? "" : text;
  if (wanted == "tile") return Emitter::tile;
  if (wanted == "llvm") return Emitter::llvm;
  if (wanted == "checked") return Emitter::checked;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Sanitizers cannot see into machine code, so the interpreter checks every access instead.
  return Emitter::checked;
#else
  return Emitter::automatic;
#endif
}

std::atomic<Emitter>& current_emitter() {
  static std::atomic<Emitter> current{emitter_from_environment()};
  return current;
}

std::atomic<int64_t> held_code_bytes{0};

// A kernel is compiled once it has done about as much work as compiling costs, 2 ms at one addition
// per third of a nanosecond.
constexpr int64_t kWorkToCompile = 4 << 20;

int64_t weight_of(const Nest& nest) {
  int64_t weight = 1;
  for (const Expr& expr : nest.exprs) {
    if (expr.op >= ExprOp::exp && expr.op <= ExprOp::erf) weight += 8;
    if (expr.op == ExprOp::power) weight += 24;
    if (expr.op == ExprOp::divide || expr.op == ExprOp::sqrt) weight += 3;
    if (expr.op == ExprOp::floor_divide || expr.op == ExprOp::remainder) weight += 8;
  }
  return weight * static_cast<int64_t>(nest.sweeps.size());
}

struct KeyHash {
  size_t operator()(const KernelKey& key) const {
    return (reinterpret_cast<uintptr_t>(key.op) ^ key.form * 0x9e3779b97f4a7c15ULL) *
               0xbf58476d1ce4e5b9ULL >>
           7;
  }
};

using Kernels = std::unordered_map<KernelKey, std::unique_ptr<CachedKernel>, KeyHash>;

// The map is made under the lock and never destroyed: threads may still run kernels while the
// process ends.
struct Table {
  device::Lock lock;
  std::atomic<bool> hooked{false};
  Kernels* kernels = nullptr;
};
constinit Table table;

void lock_table() { table.lock.lock(); }
void unlock_table() { table.lock.unlock(); }

// A child forked while another thread looks a kernel up must find the table free and whole.
void hook_table() {
  if (table.hooked.load(std::memory_order_acquire)) return;
  device::add_fork_hook(lock_table, unlock_table);
  table.hooked.store(true, std::memory_order_release);
}

}  // namespace

void set_emitter(Emitter wanted) { current_emitter().store(wanted, std::memory_order_relaxed); }
Emitter emitter() { return current_emitter().load(std::memory_order_relaxed); }
int64_t code_bytes() { return held_code_bytes.load(std::memory_order_relaxed); }

CachedKernel::CachedKernel(Nest nest) : nest_(std::move(nest)), weight_(weight_of(nest_)) {
#ifdef TIDEMARK_DEBUG
  verify(nest_);
#endif
}

const Kernel& CachedKernel::tile() {
  const Kernel* kernel = interpreted_.load(std::memory_order_acquire);
  if (kernel != nullptr) return *kernel;
  const Kernel* made = make_tile_kernel(nest_).release();
  // Two threads may both make one; the first to store it wins and the other's goes.
  if (interpreted_.compare_exchange_strong(kernel, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *kernel;
}

const Kernel* CachedKernel::machine_code() {
  const Kernel* kernel = ready_.load(std::memory_order_acquire);
  if (kernel != nullptr || refused_.load(std::memory_order_relaxed)) return kernel;
  const Kernel* made = compile_nest(nest_, device::isa()).release();
  if (made == nullptr) {
    refused_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  if (ready_.compare_exchange_strong(kernel, made, std::memory_order_acq_rel)) {
    held_code_bytes.fetch_add(made->code_bytes, std::memory_order_relaxed);
    return made;
  }
  delete made;
  return kernel;
}

const Kernel& CachedKernel::pick(int64_t elements) {
  const Emitter wanted = emitter();
  if (wanted == Emitter::tile || wanted == Emitter::checked) return tile();
  const Kernel* kernel = ready_.load(std::memory_order_acquire);
  if (kernel != nullptr) return *kernel;
  if (wanted == Emitter::automatic) {
    const int64_t before = work_.fetch_add(elements * weight_, std::memory_order_relaxed);
    if (before + elements * weight_ < kWorkToCompile) return tile();
  }
  kernel = machine_code();
  return kernel != nullptr ? *kernel : tile();
}

CachedKernel& cached_kernel(const KernelKey& key, device::FunctionRef<Nest()> make) {
  // A small cache of this thread's own in front of the shared table, which needs a lock.
  constexpr size_t kSlots = 256;
  struct Recent {
    KernelKey key;
    CachedKernel* kernel;
  };
  // On the heap: a library with more than a little storage of its own in each thread cannot be
  // loaded by dlopen(), as Python does.
  thread_local const std::unique_ptr<Recent[]> recent = std::make_unique<Recent[]>(kSlots);
  auto& slot = recent[KeyHash()(key) % kSlots];
  if (slot.kernel != nullptr && slot.key == key) return *slot.kernel;
  hook_table();
  const std::lock_guard guard(table.lock);
  if (table.kernels == nullptr) table.kernels = new Kernels;
  std::unique_ptr<CachedKernel>& kernel = (*table.kernels)[key];
  if (kernel == nullptr) kernel = std::make_unique<CachedKernel>(make());
  slot = {key, kernel.get()};
  return *kernel;
}

}  // namespace tidemark::compile
