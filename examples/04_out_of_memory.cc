// Lesson 4: running out of memory is an answer, not a death.
#include <iostream>

#include <tidemark/tidemark.h>

namespace td = tidemark;

int main() {
  const td::Tensor kept = td::zeros({1024, 1024});
  td::memory::release();
  td::memory::set_limit(td::memory::current() + td::Bytes(8 << 20));
  try {
    const td::Tensor large = td::zeros({4096, 4096});
    std::cout << "there was room for " << large.size_bytes() << '\n';
    return 1;
  } catch (const td::OutOfMemory& error) {
    std::cout << error.what() << '\n';
  }
  std::cout << "\nNothing was lost: the sum of the kept tensor is " << td::sum(kept)
            << ", and the next call works.\n";
}
