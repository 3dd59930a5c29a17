#pragma once

#include "tidemark/grad/gradients.h"
