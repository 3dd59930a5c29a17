#pragma once

#include "tidemark/function/over_budget.h"
