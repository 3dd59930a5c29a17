// A group as one step: nodes that passes/fuse.cc put together, run as one loop nest.
#pragma once

#include <span>

#include "tidemark/compile/kernels.h"
#include "tidemark/compile/tasks.h"
#include "tidemark/ir/graph.h"

namespace tidemark::compile {

// Places are layouts, of any strides; where the data lie is told at the run, inputs first, then
// results. With a batch it runs machine code, which is there once the batch is compiled; else as in
// eager code, once it pays.
MadeTask group_task(const Graph& graph, const Node& group, std::span<const ArrayRef> inputs,
                    std::span<const ArrayRef> results, KernelBatch* batch);

// Whether a result may be computed in the bytes of an input, both dense: whoever reads the input
// does so at the element being written, and not after.
bool may_overwrite(const Graph& graph, const Node& group, int32_t input, int32_t result);

}  // namespace tidemark::compile
