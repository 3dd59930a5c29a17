#define TIDEMARK_ISA avx512
#include "tidemark/emit/library/random_kernels.inc"
