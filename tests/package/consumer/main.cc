#include <tidemark/base/text.h>

#include <iostream>

int main() { std::cout << tidemark::Bytes(64 << 20) << '\n'; }
