#define TIDEMARK_ISA avx512
#include "tests/unit/loops/math_batch.inc"
