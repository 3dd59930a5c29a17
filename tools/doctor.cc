// `tidemark doctor`: describes this machine as Tidemark sees it, and checks that Tidemark works
// here.
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "tidemark/base/json.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/huge_pages.h"
#include "tidemark/device/limit.h"
#include "tidemark/device/mapping.h"
#include "tidemark/tidemark.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark doctor [--json]

Prints what Tidemark finds on this machine: versions, the CPU and its instruction sets, cores and
threads, pages, the memory limits of the system and the resulting limit. Then it compiles a kernel
and checks that it has the same bits as the interpreter, and that a matrix product has the same bits
on one thread and on all.

options:
  --json   print a JSON object; sizes in bytes, null if there is no limit

exit code: 0 all checks passed; 1 a check failed; 2 bad usage.
)";

// One finding, as text and as JSON.
struct Finding {
  std::string name, text, json;
};

Finding of_text(std::string name, const std::string& text) {
  return {std::move(name), text, json_quoted(text)};
}
Finding of_number(std::string name, int64_t number) {
  return {std::move(name), cat(number), cat(number)};
}
// Version 1 of control groups represents "no limit" by the largest number of whole pages.
Finding of_bytes(std::string name, int64_t bytes) {
  if (bytes >= device::kUnlimited - device::kPageBytes) return {std::move(name), "none", "null"};
  return {std::move(name), cat(Bytes(bytes)), cat(bytes)};
}
Finding of_check(std::string name, bool holds) {
  return {std::move(name), holds ? "yes" : "NO", holds ? "true" : "false"};
}

// The text after `key` in the first line that begins with it.
std::string line_of_file(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t:", key.size());
    return value == std::string::npos ? std::string() : line.substr(value);
  }
  return "?";
}

int64_t address_space_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return device::kUnlimited;
  return static_cast<int64_t>(limit.rlim_cur);
}

const char* name_of(compile::Emitter emitter) {
  switch (emitter) {
    case compile::Emitter::automatic:
      return "interpreted at first, compiled when it pays";
    case compile::Emitter::tile:
      return "interpreted";
    case compile::Emitter::llvm:
      return "compiled";
    case compile::Emitter::checked:
      break;
  }
  return "interpreted, every access checked";
}

void add_versions(std::vector<Finding>& found) {
  found.push_back(of_text("tidemark", TIDEMARK_VERSION));
  found.push_back(of_text("compiler", TIDEMARK_COMPILER));
  found.push_back(of_text("LLVM", TIDEMARK_LLVM_VERSION));
  found.push_back(of_text("matrix products", "Tidemark's own kernels; no library is used"));
}

void add_machine(std::vector<Finding>& found) {
  found.push_back(of_text("CPU", line_of_file("/proc/cpuinfo", "model name")));
  found.push_back(of_text("instructions", device::name(device::isa())));
  found.push_back(of_bytes("cache of level 1", device::caches().l1_bytes));
  found.push_back(of_bytes("cache of level 2", device::caches().l2_bytes));
  found.push_back(of_bytes("cache of level 3", device::caches().l3_bytes));
  found.push_back(of_number("cores", device::usable_cores()));
  const double quota = device::cgroup_cores();
  found.push_back({"cores by the cgroup", std::isinf(quota) ? "no limit" : cat(quota),
                   std::isinf(quota) ? "null" : cat(quota)});
  found.push_back(of_number("threads", num_threads()));
  found.push_back(of_text("kernels", name_of(compile::emitter())));
}

void add_memory(std::vector<Finding>& found) {
  const std::string available = line_of_file("/proc/meminfo", "MemAvailable");
  found.push_back(of_bytes("page", device::kPageBytes));
  found.push_back(of_text("huge pages of the system",
                          line_of_file("/sys/kernel/mm/transparent_hugepage/enabled", "")));
  found.push_back(of_check("huge pages help", device::huge_pages_help()));
  found.push_back(of_bytes("memory available", std::atoll(available.c_str()) * 1024));
  found.push_back(of_bytes("memory by the cgroup", device::cgroup_memory_bytes()));
  found.push_back(of_bytes("address space", address_space_bytes()));
  found.push_back(of_bytes("limit for tensors", memory::limit().count));
}

// Runs the same computation by the interpreter and by machine code.
bool compiled_as_interpreted() {
  const Tensor x = random::normal({1000}, {.key = random::Key(1)});
  const auto run = [&](compile::Emitter emitter) {
    const compile::Emitter before = compile::emitter();
    compile::set_emitter(emitter);
    const auto f = function([](const Tensor& x) { return softmax(exp(x) * 2 + x); });
    Tensor y = f(x);
    compile::set_emitter(before);
    return y;
  };
  return identical(run(compile::Emitter::tile), run(compile::Emitter::llvm));
}

bool one_thread_as_all() {
  const Tensor a = random::normal({200, 300}, {.key = random::Key(2)});
  const Tensor b = random::normal({300, 100}, {.key = random::Key(3)});
  const Tensor all = matmul(a, b);
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = matmul(a, b);
  set_num_threads(before);
  return identical(all, one);
}

}  // namespace

int doctor_command(Arguments arguments) {
  if (asked_for_help(arguments, kHelp)) return 0;
  bool json = false;
  for (const std::string& argument : arguments) {
    if (argument != "--json") unknown_option("doctor", argument);
    json = true;
  }
  std::vector<Finding> found;
  add_versions(found);
  add_machine(found);
  add_memory(found);
  const bool compiles = compiled_as_interpreted(), threads = one_thread_as_all();
  found.push_back(of_check("compiled code gives the interpreter's bits", compiles));
  found.push_back(of_check("all threads give the bits of one", threads));
  std::cout << (json ? "{" : "");
  for (size_t i = 0; i < found.size(); ++i) {
    if (json)
      std::cout << (i == 0 ? "" : ",\n ") << json_quoted(found[i].name) << ": " << found[i].json;
    else
      std::cout << std::left << std::setw(46) << found[i].name << found[i].text << '\n';
  }
  std::cout << (json ? "}\n" : "");
  return compiles && threads ? 0 : 1;
}

}  // namespace tidemark::tools
