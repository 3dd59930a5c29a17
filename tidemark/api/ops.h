#pragma once

#include "tidemark/calls/ops.h"
#include "tidemark/grad/pooling.h"
