#pragma once

#include "tidemark/structure/fields.h"
