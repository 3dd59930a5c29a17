// For those who write layers, datasets, optimizers or file formats of their own, as tidemark/nn,
// data, train and io do: calling users' functions back, models as keys, Variables that stand for
// tensors, tensors as bytes, and work done at once while a function is traced. What stands here is
// in namespace tidemark::detail and may change from version to version.
#pragma once

#include "tidemark/account/worker_scope.h"
#include "tidemark/calls/take_class.h"
#include "tidemark/structure/callback.h"
#include "tidemark/structure/identity.h"
#include "tidemark/tensor/interpreter.h"
#include "tidemark/tensor/raw_bytes.h"
#include "tidemark/tensor/stand_ins.h"
#include "tidemark/trace/control_flow_core.h"
