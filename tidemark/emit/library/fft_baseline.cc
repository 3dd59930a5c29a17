#define TIDEMARK_ISA baseline
#include "tidemark/emit/library/fft_reals.inc"
