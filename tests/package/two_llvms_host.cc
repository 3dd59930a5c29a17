// two_llvms_host MODULE: opens every LLVM of the system with its names visible to all, then the
// module that uses Tidemark, whose own LLVM must not be disturbed. Exit code 77: there is no other
// LLVM here.
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

int open_other_llvms() {
  int opened = 0;
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/llvm-19/lib", "/usr/lib64"}) {
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string name = file.path().filename();
      // LLVM 19 only: two other ones in a process already quarrel with each other.
      if (!name.starts_with("libLLVM") || name.find("19") == std::string::npos) continue;
      if (name.find(".so") == std::string::npos) continue;
      if (dlopen(file.path().c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) continue;
      std::printf("opened %s\n", file.path().c_str());
      ++opened;
    }
  }
  return opened;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (open_other_llvms() == 0) {
    std::puts("skipped: there is no other LLVM 19 on this system");
    return 77;
  }
  void* module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  auto use = reinterpret_cast<bool (*)()>(dlsym(module, "use_tidemark"));
  const bool right = use != nullptr && use();
  std::puts(right ? "Tidemark works beside it" : "Tidemark gives a wrong answer beside it");
  return right ? 0 : 1;
}
