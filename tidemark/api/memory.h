#pragma once

#include "tidemark/account/memory.h"
