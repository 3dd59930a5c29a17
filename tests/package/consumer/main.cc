#include <tidemark/tidemark.h>

#include <iostream>

namespace td = tidemark;

int main() {
  td::Tensor x = td::ones({2, 2});
  std::cout << x + x << '\n';
}
