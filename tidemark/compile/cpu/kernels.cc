#include "tidemark/compile/cpu/kernels.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tidemark/base/environment.h"
#include "tidemark/base/interrupt.h"
#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/fork.h"
#include "tidemark/emit/llvm/jit.h"
#include "tidemark/emit/tile/tile.h"
#include "tidemark/loops/expr.h"

namespace tidemark::compile {
namespace {

Emitter emitter_from_environment() {
  constexpr std::string_view kNames[] = {"automatic", "llvm", "tile", "checked"};
  constexpr Emitter kEmitters[] = {Emitter::automatic, Emitter::llvm, Emitter::tile,
                                   Emitter::checked};
  const int asked = environment_choice("TIDEMARK_KERNELS", kNames);
  if (asked >= 0) return kEmitters[asked];
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Sanitizers do not instrument machine code from the JIT, so the interpreter checks every access.
  return Emitter::checked;
#else
  return Emitter::automatic;
#endif
}

std::atomic<Emitter>& current_emitter() {
  static constinit MadeOnce<std::atomic<Emitter>> current;
  return current.get(emitter_from_environment);
}

// A kernel is compiled after it has done about as much work as compiling costs: 2 ms, at three
// additions per nanosecond.
constexpr int64_t kWorkToCompile = 4 << 20;

constinit std::atomic<int64_t> kernels_made_so_far{0};

struct KeyHash {
  size_t operator()(const KernelKey& key) const {
    return (reinterpret_cast<uintptr_t>(key.op) ^ key.form * 0x9e3779b97f4a7c15ULL) *
               0xbf58476d1ce4e5b9ULL >>
           7;
  }
};

// Kernels of programs by the hash of their nests. An entry is removed with its kernel.
using SharedKernels = std::unordered_multimap<uint64_t, std::weak_ptr<CachedKernel>>;

using Kernels = std::unordered_map<KernelKey, std::unique_ptr<CachedKernel>, KeyHash>;

// The map is made under the lock and never destroyed: threads may still run kernels while the
// process ends.
struct Table {
  Lock lock;
  std::atomic<bool> hooked{false};
  Kernels* kernels = nullptr;
  SharedKernels* shared = nullptr;
};
constinit Table table;

void lock_table() { table.lock.lock(); }
void unlock_table() { table.lock.unlock(); }

// At the end of the process, LLVM's static objects are destroyed while detached threads may still
// run ops. From then on nothing is compiled, and kernels are interpreted.
struct Compiles {
  std::atomic<bool> ended{false};
  std::atomic<int> running{0};
  std::atomic<bool> first_end{false}, last_end{false};  // Whether the exit handlers are registered.
};
constinit Compiles compiles;

void end_compiles() {
  compiles.ended.store(true);
  while (compiles.running.load() > 0) std::this_thread::yield();
}

// Two threads may both register the handler, which does no harm. A static object would make one
// wait for the other, and a child that is forked meanwhile would wait for ever.
void end_with_program(std::atomic<bool>& asked) {
  if (asked.load(std::memory_order_acquire)) return;
  if (std::atexit(end_compiles) == 0) asked.store(true, std::memory_order_release);
}

// In a forked child, which does not have the threads that were about to compile.
void forget_compiles() { compiles.running.store(0); }

// A child that is forked while another thread looks up a kernel must find the table unlocked and
// consistent.
void hook_table() {
  if (table.hooked.load(std::memory_order_acquire)) return;
  device::add_fork_hook(lock_table, unlock_table, forget_compiles);
  table.hooked.store(true, std::memory_order_release);
}

class Compiling {
 public:
  Compiling() : allowed_(enter()) {}
  ~Compiling() {
    if (!allowed_) return;
    // Registered after the objects that LLVM makes as it compiles, so that it runs before they are
    // destroyed.
    end_with_program(compiles.last_end);
    compiles.running.fetch_sub(1);
  }
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;
  bool allowed() const { return allowed_; }

