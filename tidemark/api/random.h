#pragma once

#include "tidemark/tensor/random.h"
