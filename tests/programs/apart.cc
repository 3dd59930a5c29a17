#include "tests/programs/apart.h"

#include <sys/wait.h>
#include <unistd.h>

#include "tidemark/base/text.h"

namespace tidemark::testing {

std::string run_apart(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "fuzzer: no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = work();
    const ssize_t written = write(ends[1], said.data(), said.size());
    _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char part[4096];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof(part))) > 0;)
    said.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? cat("signal ", WTERMSIG(status), ": memory not its own") : said;
}

}  // namespace tidemark::testing
