#pragma once

#include "tidemark/structure/static.h"
