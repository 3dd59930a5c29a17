// bars [seconds per row] [--data DIR]: runs every benchmark beside this program, one after another,
// and counts passed and missed bars. DIR has the public instances for the planner.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Count {
  int passed = 0, missed = 0, failed = 0;
};

// Shows a program's output as it comes and counts its rows.
void run(const std::string& command, Count& count) {
  std::printf("\n-- %s\n", command.c_str());
  std::fflush(stdout);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ++count.failed;
    return;
  }
  int rows = 0;
  char line[4096];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    std::fputs(line, stdout);
    std::fflush(stdout);
    const bool pass = std::strstr(line, "  pass") != nullptr,
               miss = std::strstr(line, "  MISS") != nullptr;
    count.passed += pass ? 1 : 0;
    count.missed += miss ? 1 : 0;
    rows += pass || miss ? 1 : 0;
  }
  pclose(pipe);
  // A benchmark that prints no bar has not run.
  if (rows == 0) ++count.failed;
}

std::string folder_of(const char* program) {
  const std::string path = program;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

bool exists(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "rb");
  if (file != nullptr) std::fclose(file);
  return file != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  std::string seconds = "1.0", data;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      std::puts(
          "usage: bars [seconds per row] [--data DIR]\n\nRuns every benchmark and prints pass or "
          "miss for each bar.");
      return 0;
    }
    if (std::strcmp(argv[i], "--data") == 0 && i + 1 < argc)
      data = argv[++i];
    else
      seconds = argv[i];
  }
  const std::string folder = folder_of(argv[0]);
  Count count;
  run(folder + "eager " + seconds, count);
  run(folder + "functions " + seconds, count);
  run(folder + "loops " + seconds, count);
  run(folder + "gradients " + seconds, count);
  run(folder + "plan_time", count);
  if (__builtin_cpu_supports("avx512dq"))
    run(folder + "kernels " + seconds, count);
  else
    std::puts("\n-- kernels compares with code by hand for AVX-512, which this CPU lacks");
  if (exists(folder + "matmul"))
    run(folder + "matmul " + seconds, count);
  else
    std::puts("\n-- matmul was not built: oneDNN (libdnnl-dev) is not installed");
  if (exists(folder + "plan"))
    run(folder + "plan" + (data.empty() ? "" : " --data " + data), count);
  const std::string ops = TIDEMARK_OPS;
  if (std::system((ops + " --ready").c_str()) == 0)
    run(ops, count);
  else
    std::puts("\n-- bench/ops compares with PyTorch, which is not installed");
  std::printf("\nbars: %d passed, %d missed, %d did not run\n", count.passed, count.missed,
              count.failed);
  return count.missed + count.failed == 0 ? 0 : 1;
}
