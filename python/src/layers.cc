// td.nn: the layers. Each is an object of C++; options are keyword arguments.
#include "dtype.h"
#include "errors.h"
#include "layer_class.h"

namespace tidemark::python {
namespace {

void bind_dense(nb::module_& nn) {
  auto dense =
      layer_class<nn::Dense>(nn, "Dense", "y = activation(x kernel + bias), over the last axis.");
  dense
      .def(
          "__init__",
          [](nn::Dense* self, int64_t units, nb::handle activation, bool use_bias,
             nb::handle kernel_initializer, nb::handle bias_initializer, nb::handle dtype,
             std::string name) {
            const Source at = calling_line();
            new (self) nn::Dense(units,
                                 {.activation = activation_from(activation, at),
                                  .use_bias = use_bias,
                                  .kernel_initializer = initializer_from(kernel_initializer),
                                  .bias_initializer = initializer_from(bias_initializer),
                                  .dtype = policy_from(dtype),
                                  .name = std::move(name)},
                                 at);
          },
          arg("units"), nb::kw_only(), arg("activation") = nb::none(), arg("use_bias") = true,
          arg("kernel_initializer") = nn.attr("initializers").attr("glorot_uniform"),
          arg("bias_initializer") = nn.attr("initializers").attr("zeros"),
          arg("dtype") = nb::none(), arg("name") = "")
      .def_prop_ro("units", &nn::Dense::units);
  field(dense, "kernel", &nn::Dense::kernel, "[features, units]");
  field(dense, "bias", &nn::Dense::bias, "[units], or None.");
}

void bind_basic(nb::module_& nn) {
  auto embedding = layer_class<nn::Embedding>(
      nn, "Embedding",
      "Rows of a table, one for each id: [...] of integers becomes [..., features].");
  embedding.def(
      "__init__",
      [](nn::Embedding* self, int64_t ids, int64_t features, nb::handle initializer,
         nb::handle dtype, std::string name) {
        new (self) nn::Embedding(ids, features,
                                 {.initializer = initializer_from(initializer),
                                  .dtype = policy_from(dtype),
                                  .name = std::move(name)},
                                 calling_line());
      },
      arg("ids"), arg("features"), nb::kw_only(),
      arg("initializer") = nn.attr("initializers").attr("uniform")(), arg("dtype") = nb::none(),
      arg("name") = "");
  field(embedding, "table", &nn::Embedding::table, "[ids, features]");
  layer_class<nn::Flatten>(nn, "Flatten", "Merges all axes but the first. A view.")
      .def(nb::init<>());
  layer_class<nn::Dropout>(
      nn, "Dropout",
      "In training mode sets each element to zero with probability `rate` and scales the "
      "others to keep the mean; otherwise the identity.")
      .def(
          "__init__",
          [](nn::Dropout* self, double rate) { new (self) nn::Dropout(rate, calling_line()); },
          arg("rate") = 0.5)
      .def_prop_ro("rate", &nn::Dropout::rate);
  layer_class<nn::Activation>(
      nn, "Activation", "A function of one tensor that keeps its shape, by name or as a callable.")
      .def(
          "__init__",
          [](nn::Activation* self, nb::handle function) {
            new (self) nn::Activation(activation_from(function, calling_line()));
          },
          arg("function").none());
}

void bind_norms(nb::module_& nn) {
  auto layer = layer_class<nn::LayerNorm>(
      nn, "LayerNorm",
      "Normalises the last axis to mean 0 and standard deviation 1, then applies scale and bias.");
  layer.def(
      "__init__",
      [](nn::LayerNorm* self, double epsilon, bool use_scale, bool use_bias, nb::handle dtype,
         std::string name) {
        new (self) nn::LayerNorm(
            {epsilon, use_scale, use_bias, policy_from(dtype), std::move(name)}, calling_line());
      },
      nb::kw_only(), arg("epsilon") = 1e-5, arg("use_scale") = true, arg("use_bias") = true,
      arg("dtype") = nb::none(), arg("name") = "");
  field(layer, "scale", &nn::LayerNorm::scale, "[features], or None.");
  field(layer, "bias", &nn::LayerNorm::bias, "[features], or None.");
  auto rms = layer_class<nn::RMSNorm>(
      nn, "RMSNorm",
      "Over the last axis: divided by the root of the mean of squares, then scaled by feature.");
  rms.def(
      "__init__",
      [](nn::RMSNorm* self, double epsilon, nb::handle dtype, std::string name) {
        new (self) nn::RMSNorm({epsilon, policy_from(dtype), std::move(name)}, calling_line());
      },
      nb::kw_only(), arg("epsilon") = 1e-5, arg("dtype") = nb::none(), arg("name") = "");
  field(rms, "scale", &nn::RMSNorm::scale, "[features]");
  auto batch = layer_class<nn::BatchNorm>(
      nn, "BatchNorm",
      "Normalises each feature over all other axes: by the batch in training mode, else by the "
      "running statistics.");
  batch.def(
      "__init__",
      [](nn::BatchNorm* self, double epsilon, double momentum, bool use_scale, bool use_bias,
         nb::handle dtype, std::string name) {
        new (self) nn::BatchNorm(
            {epsilon, momentum, use_scale, use_bias, policy_from(dtype), std::move(name)},
            calling_line());
      },
      nb::kw_only(), arg("epsilon") = 1e-3, arg("momentum") = 0.99, arg("use_scale") = true,
      arg("use_bias") = true, arg("dtype") = nb::none(), arg("name") = "");
  field(batch, "scale", &nn::BatchNorm::scale, "[features], or None.");
  field(batch, "bias", &nn::BatchNorm::bias, "[features], or None.");
  field(batch, "running_mean", &nn::BatchNorm::running_mean, "[features], not trained.");
  field(batch, "running_variance", &nn::BatchNorm::running_variance, "[features], not trained.");
}

void bind_group_norms(nb::module_& nn) {
  auto group = layer_class<nn::GroupNorm>(
      nn, "GroupNorm",
      "On [n, ..., features]: each group of features of each example is normalised.");
  group.def(
      "__init__",
      [](nn::GroupNorm* self, int64_t groups, double epsilon, bool use_scale, bool use_bias,
         nb::handle dtype, std::string name) {
        new (self) nn::GroupNorm(
            groups, {epsilon, use_scale, use_bias, policy_from(dtype), std::move(name)},
            calling_line());
      },
      arg("groups"), nb::kw_only(), arg("epsilon") = 1e-5, arg("use_scale") = true,
      arg("use_bias") = true, arg("dtype") = nb::none(), arg("name") = "");
  field(group, "scale", &nn::GroupNorm::scale, "[features], or None.");
  field(group, "bias", &nn::GroupNorm::bias, "[features], or None.");
  auto instance = layer_class<nn::InstanceNorm>(
      nn, "InstanceNorm", "On [n, ..., features]: each feature of each example is normalised.");
  instance.def(
      "__init__",
      [](nn::InstanceNorm* self, double epsilon, bool use_scale, bool use_bias, nb::handle dtype,
         std::string name) {
        new (self) nn::InstanceNorm(
            {epsilon, use_scale, use_bias, policy_from(dtype), std::move(name)}, calling_line());
      },
      nb::kw_only(), arg("epsilon") = 1e-5, arg("use_scale") = true, arg("use_bias") = true,
      arg("dtype") = nb::none(), arg("name") = "");
  field(instance, "scale", &nn::InstanceNorm::scale, "[features], or None.");
  field(instance, "bias", &nn::InstanceNorm::bias, "[features], or None.");
}

void bind_kv_cache(nb::module_& nn) {
  using nn::KVCache;
  nb::class_<KVCache> cache(nn, "KVCache",
                            "Keys and values of earlier tokens, written in place: attention(x, "
                            "cache=cache) continues after them.",
                            nb::dynamic_attr(), nb::is_weak_referenceable());
  make_part<KVCache>(cache);
  cache
      .def(
          "__init__",
          [](KVCache* self, int64_t capacity, DType dtype, std::string name) {
            new (self) KVCache(capacity, {dtype, std::move(name)}, calling_line());
          },
          arg("capacity"), nb::kw_only(), arg("dtype") = DType::f32, arg("name") = "")
      .def(
          "reset",
          [](const KVCache& self, nb::handle kept) {
            const Source at = calling_line();
            const Value value(kept, at);
            self.reset(value.operand(), at);
          },
          arg("kept") = 0, "Forgets all tokens, or all but the first `kept`.")
      .def_prop_ro("capacity", &KVCache::capacity)
      .def_prop_ro(
          "length", [](const KVCache& self) { return wrap(self.length); },
          "A Variable: how many tokens it holds.")
      .def_prop_ro("keys", [](const KVCache& self) { return wrap(self.keys); })
      .def_prop_ro("values", [](const KVCache& self) { return wrap(self.values); });
  nn.def(
      "rotary",
      [](nb::handle x, nb::handle first, double base) {
        const Source at = calling_line();
        const Tensor input = tensor_from(x, at);
        const Value from(first, at);
        const nb::gil_scoped_release released;
        return nn::rotary(input, from.operand(), base, at);
      },
      arg("x"), arg("first") = 0, arg("base") = 10000.0,
      "Rotary position embedding of [..., tokens, size]; positions count from `first`.");
}

void bind_attention(nb::module_& nn) {
  using Attention = nn::MultiHeadAttention;
  nb::class_<Attention::Projection> projection(nn, "Projection", "The parameters of a projection.");
  field(projection, "kernel", &Attention::Projection::kernel, "[features, heads * size]");
  field(projection, "bias", &Attention::Projection::bias, "Or None.");
  auto attention = nb::class_<Attention>(nn, "MultiHeadAttention", nb::dynamic_attr(),
                                         nb::is_weak_referenceable(),
                                         "On [..., tokens, features]: attention(x), or "
                                         "attention(query, memory, mask) where keys and values "
                                         "come from `memory` and a false mask hides a key.");
  make_part<Attention>(attention);
  attention
      .def(
          "__init__",
          [](Attention* self, int64_t heads, int64_t key_size, bool causal,
             std::optional<int64_t> value_size, std::optional<int64_t> output_size,
             std::optional<int64_t> key_heads, std::optional<double> rotary, bool alibi,
             double dropout, double weight_dropout, bool use_bias, nb::handle kernel_initializer,
             nb::handle dtype, std::string name) {
            new (self) Attention(heads, key_size,
                                 {.causal = causal,
                                  .value_size = value_size,
                                  .output_size = output_size,
                                  .key_heads = key_heads,
                                  .rotary = rotary,
                                  .alibi = alibi,
                                  .dropout = dropout,
                                  .weight_dropout = weight_dropout,
                                  .use_bias = use_bias,
                                  .kernel_initializer = initializer_from(kernel_initializer),
                                  .dtype = policy_from(dtype),
                                  .name = std::move(name)},
                                 calling_line());
          },
          arg("heads"), arg("key_size"), nb::kw_only(), arg("causal") = false,
          arg("value_size") = nb::none(), arg("output_size") = nb::none(),
          arg("key_heads") = nb::none(), arg("rotary") = nb::none(), arg("alibi") = false,
          arg("dropout") = 0.0, arg("weight_dropout") = 0.0, arg("use_bias") = true,
          arg("kernel_initializer") = nn.attr("initializers").attr("glorot_uniform"),
          arg("dtype") = nb::none(), arg("name") = "")
      .def(
          "__call__",
          [](const Attention& layer, nb::handle x, nb::handle memory, nb::handle mask,
             const nn::KVCache* cache) {
            const Source at = calling_line();
            const Tensor query = tensor_from(x, at);
            std::optional<Tensor> kept, hidden;
            if (!memory.is_none()) kept = tensor_from(memory, at);
            if (!mask.is_none()) hidden = tensor_from(mask, at);
            if (cache != nullptr && (kept || hidden))
              throw UserError("nn.MultiHeadAttention: a cache goes with neither memory nor mask",
                              at, "give x and cache alone: attention(x, cache=cache)");
            const nb::gil_scoped_release released;
            if (cache != nullptr) return layer(query, *cache, at);
            if (!kept && !hidden) return layer(query, at);
            return layer(query, kept ? *kept : query, hidden, at);
          },
          arg("x"), arg("memory") = nb::none(), arg("mask") = nb::none(), nb::kw_only(),
          arg("cache") = nb::none())
      .def_prop_ro("name", &Attention::name)
      .def_rw("query", &Attention::query)
      .def_rw("key", &Attention::key)
      .def_rw("value", &Attention::value)
      .def_rw("output", &Attention::output);
}

nb::object wrapped(const Tensor& state) { return nb::steal(wrap(Tensor(state))); }
nb::object wrapped(const nn::LSTMState& state) {
  return nb::make_tuple(wrapped(state.h), wrapped(state.c));
}
void read_state(nb::handle object, Tensor& state, Source at) { state = tensor_from(object, at); }
void read_state(nb::handle object, nn::LSTMState& state, Source at) {
  if (!PyTuple_Check(object.ptr()) || PyTuple_GET_SIZE(object.ptr()) != 2)
    throw UserTypeError(cat("nn.LSTM: the initial state is a ", Py_TYPE(object.ptr())->tp_name), at,
                        "give the pair (h, c), as run returns it");
  state = {tensor_from(PyTuple_GET_ITEM(object.ptr(), 0), at),
           tensor_from(PyTuple_GET_ITEM(object.ptr(), 1), at)};
}

nb::object wrapped(const nn::BidirectionalState& state) {
  return nb::make_tuple(state_object(state.forward), state_object(state.backward));
}
void read_state(nb::handle object, nn::BidirectionalState& state, Source at) {
  if (!PyTuple_Check(object.ptr()) || PyTuple_GET_SIZE(object.ptr()) != 2)
    throw UserTypeError(
        cat("nn.Bidirectional: the initial state is a ", Py_TYPE(object.ptr())->tp_name), at,
        "give the pair (forward, backward), as run returns it");
  state = {state_list(PyTuple_GET_ITEM(object.ptr(), 0), at),
           state_list(PyTuple_GET_ITEM(object.ptr(), 1), at)};
}

template <class Layer>
void bind_run(nb::class_<Layer>& bound) {
  bound.def(
      "run",
      [](const Layer& layer, nb::handle x, nb::handle initial, nb::handle mask) {
        const Source at = calling_line();
        const Tensor sequence = tensor_from(x, at);
        nn::RecurrentInput<typename Layer::State> input;
        if (!initial.is_none()) read_state(initial, input.initial.emplace(), at);
        if (!mask.is_none()) input.mask = tensor_from(mask, at);
        nn::RecurrentResult<typename Layer::State> result;
        {
          const nb::gil_scoped_release released;
          result = layer.run(sequence, input, at);
        }
        return nb::make_tuple(wrapped(result.output), wrapped(result.state));
      },
      arg("x"), nb::kw_only(), arg("initial") = nb::none(), arg("mask") = nb::none(),
      "The output and the last state, from an initial state; steps whose mask is false are "
      "skipped.");
}

// The constructor of a layer with RecurrentOptions.
template <class Layer>
void def_recurrent_init(nb::class_<Layer>& cls, nb::module_& nn) {
  cls.def(
      "__init__",
      [](Layer* self, int64_t units, bool return_sequences, bool reverse, std::optional<Save> save,
         nb::handle kernel_initializer, nb::handle recurrent_initializer, nb::handle dtype,
         std::string name) {
        new (self) Layer(units,
                         {.return_sequences = return_sequences,
                          .reverse = reverse,
                          .save = save ? *save : Save::automatic(),
                          .kernel_initializer = initializer_from(kernel_initializer),
                          .recurrent_initializer = initializer_from(recurrent_initializer),
                          .dtype = policy_from(dtype),
                          .name = std::move(name)},
                         calling_line());
      },
      arg("units"), nb::kw_only(), arg("return_sequences") = false, arg("reverse") = false,
      arg("save") = nb::none(),
      arg("kernel_initializer") = nn.attr("initializers").attr("glorot_uniform"),
      arg("recurrent_initializer") = nn.attr("initializers").attr("orthogonal"),
      arg("dtype") = nb::none(), arg("name") = "");
}

void bind_other_recurrent(nb::module_& nn) {
  const auto glorot = nn.attr("initializers").attr("glorot_uniform");
  const auto orthogonal = nn.attr("initializers").attr("orthogonal");
  auto gru = layer_class<nn::GRU>(
      nn, "GRU",
      "Gated recurrent unit: [n, steps, features] becomes [n, units], or [n, steps, units].");
  def_recurrent_init(gru, nn);
  field(gru, "kernel", &nn::GRU::kernel, "[features, 3 units]");
  field(gru, "recurrent", &nn::GRU::recurrent, "[units, 3 units]");
  field(gru, "bias", &nn::GRU::bias, "[3 units]");
  field(gru, "recurrent_bias", &nn::GRU::recurrent_bias, "[3 units]");
  bind_run(gru);
  auto rnn = layer_class<nn::SimpleRNN>(
      nn, "SimpleRNN", "h = activation(x kernel + h recurrent + bias), step by step.");
  rnn.def(
      "__init__",
      [](nn::SimpleRNN* self, int64_t units, nb::handle activation, bool return_sequences,
         bool reverse, std::optional<Save> save, nb::handle kernel_initializer,
         nb::handle recurrent_initializer, nb::handle dtype, std::string name) {
        const Source at = calling_line();
        new (self) nn::SimpleRNN(units,
                                 {.activation = activation_from(activation, at),
                                  .return_sequences = return_sequences,
                                  .reverse = reverse,
                                  .save = save ? *save : Save::automatic(),
                                  .kernel_initializer = initializer_from(kernel_initializer),
                                  .recurrent_initializer = initializer_from(recurrent_initializer),
                                  .dtype = policy_from(dtype),
                                  .name = std::move(name)},
                                 at);
      },
      arg("units"), nb::kw_only(), arg("activation") = "tanh", arg("return_sequences") = false,
      arg("reverse") = false, arg("save") = nb::none(), arg("kernel_initializer") = glorot,
      arg("recurrent_initializer") = orthogonal, arg("dtype") = nb::none(), arg("name") = "");
  field(rnn, "kernel", &nn::SimpleRNN::kernel, "[features, units]");
  field(rnn, "recurrent", &nn::SimpleRNN::recurrent, "[units, units]");
  field(rnn, "bias", &nn::SimpleRNN::bias, "[units]");
  bind_run(rnn);
  auto both = layer_class<nn::Bidirectional>(
      nn, "Bidirectional",
      "Two layers of one input, one after another along the last axis: "
      "Bidirectional(GRU(8), GRU(8, reverse=True)).");
  both.def(
      "__init__",
      [](nn::Bidirectional* self, nb::handle forward, nb::handle backward, std::string name) {
        new (self) nn::Bidirectional(PythonLayer::recorded(forward),
                                     PythonLayer::recorded(backward), std::move(name));
      },
      arg("forward"), arg("backward"), nb::kw_only(), arg("name") = "");
  bind_run(both);
}

void bind_lstm(nb::module_& nn) {
  auto lstm = layer_class<nn::LSTM>(
      nn, "LSTM",
      "Long short-term memory: [n, steps, features] becomes [n, units], or [n, steps, units].");
  def_recurrent_init(lstm, nn);
  field(lstm, "kernel", &nn::LSTM::kernel, "[features, 4 units]");
  field(lstm, "recurrent", &nn::LSTM::recurrent, "[units, 4 units]");
  field(lstm, "bias", &nn::LSTM::bias, "[4 units]");
  bind_run(lstm);
}

}  // namespace

void bind_layers(nb::module_& nn) {
  nn.def("_call_init_of", [](nb::handle type) {
    // nanobind's way to make objects goes past an __init__ that is written in Python.
    reinterpret_cast<PyTypeObject*>(type.ptr())->tp_vectorcall = nullptr;
  });
  bind_dense(nn);
  bind_basic(nn);
  bind_image_layers(nn);
  bind_norms(nn);
  bind_group_norms(nn);
  bind_kv_cache(nn);
  bind_attention(nn);
  bind_lstm(nn);
  bind_other_recurrent(nn);
}

}  // namespace tidemark::python
