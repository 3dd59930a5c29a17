#pragma once

#include "tidemark/structure/variable_walk.h"
