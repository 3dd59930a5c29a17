// The smallest program: what start-up and a first tensor cost.
#include <iostream>

#include "tidemark/tidemark.h"

int main() { std::cout << tidemark::ones({2, 2}) + 1 << '\n'; }
