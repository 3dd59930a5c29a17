#define TIDEMARK_ISA baseline
#include "tidemark/emit/linalg/kernels.inc"
