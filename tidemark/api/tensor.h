#pragma once

#include "tidemark/tensor/tensor.h"
