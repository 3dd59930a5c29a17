#pragma once

#include "tidemark/trace/tensor_array.h"
