#pragma once

#include "tidemark/calls/fourier.h"
#include "tidemark/calls/ops.h"
#include "tidemark/calls/ordered.h"
#include "tidemark/calls/scans.h"
#include "tidemark/calls/scatter.h"
#include "tidemark/calls/windows.h"
#include "tidemark/grad/pooling.h"
