#pragma once

#include "tidemark/tensor/variable.h"
