// Runs the code of a nest on the buffers of one call.
#pragma once

#include "tidemark/device/kernel.h"
#include "tidemark/emit/tile/code.h"

namespace tidemark::tile {

void interpret(const Code& code, const KernelArgs& args);

}  // namespace tidemark::tile
