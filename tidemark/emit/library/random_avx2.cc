#define TIDEMARK_ISA avx2
#include "tidemark/emit/library/random_kernels.inc"
