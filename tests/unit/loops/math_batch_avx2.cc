#define TIDEMARK_ISA avx2
#include "tests/unit/loops/math_batch.inc"
