// A layer is any type with `Tensor operator()(const Tensor&) const`. This header has AnyLayer,
// which erases its type, and code shared by the library's layers.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tidemark/api/extend.h"
#include "tidemark/api/variable_walk.h"

namespace tidemark::detail {
// Throws UserError: a closure captures layers, which a copy of the model cannot replace.
[[noreturn]] void refuse_closure(const VariablePath& path);

// What a recurrent layer runs on, and what it gives, whatever its state is made of: {h} or {h, c}.
struct SequenceInput {
  std::vector<Tensor> initial = {};  // Default: zeros.
  std::optional<Tensor> mask = {};
};
struct SequenceResult {
  Tensor output;
  std::vector<Tensor> state;
};

template <class F>
concept SequenceLayer =
    requires(const F& layer, const Tensor& x, const SequenceInput& input, Source at) {
      { layer.run_sequence(x, input, at) } -> std::same_as<SequenceResult>;
    };

[[noreturn]] void refuse_sequence(const std::string& name, Source at);
}  // namespace tidemark::detail

namespace tidemark::nn {

template <class F>
concept LayerFunction = std::invocable<const F&, const Tensor&> &&
                        std::convertible_to<std::invoke_result_t<const F&, const Tensor&>, Tensor>;

// Holds a callable of one tensor: a layer, an op, a closure, a function with a custom gradient. A
// copy is the same layer.
class AnyLayer {
 public:
  template <class F>
    requires(!std::same_as<F, AnyLayer> && LayerFunction<F>)
  AnyLayer(F layer) : held_(std::make_shared<const TypedHolder<F>>(std::move(layer))) {}

  Tensor operator()(const Tensor& x, Source at = Source::here()) const {
    return held_->call(x, at);
  }
  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
    held_->walk(path, see);
  }
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace) {
    held_ = held_->replaced(path, replace);
  }
  bool tidemark_identity(std::string& key) const { return held_->add_identity(key); }
  // Whether it is a layer that was given a name.
  bool has_name() const { return held_->has_name(); }
  // Internal. Of a recurrent layer; of any other an error.
  detail::SequenceResult run_sequence(const Tensor& x, const detail::SequenceInput& input,
                                      Source at) const {
    return held_->run_sequence(x, input, at);
  }

 private:
  struct Holder {
    virtual ~Holder() = default;
    virtual Tensor call(const Tensor& x, Source at) const = 0;
    virtual void walk(const detail::VariablePath& path, const detail::SeeVariable& see) const = 0;
    virtual std::shared_ptr<const Holder> replaced(const detail::VariablePath& path,
                                                   const detail::ReplaceVariable& f) const = 0;
    virtual bool add_identity(std::string& key) const = 0;
    virtual bool has_name() const = 0;
    virtual detail::SequenceResult run_sequence(const Tensor& x, const detail::SequenceInput& input,
                                                Source at) const = 0;
  };
  template <class F>
  struct TypedHolder final : Holder, detail::SharedIdentity {
    explicit TypedHolder(F layer) : layer(std::move(layer)) {}
    Tensor call(const Tensor& x, Source at) const override {
      return detail::call_back(layer, at, x);
    }
    void walk(const detail::VariablePath& path, const detail::SeeVariable& see) const override {
      detail::walk_variables(layer, path, see);
    }
    std::shared_ptr<const Holder> replaced(const detail::VariablePath& path,
                                           const detail::ReplaceVariable& f) const override {
      F copy = layer;
      detail::walk_variables(copy, path, f);
      return std::make_shared<const TypedHolder<F>>(std::move(copy));
    }
    bool has_name() const override {
      if constexpr (requires { layer.name().empty(); })
        return !layer.name().empty();
      else
        return false;
    }
    detail::SequenceResult run_sequence(const Tensor& x, const detail::SequenceInput& input,
                                        Source at) const override {
      if constexpr (detail::SequenceLayer<F>)
        return layer.run_sequence(x, input, at);
      else if constexpr (requires { std::string(layer.name()); })
        detail::refuse_sequence(layer.name(), at);
      else
        detail::refuse_sequence("", at);
    }
    // A callable that cannot be compared is identified by the object that holds it, which is
    // immutable. One that may hold tensors has no identity, since remembering it would keep their
    // memory alive.
    bool add_identity(std::string& key) const override {
      const size_t before = key.size();
      key += typeid(F).name();
      if (detail::add_identity_of(layer, key)) return true;
      key.resize(before);
      detail::add_identity(identity(), key);
      return std::is_trivially_destructible_v<F>;
    }
    F layer;
  };

  std::shared_ptr<const Holder> held_;
};

}  // namespace tidemark::nn
