#include "tidemark/base/source.h"

#include <cstring>

#include "tidemark/base/name_scope.h"

namespace tidemark {

constinit thread_local detail::Charged detail::charged;

std::string Source::text() const {
  const char* slash = std::strrchr(file, '/');
  return std::string(slash != nullptr ? slash + 1 : file) + ":" + std::to_string(line);
}

std::string Source::layer_path() const { return std::string(detail::layer_path(layer)); }

}  // namespace tidemark
