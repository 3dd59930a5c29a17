// Options of layers as Python passes them.
#pragma once

#include "bindings.h"
#include "model.h"

namespace tidemark::python {

// None, a name, an op such as td.relu, or any callable of one tensor.
nn::Activation activation_from(nb::handle object, Source at);
// A dtype, a policy or its name; None is the global policy.
nn::Policy policy_from(nb::handle object);
// One of nn.initializers, or any callable of a shape and a dtype.
Initializer initializer_from(nb::handle object);
// A td.TensorSpec, or the type of a tensor or array.
TensorSpec spec_from(nb::handle object, Source at);

void bind_layers(nb::module_& nn);
void bind_image_layers(nb::module_& nn);

}  // namespace tidemark::python
