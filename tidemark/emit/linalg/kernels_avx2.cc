#define TIDEMARK_ISA avx2
#include "tidemark/emit/linalg/kernels.inc"
