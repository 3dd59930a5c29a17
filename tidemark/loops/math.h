// Elementary functions for every float dtype: exp, expm1, log, log1p, sin, cos, tanh, erf, erfc
// and power, each as name_f32 and name_f64.
#pragma once

#include "tidemark/loops/math_f32.h"
#include "tidemark/loops/math_f64.h"
#include "tidemark/loops/math_wide_f32.h"
#include "tidemark/loops/math_wide_f64.h"
