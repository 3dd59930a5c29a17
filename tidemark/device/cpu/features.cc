#include "tidemark/device/cpu/features.h"

#include <cpuid.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "tidemark/base/environment.h"
#include "tidemark/base/error.h"
#include "tidemark/base/made_once.h"

namespace tidemark::device {
namespace {

// The register states that the operating system saves; without that the instructions cannot be
// used.
uint64_t saved_states() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

bool all(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

Isa widest() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return Isa::baseline;
  if (!all(c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C)) return Isa::baseline;
  const uint64_t states = saved_states();
  if ((states & 0x6) != 0x6) return Isa::baseline;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || !all(b, bit_AVX2)) return Isa::baseline;
  const bool wide = all(b, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
  return wide && (states & 0xE6) == 0xE6 ? Isa::avx512 : Isa::avx2;
}

Isa chosen() {
  const Isa best = widest();
  const std::string_view names[] = {name(Isa::baseline), name(Isa::avx2), name(Isa::avx512)};
  const int asked = environment_choice("TIDEMARK_ISA", names);
  if (asked < 0) return best;
  const Isa isa = static_cast<Isa>(asked);
  if (isa <= best) return isa;
  throw UserError(cat("TIDEMARK_ISA asks for ", name(isa), ", this CPU has ", name(best)),
                  Source::none(), cat("unset it, or set it to ", name(best), " or less"));
}

int64_t cache_bytes(int name, int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

// The last-level cache that one core can use. If the last cache has several parts, the C library
// returns the sum over the package, which no core can use; the kernel's figure is per part.
int64_t last_cache_bytes() {
  int64_t kibibytes = 0;
  if (std::FILE* file = std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re")) {
    long read = 0;
    if (std::fscanf(file, "%ldK", &read) == 1) kibibytes = read;
    std::fclose(file);
  }
  return kibibytes > 0 ? kibibytes << 10 : cache_bytes(_SC_LEVEL3_CACHE_SIZE, 8 << 20);
}

// Defaults if the system does not tell: most CPUs of the last ten years have at least this.
Caches own_caches() {
  return {cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
          cache_bytes(_SC_LEVEL2_CACHE_SIZE, 512 << 10), last_cache_bytes()};
}

Caches chosen_caches() {
  const char* const text = environment("TIDEMARK_CACHES");
  if (text == nullptr) return own_caches();
  int l1 = 0, l2 = 0, l3 = 0, end = 0;
  const int read = std::sscanf(text, "%9d,%9d,%9d%n", &l1, &l2, &l3, &end);
  if (read == 3 && text[end] == '\0' && 8 <= l1 && l1 <= l2 && l2 <= l3)
    return {int64_t{l1} << 10, int64_t{l2} << 10, int64_t{l3} << 10};
  throw UserError(
      cat("TIDEMARK_CACHES is '", text, "', which does not name three sizes of caches"),
      Source::none(),
      "set it to the KiB of the levels 1, 2 and 3, smallest first and 8 at least: 32,512,16384");
}

}  // namespace

const char* name(Isa isa) {
  constexpr const char* names[] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(isa)];
}

Isa isa() {
  static constinit MadeOnce<Isa> instance;
  return instance.get(chosen);
}

const Caches& caches() {
  static constinit MadeOnce<Caches> instance;
  return instance.get(chosen_caches);
}

}  // namespace tidemark::device
