#pragma once

#include "tidemark/trace/control_flow.h"
