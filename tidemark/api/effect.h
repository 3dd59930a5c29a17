#pragma once

#include "tidemark/calls/effect.h"
