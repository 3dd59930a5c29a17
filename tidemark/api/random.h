#pragma once

#include "tidemark/calls/random.h"
