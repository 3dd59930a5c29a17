// Small layers: Embedding, Flatten, Dropout.
#pragma once

#include <cstdint>
#include <string>

#include "tidemark/nn/initializers.h"
#include "tidemark/nn/layer.h"
#include "tidemark/nn/policy.h"

namespace tidemark::nn {

struct EmbeddingOptions {
  Initializer initializer = initializers::uniform();
  Policy dtype = global_policy();
  std::string name = {};
};

// Rows of a table, one for each id: [...] of integers becomes [..., features]. Its gradient is
// row-sparse.
class Embedding : public detail::SharedIdentity {
 public:
  Embedding(int64_t ids, int64_t features, EmbeddingOptions options = {},
            Source at = Source::here());
  Tensor operator()(const Tensor& ids, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  const Policy& policy() const { return policy_; }

  Variable table;  // [ids, features]
  TIDEMARK_FIELDS(table)

  static constexpr const char* kKind = "nn::Embedding";
  Tensor call(const Tensor& ids, Source at) const;  // Internal.

 private:
  Policy policy_;
  std::string name_;
};

// Merges all axes but the first: [n, ...] becomes [n, features]. A view.
class Flatten : public detail::SharedIdentity {
 public:
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = "nn::Flatten";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  std::string name_;
};

// In training mode (nn::Training) sets each element to zero with probability `rate` and scales the
// others to keep the mean; otherwise the identity.
class Dropout : public detail::SharedIdentity {
 public:
  explicit Dropout(double rate = 0.5, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  double rate() const { return rate_; }
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(rate_)

  static constexpr const char* kKind = "nn::Dropout";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  double rate_;
  std::string name_;
};

}  // namespace tidemark::nn
