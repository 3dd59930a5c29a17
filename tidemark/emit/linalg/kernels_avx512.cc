#define TIDEMARK_ISA avx512
#include "tidemark/emit/linalg/kernels.inc"
