#pragma once

#include "tidemark/function/function.h"
