#define TIDEMARK_ISA avx512
#include "tidemark/emit/library/fft_reals.inc"
