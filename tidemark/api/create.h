#pragma once

#include "tidemark/tensor/create.h"
