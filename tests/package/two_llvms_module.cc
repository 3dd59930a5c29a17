// What the host of two LLVMs runs once another one is loaded. True when the result is right.
#include "tidemark/base/text.h"

extern "C" bool use_tidemark() { return tidemark::cat(tidemark::Bytes(64 << 20)) == "64.0 MiB"; }
