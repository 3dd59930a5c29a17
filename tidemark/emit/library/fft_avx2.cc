#define TIDEMARK_ISA avx2
#include "tidemark/emit/library/fft_reals.inc"
