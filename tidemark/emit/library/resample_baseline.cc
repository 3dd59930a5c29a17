#define TIDEMARK_ISA baseline
#include "tidemark/emit/library/resample_kernels.inc"
