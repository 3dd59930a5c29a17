#define TIDEMARK_ISA avx2
#include "tidemark/emit/library/resample_kernels.inc"
