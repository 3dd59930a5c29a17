#pragma once

#include "tidemark/tensor/ops.h"
