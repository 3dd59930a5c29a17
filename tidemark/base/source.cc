#include "tidemark/base/source.h"

#include <cstring>

namespace tidemark {

constinit thread_local detail::ChargeTarget detail::charged;

std::string Source::text() const {
  const char* slash = std::strrchr(file, '/');
  return std::string(slash != nullptr ? slash + 1 : file) + ":" + std::to_string(line);
}

}  // namespace tidemark
