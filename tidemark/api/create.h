#pragma once

#include "tidemark/calls/create.h"
