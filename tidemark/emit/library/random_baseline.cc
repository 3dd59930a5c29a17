#define TIDEMARK_ISA baseline
#include "tidemark/emit/library/random_kernels.inc"
