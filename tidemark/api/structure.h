#pragma once

#include "tidemark/structure/structure.h"
