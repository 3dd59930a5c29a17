#define TIDEMARK_ISA avx512
#include "tidemark/emit/library/resample_kernels.inc"
