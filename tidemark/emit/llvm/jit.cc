// From a module to running code: code generation into an object in memory, then JITLink. Only the
// pages of code, and a code generator or two for the next compile, outlive it.
#include "tidemark/emit/llvm/jit.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <malloc.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>

#include "tidemark/base/environment.h"
#include "tidemark/base/error.h"
#include "tidemark/base/lock.h"
#include "tidemark/device/fork.h"
#include "tidemark/device/mapping.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/llvm/code_memory.h"
#include "tidemark/emit/llvm/helpers.h"
#include "tidemark/emit/llvm/nest_emitter.h"
#include "tidemark/emit/llvm/recurrence_emitter.h"
#include "tidemark/emit/llvm/reserve.h"
#include "tidemark/emit/llvm/support.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tidemark {
namespace jit {
namespace {

std::atomic<int64_t> held_bytes{0};

// LLVM has its own locks and intermediate state while it compiles, so a fork waits until no thread
// compiles, and the child may compile at once.
struct Compiles {
  Lock gate;  // Held for a moment to begin, and across a fork.
  std::atomic<bool> hooked{false};
  std::atomic<int> running{0};
};
constinit Compiles all_compiles;

void stop_compiles() {
  all_compiles.gate.lock();
  for (int now = all_compiles.running.load(); now != 0; now = all_compiles.running.load()) {
    all_compiles.running.wait(now);
  }
}
void allow_compiles() { all_compiles.gate.unlock(); }

class Compiling {
 public:
  Compiling() {
    if (!all_compiles.hooked.load(std::memory_order_acquire)) {
      device::add_fork_hook(stop_compiles, allow_compiles);
      all_compiles.hooked.store(true, std::memory_order_release);
    }
    const std::lock_guard guard(all_compiles.gate);
    all_compiles.running.fetch_add(1);
  }
  ~Compiling() {
    if (all_compiles.running.fetch_sub(1) == 1) all_compiles.running.notify_all();
  }
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;
};

int64_t round_up(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

// Disables code generation passes that do nothing for loops over explicit vectors, or whose gain an
// out-of-order core makes up for; together they take a quarter of the compile time. They are global
// options, which is safe because this LLVM is private to the library.
void skip_needless_passes() {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto set = [&](const char* name, const char* value) {
    const auto option = options.find(name);
    TIDEMARK_CHECK(option != options.end(), "this LLVM has no option ", name);
    option->second->addOccurrence(1, name, value);
  };
  for (const char* name :
       {"disable-lsr", "disable-mergeicmps", "disable-constant-hoisting",
        "disable-partial-libcall-inlining", "disable-expand-reductions", "disable-select-optimize",
        "disable-post-ra", "disable-early-ifcvt", "disable-x86-domain-reassignment",
        "disable-postra-machine-licm", "disable-postra-machine-sink", "disable-early-taildup",
        "disable-tail-duplicate", "disable-ssc", "disable-cgp", "disable-block-placement",
        "disable-copyprop"}) {
    set(name, "true");
  }
  set("enable-shrink-wrap", "false");
}

const llvm::Target& target() {
  static const llvm::Target* const found = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    std::string error;
    const llvm::Target* target =
        llvm::TargetRegistry::lookupTarget("x86_64-unknown-linux-gnu", error);
    TIDEMARK_CHECK(target != nullptr, error);
    skip_needless_passes();
    return target;
  }();
  return *found;
}

// Only the features of the instruction set (device/cpu/features.h), never those that this CPU
// happens to have, so that a kernel has the same code everywhere.
const char* features(device::Isa isa) {
  switch (isa) {
    case device::Isa::baseline:
      return "";
    case device::Isa::avx2:
      return "+avx2,+fma,+f16c";
    case device::Isa::avx512:
      return "+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl";
  }
  return "";
}

std::unique_ptr<llvm::TargetMachine> target_machine(device::Isa isa) {
  llvm::TargetOptions options;
  // A product and a sum round separately unless fma is written.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.TrapUnreachable = false;
  return std::unique_ptr<llvm::TargetMachine>(target().createTargetMachine(
      "x86_64-unknown-linux-gnu", "x86-64", features(isa), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
}

// A target machine with its pass pipeline. Creating them costs a quarter of a small compile, so
// they are reused for several modules.
class Generator {
 public:
  explicit Generator(device::Isa isa) : isa_(isa), machine_(target_machine(isa)), stream_(object_) {
    llvm::MCContext* context = nullptr;
    const bool failed = machine_->addPassesToEmitMC(passes_, context, stream_, true);
    TIDEMARK_CHECK(!failed, "this LLVM cannot emit objects");
  }

  device::Isa isa() const { return isa_; }
  int uses() const { return uses_; }
  llvm::LLVMContext& context() { return context_; }
  const llvm::TargetMachine& machine() const { return *machine_; }

  // The object is valid until the next call.
  llvm::StringRef generate(llvm::Module& module) {
    ++uses_;
    object_.clear();
    passes_.run(module);
    return {object_.data(), object_.size()};
  }

 private:
  device::Isa isa_;
  int uses_ = 0;
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::SmallVector<char, 0> object_;
  llvm::raw_svector_ostream stream_;
  llvm::legacy::PassManager passes_;
};

// Idle generators. One that has thrown is not reused.
class Generators {
 public:
  static Generators& instance() {
    // Never destroyed: a thread may still compile while the process ends.
    static Generators* const generators = new Generators;
    return *generators;
  }
  std::unique_ptr<Generator> take(device::Isa isa) {
    {
      const std::scoped_lock lock(mutex_);
      for (std::unique_ptr<Generator>& idle : idle_) {
        if (idle != nullptr && idle->isa() == isa) return std::move(idle);
      }
    }
    return std::make_unique<Generator>(isa);
  }
  void give_back(std::unique_ptr<Generator> generator) {
    // A context keeps every constant it has seen.
    constexpr int kMostUses = 64;
    if (generator->uses() >= kMostUses) return;
    const std::scoped_lock lock(mutex_);
    for (std::unique_ptr<Generator>& idle : idle_) {
      if (idle == nullptr) {
        idle = std::move(generator);
        return;
      }
    }
  }

 private:
  std::mutex mutex_;
  std::array<std::unique_ptr<Generator>, 2> idle_;
};

// The inputs and outputs of one link.
struct LinkJob {
  std::vector<std::string> names;
  std::vector<uint64_t> addresses;
  std::vector<int64_t> sizes;
  CodeMemory memory;
  std::string failure;
};

class LinkContext final : public llvm::jitlink::JITLinkContext {
 public:
  explicit LinkContext(LinkJob& linked) : JITLinkContext(nullptr), linked_(linked) {}

  llvm::jitlink::JITLinkMemoryManager& getMemoryManager() override { return linked_.memory; }
  void notifyFailed(llvm::Error error) override {
    linked_.failure = llvm::toString(std::move(error));
  }
  void lookup(const LookupMap& symbols,
              std::unique_ptr<llvm::jitlink::JITLinkAsyncLookupContinuation> then) override {
    llvm::jitlink::AsyncLookupResult found;
    for (const auto& [name, flags] : symbols) {
      void* function = library_function(name.str().c_str());
      if (function == nullptr) {
        return then->run(llvm::createStringError("no function " + name.str()));
      }
      found[name] = {llvm::orc::ExecutorAddr::fromPtr(function),
                     llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    then->run(std::move(found));
  }
  llvm::Error notifyResolved(llvm::jitlink::LinkGraph& graph) override {
    for (llvm::jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName()) continue;
      for (size_t i = 0; i < linked_.names.size(); ++i) {
        if (symbol->getName() != linked_.names[i]) continue;
        linked_.addresses[i] = symbol->getAddress().getValue();
        linked_.sizes[i] = static_cast<int64_t>(symbol->getSize());
      }
    }
    return llvm::Error::success();
  }
  void notifyFinalized(llvm::jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override {
    allocation.release();  // The Code owns the pages.
  }
  // Everything in the object is used: skip dead stripping.
  llvm::jitlink::LinkGraphPassFunction getMarkLivePass(const llvm::Triple&) const override {
    return llvm::jitlink::markAllSymbolsLive;
  }

 private:
  LinkJob& linked_;
};

void link(llvm::StringRef object, LinkJob& linked) {
  const llvm::MemoryBufferRef buffer(object, "kernels");
  auto graph = llvm::jitlink::createLinkGraphFromObject(buffer);
  if (!graph) throw InternalError(cat("compiling: ", llvm::toString(graph.takeError())));
  llvm::jitlink::link(std::move(*graph), std::make_unique<LinkContext>(linked));
  // The only allocation that LLVM leaves to the caller.
  if (linked.memory.code == nullptr) throw std::bad_alloc();
  if (!linked.failure.empty()) throw InternalError(cat("compiling: ", linked.failure));
}

struct JitKernel final : Kernel {
  std::shared_ptr<Code> code;
};

// The C library keeps freed memory in fragments; every so many compiles it is returned to the
// system.
void trim_sometimes() {
  constexpr int kCompilesPerTrim = 64;
  static std::atomic<int> compiles{0};
  if (compiles.fetch_add(1, std::memory_order_relaxed) % kCompilesPerTrim == kCompilesPerTrim - 1) {
    malloc_trim(0);
  }
}

}  // namespace

Code::Code(int64_t bytes) : bytes_(device::whole_pages(bytes)) {
  std::byte* const mapped = device::map_pages(bytes_, device::MappingOwner::code);
  if (mapped == nullptr) throw std::bad_alloc();
  data_ = reinterpret_cast<char*>(mapped);
  held_bytes.fetch_add(bytes_, std::memory_order_relaxed);
}

Code::~Code() {
  device::unmap_pages(reinterpret_cast<std::byte*>(data_), bytes_);
  held_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
}

bool Code::make_executable() {
  return mprotect(data_, static_cast<size_t>(bytes_), PROT_READ | PROT_EXEC) == 0;
}

namespace {

class InFlight final : public llvm::jitlink::JITLinkMemoryManager::InFlightAlloc {
 public:
  explicit InFlight(std::shared_ptr<Code> code) : code_(std::move(code)) {}
  void abandon(OnAbandonedFunction then) override { then(llvm::Error::success()); }
  void finalize(OnFinalizedFunction then) override {
    if (!code_->make_executable()) {
      return then(llvm::createStringError("the system refuses executable memory"));
    }
    then(llvm::jitlink::JITLinkMemoryManager::FinalizedAlloc(
        llvm::orc::ExecutorAddr::fromPtr(code_->data())));
  }

 private:
  std::shared_ptr<Code> code_;
};

}  // namespace

void CodeMemory::allocate(const llvm::jitlink::JITLinkDylib*, llvm::jitlink::LinkGraph& graph,
                          OnAllocatedFunction on_allocated) {
  llvm::jitlink::BasicLayout layout(graph);
  int64_t bytes = 0;
  for (auto& [group, segment] : layout.segments()) {
    bytes = round_up(bytes, static_cast<int64_t>(segment.Alignment.value()));
    bytes += static_cast<int64_t>(segment.ContentSize + segment.ZeroFillSize);
  }
  // No exception may propagate through LLVM.
  try {
    code = std::make_shared<Code>(bytes);
  } catch (const std::bad_alloc&) {
    return on_allocated(llvm::createStringError("the system refuses pages for code"));
  }
  int64_t at = 0;
  for (auto& [group, segment] : layout.segments()) {
    at = round_up(at, static_cast<int64_t>(segment.Alignment.value()));
    segment.WorkingMem = code->data() + at;
    segment.Addr = llvm::orc::ExecutorAddr::fromPtr(segment.WorkingMem);
    at += static_cast<int64_t>(segment.ContentSize + segment.ZeroFillSize);
  }
  if (auto error = layout.apply()) return on_allocated(std::move(error));
  on_allocated(std::make_unique<InFlight>(code));
}

void CodeMemory::deallocate(std::vector<FinalizedAlloc> allocations,
                            OnDeallocatedFunction on_deallocated) {
  for (FinalizedAlloc& allocation : allocations) allocation.release();
  on_deallocated(llvm::Error::success());
}

}  // namespace jit

namespace jit {
namespace {

// Emits function number i of a module under a name; returns the scratch it needs, or -1 if it
// cannot be emitted.
using EmitFunction = device::FunctionRef<int64_t(llvm::Module&, size_t i, const std::string&)>;

// More than twice what the largest modules measured would take of a reserve if all of LLVM's memory
// came from it (docs/decisions/0017-a-reserve-for-llvm.md).
int64_t reserve_bytes(size_t expressions) {
  return (int64_t{32} << 20) + (int64_t{256} << 10) * static_cast<int64_t>(expressions);
}

std::vector<std::unique_ptr<Kernel>> compile_functions(size_t count, size_t expressions,
                                                       device::Isa isa, EmitFunction emit) {
  const Compiling compiling;
  // Made before the reserve, since code that does not know the reserve deletes it.
  std::vector<std::unique_ptr<Kernel>> kernels(count);
  const Reserve reserve(reserve_bytes(expressions));
  std::vector<JitKernel*> compiled;
  LinkJob linked;
  std::unique_ptr<Generator> generator = Generators::instance().take(isa);
  {
    llvm::Module module("kernels", generator->context());
    module.setTargetTriple(generator->machine().getTargetTriple().str());
    module.setDataLayout(generator->machine().createDataLayout());
    for (size_t i = 0; i < count; ++i) {
      const std::string name = cat("kernel", i);
      const int64_t scratch = emit(module, i, name);
      if (scratch < 0) continue;
      linked.names.push_back(name);
      auto kernel = std::make_unique<JitKernel>();
      kernel->scratch_bytes = scratch;
      compiled.push_back(kernel.get());
      kernels[i] = std::move(kernel);
    }
    if (compiled.empty()) return kernels;
    if (environment_switch("TIDEMARK_PRINT_IR", false)) module.print(llvm::errs(), nullptr);
#ifdef TIDEMARK_DEBUG
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    TIDEMARK_CHECK(!llvm::verifyModule(module, &stream), stream.str());
#endif
    linked.addresses.resize(linked.names.size());
    linked.sizes.resize(linked.names.size());
    link(generator->generate(module), linked);
  }
  Generators::instance().give_back(std::move(generator));
  int64_t unshared = linked.memory.code->bytes();
  for (size_t i = 0; i < compiled.size(); ++i) {
    JitKernel& kernel = *compiled[i];
    TIDEMARK_CHECK(linked.addresses[i] != 0, "no code for ", linked.names[i]);
    kernel.run = reinterpret_cast<decltype(kernel.run)>(linked.addresses[i]);
    kernel.code = linked.memory.code;
    kernel.code_bytes = linked.sizes[i];
    unshared -= linked.sizes[i];
  }
  compiled[0]->code_bytes += unshared;  // Constants, and what rounds to whole pages.
  trim_sometimes();
  return kernels;
}

}  // namespace
}  // namespace jit

bool can_compile(const Nest& nest) { return jit::can_compile(nest); }

std::vector<std::unique_ptr<Kernel>> compile_nests(std::span<const Nest> nests, device::Isa isa,
                                                   std::span<const KnownColumns> known) {
  const auto emit = [&](llvm::Module& module, size_t i, const std::string& name) -> int64_t {
    if (!jit::can_compile(nests[i])) return -1;
    const KnownColumns columns = known.empty() ? 0 : known[i];
    TIDEMARK_CHECK(columns == 0 || (columns <= kLanes && nests[i].cells > 0 &&
                                    nests[i].order == Nest::Order::lanes),
                   columns, " known columns");
    jit::NestEmitter emitter(nests[i], isa, module, name, columns);
    emitter.emit();
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    return jit::scratch_bytes(nests[i], int64_t{1} << 55, most);
  };
  size_t expressions = 0;
  for (const Nest& nest : nests) expressions += nest.exprs.size();
  return jit::compile_functions(nests.size(), expressions, isa, emit);
}

std::unique_ptr<Kernel> compile_recurrence(const Recurrence& recurrence, device::Isa isa) {
  Nest exprs;
  exprs.exprs = recurrence.exprs;
  const auto emit = [&](llvm::Module& module, size_t, const std::string& name) -> int64_t {
    jit::RecurrenceEmitter(recurrence, exprs, isa, module, name).emit();
    return 2 * static_cast<int64_t>(sizeof(int64_t));
  };
  return std::move(jit::compile_functions(1, recurrence.exprs.size(), isa, emit)[0]);
}

int64_t machine_scratch_bytes(const Nest& nest, int64_t steps, int64_t columns) {
  return jit::scratch_bytes(nest, steps, columns);
}

std::unique_ptr<Kernel> compile_nest(const Nest& nest, device::Isa isa, KnownColumns known) {
  return std::move(compile_nests({&nest, 1}, isa, {&known, 1})[0]);
}

int64_t code_bytes_held() { return jit::held_bytes.load(std::memory_order_relaxed); }

}  // namespace tidemark
