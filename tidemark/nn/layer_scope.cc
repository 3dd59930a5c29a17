#include "tidemark/nn/layer_scope.h"

#include "tidemark/base/error.h"

namespace tidemark::detail {

std::string layer_title(const char* kind, const std::string& name) {
  std::string title = kind;
  if (!name.empty()) title.append(" \"").append(name).append("\"");
  return title;
}

std::string parameter_name(const std::string& layer, const char* parameter) {
  return layer.empty() ? std::string(parameter) : cat(layer, "/", parameter);
}

thread_local LayerObserver* LayerObserver::current_ = nullptr;
thread_local const LayerScope* LayerScope::current_ = nullptr;

LayerScope::LayerScope(const char* kind, const std::string& name, Source at)
    : lines_(at),
      around_(charged.layer),
      name_(layer_title(kind, name), at),
      observer_(std::exchange(LayerObserver::current_, nullptr)),
      outer_(std::exchange(current_, this)) {}
LayerScope::~LayerScope() {
  LayerObserver::current_ = observer_;
  current_ = outer_;
}

void refuse_closure(const VariablePath& path) {
  const std::string where = path.text();
  throw UserError(
      cat("clone: the closure of nn::Lambda", where.empty() ? "" : cat(" at \"", where, "\""),
          " captures its layers: the copy would run the original's"),
      Source::none(),
      "pass the layers as arguments: nn::Lambda([](const td::Tensor& x, const "
      "td::nn::Dense& dense) {...}, dense)");
}

void refuse(const char* kind, const std::string& name, const std::string& problem,
            const char* remedy, Source at) {
  const uint32_t inside = charged.layer;
  if (LayerScope::current() != nullptr) charged.layer = LayerScope::current()->around();
  const UserError error(cat(layer_title(kind, name), ": ", problem), at, remedy);
  charged.layer = inside;
  throw error;
}

}  // namespace tidemark::detail
