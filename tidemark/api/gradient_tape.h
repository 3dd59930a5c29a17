#pragma once

#include "tidemark/grad/gradient_tape.h"
