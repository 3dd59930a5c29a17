#define TIDEMARK_ISA baseline
#include "tests/unit/loops/math_batch.inc"
