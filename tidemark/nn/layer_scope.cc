#include "tidemark/nn/layer_scope.h"

#include "tidemark/base/error.h"

namespace tidemark::detail {

std::string layer_title(const char* kind, const std::string& name) {
  return name.empty() ? std::string(kind) : cat(kind, " \"", name, "\"");
}

std::string parameter_name(const std::string& layer, const char* parameter) {
  return layer.empty() ? std::string(parameter) : cat(layer, "/", parameter);
}

thread_local LayerObserver* LayerObserver::current_ = nullptr;

LayerScope::LayerScope(const char*, const std::string&, Source at)
    : lines_(at), observer_(std::exchange(LayerObserver::current_, nullptr)) {}
LayerScope::~LayerScope() { LayerObserver::current_ = observer_; }

void refuse_closure(const VariablePath& path) {
  const std::string where = path.text();
  throw UserError(
      cat("clone: the closure of nn::Lambda", where.empty() ? "" : cat(" at \"", where, "\""),
          " holds its layers itself: the copy would run the old ones"),
      Source::none(),
      "let the function take the layers: nn::Lambda([](const td::Tensor& x, const "
      "td::nn::Dense& dense) {...}, dense)");
}

void refuse(const char* kind, const std::string& name, const std::string& problem,
            const char* remedy, Source at) {
  throw UserError(cat(layer_title(kind, name), ": ", problem), at, remedy);
}

}  // namespace tidemark::detail
