// The scope of a layer's call; internal to nn/.
#pragma once

#include <string>

#include "tidemark/base/name_scope.h"
#include "tidemark/nn/layer.h"
#include "tidemark/nn/policy.h"

namespace tidemark::detail {

// `nn::Dense "head"`, or `nn::Dense` if it has no name.
std::string layer_title(const char* kind, const std::string& name);
// The name of a layer's parameter in messages: "head/kernel", or "kernel".
std::string parameter_name(const std::string& layer, const char* parameter);

// A call of a layer, for observers.
struct LayerCall {
  const char* kind;
  std::string name;
  const nn::AnyLayer& layer;
  const Tensor &input, &output;
};

// Observes the calls of layers on its thread while it lives, but not nested calls.
class LayerObserver {
 public:
  LayerObserver() : outer_(current_) { current_ = this; }
  virtual ~LayerObserver() { current_ = outer_; }
  LayerObserver(const LayerObserver&) = delete;
  LayerObserver& operator=(const LayerObserver&) = delete;
  void see(const LayerCall& call) {
    ++count_;
    saw(call);
  }
  int64_t count() const { return count_; }
  static LayerObserver* current() { return current_; }

 protected:
  virtual void saw(const LayerCall& call) = 0;

 private:
  friend class LayerScope;
  static thread_local LayerObserver* current_;
  LayerObserver* outer_;
  int64_t count_ = 0;
};

// Held while a layer runs: memory is charged to the line that called the layer, and to the layer.
class LayerScope {
 public:
  LayerScope(const char* kind, const std::string& name, Source at);
  ~LayerScope();
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

  // The innermost on this thread, or null; and the number of the NameScope around it.
  static const LayerScope* current() { return current_; }
  uint32_t around() const { return around_; }

 private:
  static thread_local const LayerScope* current_;
  SourceScope lines_;
  uint32_t around_;
  NameScope name_;
  LayerObserver* observer_;
  const LayerScope* outer_;
};

// A layer's operator(): Layer has `kKind`, `name()` and `call(x, at)`.
template <class Layer>
Tensor run_layer(const Layer& layer, const Tensor& x, Source at) {
  LayerObserver* const observer = LayerObserver::current();
  Tensor result;
  {
    const LayerScope scope(Layer::kKind, layer.name(), at);
    if constexpr (requires { layer.policy(); }) {
      const PolicyScope policy(layer.policy());
      result = layer.call(policy.input(x), at);
    } else {
      result = layer.call(x, at);
    }
  }
  if (observer != nullptr) [[unlikely]]
    observer->see({Layer::kKind, layer.name(), nn::AnyLayer(layer), x, result});
  return result;
}

// An initializer that from here on belongs to a Variable alone, which drops it when it has a value.
inline Initializer taken(Initializer& option) { return std::exchange(option, nullptr); }

// Throws a UserError that begins with the layer's title.
[[noreturn]] void refuse(const char* kind, const std::string& name, const std::string& problem,
                         const char* remedy, Source at);

}  // namespace tidemark::detail
