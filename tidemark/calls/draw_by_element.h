// Draws of ops that take a parameter for each element beside their key. Internal to the library.
#pragma once

#include <optional>

#include "tidemark/ops/random.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark::random {
class Key;
}

namespace tidemark::detail {

// `parameters` are f64, and so are the draws.
Tensor draw_by_element(ops::Drawn drawn, const Tensor& parameters,
                       const std::optional<random::Key>& key, Source at);

}  // namespace tidemark::detail
