#pragma once

#include "tidemark/grad/custom_gradient.h"
