#pragma once

#include "tidemark/calls/distributions.h"
#include "tidemark/calls/random.h"
