#include "tidemark/base/work.h"

namespace tidemark {

std::atomic<int64_t> Work::steps_{0};

}  // namespace tidemark
