#pragma once

#include "tidemark/tensor/mode.h"
