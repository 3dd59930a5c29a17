// Everything a user needs: `namespace td = tidemark;`
#pragma once

#include "tidemark/api/control_flow.h"
#include "tidemark/api/create.h"
#include "tidemark/api/effect.h"
#include "tidemark/api/function.h"
#include "tidemark/api/gradient_tape.h"
#include "tidemark/api/gradients.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
#include "tidemark/api/tensor.h"
#include "tidemark/api/tensor_array.h"
#include "tidemark/api/variable.h"
#include "tidemark/base/error.h"
#include "tidemark/base/text.h"
#include "tidemark/device/out_of_memory.h"
#include "tidemark/device/threads.h"
