#pragma once

#include "tidemark/tensor/effect.h"
