#pragma once

#include "tidemark/function/plan.h"
