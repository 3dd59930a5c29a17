#pragma once

#include "tidemark/calls/linalg.h"