 private:
  static bool enter() {
    // Registered after LLVM's initial static objects.
    end_with_program(compiles.first_end);
    compiles.running.fetch_add(1);
    if (!compiles.ended.load()) return true;
    compiles.running.fetch_sub(1);
    return false;
  }
  bool allowed_;
};

}  // namespace

int64_t weight_of(const Nest& nest) {
  int64_t weight = 1;
  for (const Expr& expr : nest.exprs) {
    if (is_elementary(expr.op)) weight += 8;
    if (expr.op == ExprOp::power) weight += 24;
    if (expr.op == ExprOp::divide || expr.op == ExprOp::sqrt) weight += 3;
    if (expr.op == ExprOp::floor_divide || expr.op == ExprOp::remainder) weight += 8;
  }
  return weight * static_cast<int64_t>(nest.sweeps.size());
}

int64_t kernels_made() { return kernels_made_so_far.load(std::memory_order_relaxed); }

void set_emitter(Emitter wanted) { current_emitter().store(wanted, std::memory_order_relaxed); }
Emitter emitter() { return current_emitter().load(std::memory_order_relaxed); }
int64_t code_bytes() { return code_bytes_held(); }

namespace {
constinit thread_local int64_t made_here = 0;
}  // namespace

int64_t code_made_here() { return made_here; }
void note_code_made(const Kernel& kernel) { made_here += kernel.code_bytes; }

CachedKernel::CachedKernel(const KernelKey& key, Nest nest, int32_t known_columns)
    : key_(key), nest_(std::move(nest)), known_columns_(known_columns), weight_(weight_of(nest_)) {
#ifdef TIDEMARK_DEBUG
  verify(nest_);
#endif
}

CachedKernel::~CachedKernel() {
  delete ready_.load(std::memory_order_acquire);
  delete interpreted_.load(std::memory_order_acquire);
}

const Kernel& CachedKernel::tile() {
  const Kernel* kernel = interpreted_.load(std::memory_order_acquire);
  if (kernel != nullptr) return *kernel;
  const Kernel* made = make_tile_kernel(nest_).release();
  kernels_made_so_far.fetch_add(1, std::memory_order_relaxed);
  // Two threads may both make one; the first to store it wins, and the other deletes its own.
  if (interpreted_.compare_exchange_strong(kernel, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *kernel;
}

const Kernel* CachedKernel::machine_code() {
  const Kernel* kernel = ready_.load(std::memory_order_acquire);
  if (kernel != nullptr || refused_.load(std::memory_order_relaxed)) return kernel;
  const Compiling compiling;
  if (!compiling.allowed()) return nullptr;
  return adopt(compile_nest(nest_, device::isa(), known_columns_));
}

// The code to run from now on: `made`, or the code that another thread made meanwhile. Null if the
// JIT does not support this nest.
const Kernel* CachedKernel::adopt(std::unique_ptr<Kernel> made) {
  if (made == nullptr) {
    refused_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  kernels_made_so_far.fetch_add(1, std::memory_order_relaxed);
  const Kernel* kernel = nullptr;
  if (!ready_.compare_exchange_strong(kernel, made.get(), std::memory_order_acq_rel)) return kernel;
  return made.release();
}

bool CachedKernel::may_be_code() {
  const Emitter wanted = emitter();
  if (wanted == Emitter::tile || wanted == Emitter::checked) return false;
  return code() != nullptr || (!refused_.load(std::memory_order_relaxed) && can_compile(nest_));
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
  try {
    kernel = machine_code();
  } catch (const std::bad_alloc&) {
    // There is no memory to compile: the kernel is interpreted, which needs none, and compiling is
    // tried again next time.
  }
  return kernel != nullptr ? *kernel : tile();
}

const Kernel& CachedKernel::settle() {
  const Emitter wanted = emitter();
  if (wanted == Emitter::tile || wanted == Emitter::checked) return tile();
  const Kernel* kernel = machine_code();
  return kernel != nullptr ? *kernel : tile();
}

CachedKernel& cached_kernel(const KernelKey& key, device::FunctionRef<Nest()> make,
                            int32_t known_columns) {
  // The latest kernel of each hash, so that most lookups need no lock. Kernels are never destroyed,
  // so a pointer that is read here stays valid.
  constexpr size_t kSlots = 1024;
  static constinit std::atomic<CachedKernel*> recent[kSlots] = {};
  std::atomic<CachedKernel*>& slot = recent[KeyHash()(key) % kSlots];
  CachedKernel* seen = slot.load(std::memory_order_acquire);
  if (seen != nullptr && seen->key() == key) return *seen;
  hook_table();
  const std::lock_guard guard(table.lock);
  if (table.kernels == nullptr) table.kernels = new Kernels;
  std::unique_ptr<CachedKernel>& kernel = (*table.kernels)[key];
  if (kernel == nullptr) kernel = std::make_unique<CachedKernel>(key, make(), known_columns);
  slot.store(kernel.get(), std::memory_order_release);
  return *kernel;
}

namespace {

// Deletes a kernel of programs and its entry.
void forget(uint64_t key, const CachedKernel* kernel) noexcept {
  {
    const std::lock_guard guard(table.lock);
    const auto [begin, end] = table.shared->equal_range(key);
    for (auto entry = begin; entry != end;)
      entry = entry->second.expired() ? table.shared->erase(entry) : std::next(entry);
  }
  delete kernel;
}

}  // namespace

namespace {

using Handles = std::vector<std::shared_ptr<CachedKernel>>;

// Under the lock. Releasing a kernel takes the lock too, so `seen` keeps the visited kernels alive.
std::shared_ptr<CachedKernel> find_shared(uint64_t key, const Nest& nest, int32_t known_columns,
                                          Handles& seen) {
  if (table.shared == nullptr) table.shared = new SharedKernels;
  const auto [begin, end] = table.shared->equal_range(key);
  for (auto entry = begin; entry != end; ++entry) {
    seen.emplace_back();
    seen.back() = entry->second.lock();
    if (seen.back() != nullptr && seen.back()->nest() == nest &&
        seen.back()->known_columns() == known_columns)
      return seen.back();
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<CachedKernel> shared_kernel(Nest nest, int32_t known_columns) {
  const uint64_t key = hash(nest) + static_cast<uint64_t>(known_columns);
  hook_table();
  Handles seen;
  {
    const std::lock_guard guard(table.lock);
    if (auto found = find_shared(key, nest, known_columns, seen)) return found;
  }
  // Outside of the lock: if the handle cannot be allocated, its deleter runs immediately.
  const std::shared_ptr<CachedKernel> made(
      new CachedKernel({}, std::move(nest), known_columns),
      [key](const CachedKernel* kernel) { forget(key, kernel); });
  const std::lock_guard guard(table.lock);
  if (auto found = find_shared(key, made->nest(), known_columns, seen)) return found;
  table.shared->emplace(key, made);
  return made;
}

// ---- many kernels at once -----------------------------------------------------------------------

void KernelBatch::add(std::shared_ptr<CachedKernel> kernel, const Kernel*& place) {
  place = kernel->may_be_code() ? kernel->code() : &kernel->tile();
  if (place == nullptr) wishes_.push_back({std::move(kernel), &place});
}

namespace {

// The kernels of one module. With more, each is not cheaper to compile, and code of programs with
// different lifetimes shares pages.
constexpr size_t kModuleKernels = 16;

// Compiles modules of a list until none is left; several threads may take part.
class ModuleList {
 public:
  explicit ModuleList(std::vector<CachedKernel*> kernels)
      : kernels_(std::move(kernels)),
        length_(std::clamp<size_t>(kernels_.size() / 4, 1, kModuleKernels)),
        made_(kernels_.size()) {}

  size_t count() const { return (kernels_.size() + length_ - 1) / length_; }
  void compile() noexcept {
    for (;;) {
      const size_t first = next_.fetch_add(1) * length_;
      if (first >= kernels_.size()) return;
      try {
        compile_module(first, std::min(kernels_.size(), first + length_));
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
  }
  // Called after all threads are done. Rethrows the first exception.
  std::vector<std::unique_ptr<Kernel>> take() {
    if (failed_) std::rethrow_exception(error_);
    return std::move(made_);
  }

 private:
  void compile_module(size_t begin, size_t end) {
    if (failed_) return;
    tidemark::detail::poll_interrupt();
    std::vector<Nest> nests;
    std::vector<int32_t> known;
    for (size_t i = begin; i < end; ++i) {
      nests.push_back(kernels_[i]->nest());
      known.push_back(kernels_[i]->known_columns());
    }
    auto made = compile_nests(nests, device::isa(), known);
    std::move(made.begin(), made.end(), made_.begin() + static_cast<int64_t>(begin));
  }

  const std::vector<CachedKernel*> kernels_;
  const size_t length_;
  std::vector<std::unique_ptr<Kernel>> made_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

// A second thread for the duration of one batch. It is not a worker of the pool: LLVM needs a
// larger stack, and kernels of other threads should not wait. Signals are blocked: they are for the
// user's threads.
class SecondThread {
 public:
  template <class Work>
  explicit SecondThread(Work work) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread(std::move(work));
    } catch (const std::system_error&) {
      // The calling thread compiles everything.
    } catch (const std::bad_alloc&) {
      // Likewise.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~SecondThread() {
    if (thread_.joinable()) thread_.join();
  }
  SecondThread(const SecondThread&) = delete;
  SecondThread& operator=(const SecondThread&) = delete;

 private:
  std::thread thread_;
};

}  // namespace

void KernelBatch::compile_all(const std::vector<CachedKernel*>& kernels) {
  ModuleList modules(kernels);
  if (modules.count() > 1) {
    const SecondThread beside([&modules] { modules.compile(); });
    modules.compile();
  } else {
    modules.compile();
  }
  std::vector<std::unique_ptr<Kernel>> made = modules.take();
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (made[i] != nullptr) note_code_made(*made[i]);
    kernels[i]->adopt(std::move(made[i]));
  }
}

void KernelBatch::compile() {
  std::vector<CachedKernel*> kernels;
  for (const Wish& wish : wishes_)
    if (wish.kernel->code() == nullptr) kernels.push_back(wish.kernel.get());
  std::sort(kernels.begin(), kernels.end());
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  if (!kernels.empty()) {
    const Compiling compiling;
    if (compiling.allowed()) compile_all(kernels);
  }
  for (const Wish& wish : wishes_) {
    const Kernel* const code = wish.kernel->code();
    *wish.place = code != nullptr ? code : &wish.kernel->tile();
  }
}

std::unique_ptr<Kernel> recurrence_kernel(const Recurrence& recurrence) {
  const Emitter wanted = emitter();
  kernels_made_so_far.fetch_add(1, std::memory_order_relaxed);
  if (wanted != Emitter::tile && wanted != Emitter::checked) {
    const Compiling compiling;
    if (compiling.allowed()) return compile_recurrence(recurrence, device::isa());
  }
  return make_tile_recurrence(recurrence, device::isa());
}

}  // namespace tidemark::compile
