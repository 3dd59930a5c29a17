// models_driver FOLDER: runs layers, losses, optimizers, schedules, metrics and draws, and writes
// each case with all that it was given and all that it gave to FOLDER/CASE.npz, for models.py to
// judge by PyTorch, Keras and tests of fit. The name of a case says its options:
// "conv2d,strides=2,groups=1".
//
// Layers run in f64, so that the judges' own rounding is far below what a wrong formula gives.
// Every case runs in eager code and as a function; what a function gives has the prefix
// "compiled/".
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/tidemark.h"

namespace td = tidemark;
namespace nn = td::nn;

namespace {

using td::Tensor;
using Tensors = std::map<std::string, Tensor>;

std::string folder;
uint64_t drawn = 0;

Tensor normal(const td::Shape& shape) {
  return td::random::normal(shape, {.dtype = td::f64, .key = td::random::Key(++drawn)});
}

Tensor classes(const td::Shape& shape, int64_t count) {
  return td::random::integers(shape,
                              {.high = count, .dtype = td::i64, .key = td::random::Key(++drawn)});
}

void write(const std::string& name, const Tensors& tensors) {
  td::io::save_npz(td::cat(folder, "/", name, ".npz"), tensors);
}

// ---- layers -------------------------------------------------------------------------------------

// Gives every Variable of the model drawn values: zeros at first hide what is wrong.
template <class Model>
void draw_variables(const Model& model) {
  for (auto& [name, variable] : nn::named_variables(model)) {
    const Tensor values = normal(variable.shape());
    variable.assign(name.ends_with("running_variance") ? 0.5 + td::square(values) : values * 0.5);
  }
}

// What a model gives for x, and the gradients of a weighted sum of it by x and its Variables.
template <class Model>
Tensors differentiate(const Model& model, const Tensor& x) {
  td::GradientTape tape({.persistent = true});
  if (td::is_float(x.dtype())) tape.watch(x);
  const Tensor y = model(x);
  const Tensor loss =
      td::sum(y * td::sin(td::reshape(td::arange(0, y.size(), 1, td::f64), y.shape())));
  Tensors results{{"y", y}};
  if (td::is_float(x.dtype())) results.emplace("gradient/x", tape.gradient(loss, x));
  for (auto& [name, variable] : nn::named_variables(model)) {
    if (variable.trainable())
      results.emplace("gradient/" + name, tape.gradient(loss, std::vector{variable})[0].dense());
  }
  return results;
}

template <class Model>
void layer(const std::string& name, const Model& model, const Tensor& x, bool training = false) {
  model(x);  // Builds it.
  draw_variables(model);
  Tensors file{{"x", x}};
  for (auto& [path, variable] : nn::named_variables(model))
    file.emplace("variable/" + path, variable.value());
  const auto run = [&](const std::string& prefix, auto&& call) {
    for (auto& [path, variable] : nn::named_variables(model))
      variable.assign(file.at("variable/" + path));
    nn::Training mode(training);
    for (auto& [key, tensor] : call(x)) file.emplace(prefix + key, tensor);
    for (auto& [path, variable] : nn::named_variables(model)) {
      if (!variable.trainable()) file.emplace(prefix + "after/" + path, variable.value());
    }
  };
  const auto eager = [&](const Tensor& in) { return differentiate(model, in); };
  run("", eager);
  run("compiled/", td::function(eager));
  write(name, file);
}

// Convolutions, pools and sizes of images, rows and volumes, by the name of the layer.
void image_layers() {
  const Tensor row = normal({2, 9, 4}), image = normal({2, 7, 6, 4}),
               volume = normal({1, 4, 5, 6, 2});
  layer("conv1d",
        nn::Conv1D(6, 3, {.strides = 2, .padding = {{1, 1}}, .groups = 2, .dtype = td::f64}), row);
  layer("conv3d",
        nn::Conv3D(3, {2, 3, 2},
                   {.strides = {1, 2, 1}, .padding = {{1, 1}, {1, 1}, {1, 1}}, .dtype = td::f64}),
        volume);
  layer("conv1dtranspose", nn::Conv1DTranspose(6, 3, {.strides = 2, .groups = 2, .dtype = td::f64}),
        row);
  layer("conv2dtranspose",
        nn::Conv2DTranspose(3, {3, 2},
                            {.strides = {2, 3}, .padding = {{1, 1}, {0, 0}}, .dtype = td::f64}),
        image);
  layer("conv3dtranspose", nn::Conv3DTranspose(3, 2, {.strides = 2, .dtype = td::f64}), volume);
  layer("depthwiseconv1d", nn::DepthwiseConv1D(3, {.times = 2, .dtype = td::f64}), row);
  layer("depthwiseconv2d", nn::DepthwiseConv2D({3, 2}, {.strides = {2, 1}, .dtype = td::f64}),
        image);
  layer("separableconv1d", nn::SeparableConv1D(5, 3, {.times = 2, .dtype = td::f64}), row);
  layer("separableconv2d", nn::SeparableConv2D(5, 2, {.dtype = td::f64}), image);
  layer("maxpool1d", nn::MaxPool1D(3, {.strides = 2}), row);
  layer("maxpool3d", nn::MaxPool3D(2), volume);
  layer("averagepool1d", nn::AveragePool1D(3, {.strides = 2}), row);
  layer("averagepool3d", nn::AveragePool3D(2), volume);
  layer("globalmaxpool1d", nn::GlobalMaxPool1D(), row);
  layer("globalmaxpool2d", nn::GlobalMaxPool2D(), image);
  layer("globalmaxpool3d", nn::GlobalMaxPool3D(), volume);
  layer("globalaveragepool1d", nn::GlobalAveragePool1D(), row);
  layer("globalaveragepool3d", nn::GlobalAveragePool3D(), volume);
  layer("adaptivemaxpool1d", nn::AdaptiveMaxPool1D(4), row);
  layer("adaptivemaxpool2d", nn::AdaptiveMaxPool2D({3, 4}), image);
  layer("adaptivemaxpool3d", nn::AdaptiveMaxPool3D({2, 3, 4}), volume);
  layer("adaptiveaveragepool1d", nn::AdaptiveAveragePool1D(4), row);
  layer("adaptiveaveragepool2d", nn::AdaptiveAveragePool2D({3, 4}), image);
  layer("adaptiveaveragepool3d", nn::AdaptiveAveragePool3D({2, 3, 4}), volume);
  layer("upsampling1d", nn::UpSampling1D(2), row);
  layer("upsampling2d", nn::UpSampling2D({2, 3}, td::Resizing::bilinear), image);
  layer("upsampling3d", nn::UpSampling3D(2, td::Resizing::bilinear), volume);
  layer("resize", nn::Resize({4, 9}, td::Resizing::bicubic, true), image);
}

void layers() {
  image_layers();
  for (const char* activation : {"linear", "relu", "gelu", "silu", "sigmoid", "tanh", "softmax",
                                 "log_softmax", "softplus", "leaky_relu", "elu"}) {
    layer(td::cat("dense,activation=", activation),
          nn::Dense(5, {.activation = activation, .dtype = td::f64}), normal({3, 4}));
  }
  layer("dense,activation=linear,bias=0", nn::Dense(5, {.use_bias = false, .dtype = td::f64}),
        normal({2, 3, 4}));
  for (const bool same : {false, true}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        if (stride > 1 && dilation > 1) continue;
        for (const int64_t groups : {1, 2}) {
          layer(td::cat("conv2d,same=", same, ",strides=", stride, ",dilations=", dilation,
                        ",groups=", groups),
                nn::Conv2D(4, {3, 2},
                           {.strides = stride,
                            .padding = same ? td::Padding::same : td::Padding::valid,
                            .dilations = dilation,
                            .groups = groups,
                            .dtype = td::f64}),
                normal({2, 8, 7, 2}));
        }
      }
      const nn::Pool2DOptions pool{.strides = stride,
                                   .padding = same ? td::Padding::same : td::Padding::valid};
      layer(td::cat("max_pool,same=", same, ",strides=", stride), nn::MaxPool2D({3, 2}, pool),
            normal({2, 8, 7, 3}));
      layer(td::cat("average_pool,same=", same, ",strides=", stride),
            nn::AveragePool2D({3, 2}, pool), normal({2, 8, 7, 3}));
    }
  }
  layer("global_average_pool", nn::GlobalAveragePool2D(), normal({2, 3, 4, 5}));
  layer("flatten", nn::Flatten(), normal({2, 3, 4}));
  layer("embedding", nn::Embedding(7, 3, {.dtype = td::f64}), classes({2, 5}, 7));
  layer("layer_norm", nn::LayerNorm({.epsilon = 1e-2, .dtype = td::f64}), normal({2, 3, 6}));
  layer("rms_norm", nn::RMSNorm({.epsilon = 1e-2, .dtype = td::f64}), normal({2, 3, 6}));
  for (const bool training : {false, true}) {
    layer(td::cat("batch_norm,training=", training),
          nn::BatchNorm({.epsilon = 1e-2, .momentum = 0.9, .dtype = td::f64}), normal({4, 3, 5}),
          training);
  }
  for (const bool sequences : {false, true}) {
    for (const bool reverse : {false, true}) {
      layer(td::cat("lstm,sequences=", sequences, ",reverse=", reverse),
            nn::LSTM(4, {.return_sequences = sequences, .reverse = reverse, .dtype = td::f64}),
            normal({3, 6, 5}));
    }
  }
  for (const bool sequences : {false, true}) {
    for (const bool reverse : {false, true}) {
      const std::string words = td::cat(",sequences=", sequences, ",reverse=", reverse);
      layer("gru" + words,
            nn::GRU(4, {.return_sequences = sequences, .reverse = reverse, .dtype = td::f64}),
            normal({3, 6, 5}));
      layer("simple_rnn" + words,
            nn::SimpleRNN(4, {.return_sequences = sequences, .reverse = reverse, .dtype = td::f64}),
            normal({3, 6, 5}));
    }
  }
  layer(
      "bidirectional",
      nn::Bidirectional(nn::GRU(4, {.return_sequences = true, .dtype = td::f64}),
                        nn::GRU(4, {.return_sequences = true, .reverse = true, .dtype = td::f64})),
      normal({3, 6, 5}));
  layer("group_norm", nn::GroupNorm(3, {.epsilon = 1e-2, .dtype = td::f64}), normal({2, 4, 5, 6}));
  layer("instance_norm", nn::InstanceNorm({.epsilon = 1e-2, .dtype = td::f64}),
        normal({2, 4, 5, 6}));
  for (const int64_t key_heads : {4, 2, 1}) {
    for (const bool rotary : {false, true}) {
      for (const bool alibi : {false, true}) {
        nn::MultiHeadAttentionOptions options{
            .causal = true, .key_heads = key_heads, .alibi = alibi, .dtype = td::f64};
        if (rotary) options.rotary = 100;
        layer(td::cat("attention,heads=4,causal=1,key_heads=", key_heads, ",rotary=", rotary,
                      ",alibi=", alibi),
              nn::MultiHeadAttention(4, 6, options), normal({2, 6, 7}));
      }
    }
  }
  for (const bool causal : {false, true}) {
    layer(td::cat("attention,heads=2,causal=", causal),
          nn::MultiHeadAttention(
              2, 3, {.causal = causal, .value_size = 4, .output_size = 5, .dtype = td::f64}),
          normal({2, 6, 7}));
  }
}

// ---- losses and metrics -------------------------------------------------------------------------

template <class Loss>
void loss(const std::string& name, const Tensor& y_true, const Tensor& y_pred, Loss f) {
  const auto both = [&](const Tensor& given) {
    return Tensors{
        {"y", f(y_true, given)},
        {"gradient/y_pred", td::grad([&](const Tensor& p) { return f(y_true, p); })(given)}};
  };
  Tensors file{{"y_true", y_true}, {"y_pred", y_pred}};
  for (auto& [key, tensor] : both(y_pred)) file.emplace(key, tensor);
  for (auto& [key, tensor] : td::function(both)(y_pred)) file.emplace("compiled/" + key, tensor);
  write(name, file);
}

void losses() {
  const Tensor wanted = normal({4, 3}), given = normal({4, 3});
  loss("mse", wanted, given, nn::losses::mse);
  loss("mae", wanted, given, nn::losses::mae);
  for (const double delta : {0.5, 1.0})
    loss(td::cat("huber,delta=", delta), wanted, given,
         [=](const Tensor& t, const Tensor& p) { return nn::losses::huber(t, p, delta); });
  const Tensor bits = td::cast(classes({4, 3}, 2), td::f64), rows = td::softmax(normal({4, 3}));
  const Tensor logits = normal({4, 3}) * 3, numbers = classes({4}, 3);
  for (const bool from_logits : {true, false}) {
    for (const double smoothing : {0.0, 0.2}) {
      const nn::CrossEntropyOptions options{.from_logits = from_logits,
                                            .label_smoothing = smoothing};
      const auto with = [options](const auto& f) {
        return [=](const Tensor& t, const Tensor& p) { return f(t, p, options); };
      };
      const std::string words = td::cat(",logits=", from_logits, ",smoothing=", smoothing);
      loss("binary_crossentropy" + words, bits, from_logits ? logits : td::sigmoid(logits),
           with(nn::losses::binary_crossentropy));
      loss("categorical_crossentropy" + words, rows, from_logits ? logits : td::softmax(logits),
           with(nn::losses::categorical_crossentropy));
      loss("sparse_categorical_crossentropy" + words, numbers,
           from_logits ? logits : td::softmax(logits),
           with(nn::losses::sparse_categorical_crossentropy));
    }
  }
}

void other_losses() {
  const Tensor wanted = normal({4, 3}), given = normal({4, 3}), rows = td::softmax(normal({4, 3})),
               bits = td::cast(classes({4, 3}, 2), td::f64), logits = normal({4, 3}) * 3;
  const Tensor by_row = 0.5 + td::square(normal({4}));
  loss("hinge", 2.0 * bits - 1.0, given, nn::losses::hinge);
  loss("cosine", wanted, given, nn::losses::cosine);
  loss("kl_divergence,logits=1", rows, logits, nn::losses::kl_divergence);
  loss("kl_divergence,logits=0", rows, td::softmax(logits), [](const Tensor& t, const Tensor& p) {
    return nn::losses::kl_divergence(t, p, {.from_logits = false});
  });
  loss("poisson,logs=1", td::square(wanted), given, nn::losses::poisson);
  loss("poisson,logs=0", td::square(wanted), td::exp(given), [](const Tensor& t, const Tensor& p) {
    return nn::losses::poisson(t, p, {.from_logs = false});
  });
  loss("focal,gamma=2", bits, logits, nn::losses::focal);
  loss("focal,gamma=1.5,alpha=0.25", bits, logits, [](const Tensor& t, const Tensor& p) {
    return nn::losses::focal(t, p, {.gamma = 1.5, .alpha = 0.25});
  });
  loss("triplet,margin=0.5", td::stack({wanted, given}), normal({4, 3}),
       [](const Tensor& t, const Tensor& p) {
         return nn::losses::triplet(p, t[0], t[1], {.margin = 0.5});
       });
  loss("mse,weighted=1", td::concat({wanted, td::expand_dims(by_row, 1)}, 1), given,
       [](const Tensor& t, const Tensor& p) {
         return nn::losses::mse(t[{td::all, td::Slice{.end = 3}}], p, {.weights = t[{td::all, 3}]});
       });
  loss("sparse_categorical_crossentropy,logits=1,class_weights=1", classes({6}, 3), normal({6, 3}),
       [](const Tensor& t, const Tensor& p) {
         return nn::losses::sparse_categorical_crossentropy(
             t, p, {.class_weights = td::constant({0.5, 1.0, 4.0}, td::f64)});
       });
  // Labels in the first columns, then the numbers of labels and of steps.
  const Tensor labels = td::constant({{1, 2, 2, 3}, {4, 1, 0, 0}, {2, 0, 0, 0}, {0, 0, 0, 0}});
  const Tensor lengths = td::constant({{4, 8}, {2, 8}, {1, 5}, {0, 3}});
  loss("ctc", td::cast(td::concat({labels, lengths}, 1), td::i64), normal({4, 8, 5}),
       [](const Tensor& t, const Tensor& p) {
         return nn::losses::ctc(
             t[{td::all, td::Slice{.end = 4}}], p,
             {.label_lengths = t[{td::all, 4}], .logit_lengths = t[{td::all, 5}]});
       });
}

// Metrics that run over batches: of three, one with weights.
void running_metrics() {
  const Tensor bits = td::cast(classes({60}, 2), td::f64), given = normal({60}) + bits,
               weights = td::square(normal({60})), numbers = classes({60}, 5),
               scores = normal({60, 5});
  const auto run = [&](const std::string& name, const auto& metric, const Tensor& y_true,
                       const Tensor& y_pred) {
    const auto update = td::function(
        [&](const Tensor& t, const Tensor& p, const Tensor& w) { metric.update(t, p, w); });
    for (int64_t i = 0; i < 60; i += 20) {
      const td::Slices part(td::Slice{.begin = i, .end = i + 20});
      update(y_true[part], y_pred[part], weights[part]);
    }
    write(name,
          {{"y_true", y_true}, {"y_pred", y_pred}, {"weights", weights}, {"y", metric.result()}});
  };
  run("precision", nn::metrics::Precision({.threshold = 0.5}), bits, given);
  run("recall", nn::metrics::Recall({.threshold = 0.5}), bits, given);
  run("f1", nn::metrics::F1({.threshold = 0.5}), bits, given);
  run("auc", nn::metrics::AUC(), bits, given);
  run("perplexity", nn::metrics::Perplexity(), numbers, scores);
  const nn::metrics::ConfusionMatrix matrix(5);
  for (int64_t i = 0; i < 60; i += 20) {
    const td::Slices part(td::Slice{.begin = i, .end = i + 20});
    matrix.update(numbers[part], scores[part]);
  }
  write("confusion_matrix", {{"y_true", numbers},
                             {"y_pred", scores},
                             {"y", matrix.result()},
                             {"precision", matrix.precision()},
                             {"recall", matrix.recall()},
                             {"f1", matrix.f1()}});
}

void metrics() {
  const Tensor numbers = classes({50}, 6), given = normal({50, 6}),
               bits = td::cast(classes({50, 6}, 2), td::f64);
  const auto metric = [&](const std::string& name, const Tensor& y_true, auto f) {
    const auto call = [&](const Tensor& p) { return f(y_true, p); };
    write(name, {{"y_true", y_true},
                 {"y_pred", given},
                 {"y", call(given)},
                 {"compiled/y", td::function(call)(given)}});
  };
  metric("accuracy", td::one_hot(numbers, 6), nn::metrics::accuracy);
  metric("sparse_accuracy", numbers, nn::metrics::sparse_accuracy);
  metric("binary_accuracy", bits, nn::metrics::binary_accuracy);
  for (const int64_t k : {1, 2, 5})
    metric(td::cat("top_k,k=", k), numbers,
           [=](const Tensor& t, const Tensor& p) { return nn::metrics::top_k(t, p, k); });
  const nn::metrics::Mean mean;
  mean.update(given[{td::all, 0}]);
  mean.update(given[0], 3);
  write("mean", {{"y_pred", given}, {"y", mean.result()}});
}

// ---- optimizers and schedules -------------------------------------------------------------------

// Twenty steps down a valley that every step moves: what the parameters are after each.
template <class Optimizer>
void optimizer(const std::string& name, const std::function<Optimizer()>& make) {
  constexpr int64_t kSteps = 20;
  const Tensor first = normal({3, 2}), second = normal({4}), at = normal({kSteps, 3, 2}) * 2,
               by = normal({kSteps, 4});
  Tensors file{{"first", first}, {"second", second}, {"at", at}, {"by", by}};
  for (const bool compiled : {false, true}) {
    const td::Variable p(first), q(second);
    const Optimizer down = make();
    const auto step = [&](const Tensor& a, const Tensor& b) {
      td::GradientTape tape;
      const Tensor loss = td::sum(td::square(p - a)) + td::sum(td::pow(td::abs(q * b), 3));
      down.minimize(tape, loss, std::vector{p, q});
    };
    const auto program = td::function(step);
    std::vector<Tensor> ps, qs;
    for (int64_t i = 0; i < kSteps; ++i) {
      compiled ? program(at[i], by[i]) : step(at[i], by[i]);
      ps.push_back(td::identity(p.value()));
      qs.push_back(td::identity(q.value()));
    }
    file.emplace(compiled ? "compiled/p" : "p", td::stack(ps));
    file.emplace(compiled ? "compiled/q" : "q", td::stack(qs));
  }
  write(name, file);
}

void optimizers() {
  using Sgd = nn::SGDOptions;
  const auto sgd = [](const std::string& words, const Sgd& options) {
    optimizer<nn::SGD>("sgd" + words, [=] { return nn::SGD(options); });
  };
  sgd(",lr=0.0625", {.learning_rate = 0.0625});
  sgd(",lr=0.0625,momentum=0.9", {.learning_rate = 0.0625, .momentum = 0.9});
  sgd(",lr=0.0625,momentum=0.9,nesterov=1",
      {.learning_rate = 0.0625, .momentum = 0.9, .nesterov = true});
  sgd(",lr=0.0625,momentum=0.5,weight_decay=0.1",
      {.learning_rate = 0.0625, .momentum = 0.5, .weight_decay = 0.1});
  sgd(",lr=0.0625,clip_norm=0.5", {.learning_rate = 0.0625, .clip_norm = 0.5});
  sgd(",lr=0.0625,clip_global_norm=0.75", {.learning_rate = 0.0625, .clip_global_norm = 0.75});
  sgd(",lr=0.0625,clip_norm=0.5,clip_global_norm=0.75",
      {.learning_rate = 0.0625, .clip_norm = 0.5, .clip_global_norm = 0.75});
  sgd(",lr=0.0625,accumulate=4", {.learning_rate = 0.0625, .accumulate = 4});
  optimizer<nn::Adam>("adam,lr=0.125", [] { return nn::Adam({.learning_rate = 0.125}); });
  optimizer<nn::Adam>("adam,lr=0.125,beta1=0.5,beta2=0.75,epsilon=0.01", [] {
    return nn::Adam({.learning_rate = 0.125, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.01});
  });
  optimizer<nn::AdamW>("adamw,lr=0.125,weight_decay=0.25",
                       [] { return nn::AdamW({.learning_rate = 0.125, .weight_decay = 0.25}); });
  optimizer<nn::RMSprop>("rmsprop,lr=0.125,alpha=0.75,momentum=0.5,weight_decay=0.1", [] {
    return nn::RMSprop(
        {.learning_rate = 0.125, .alpha = 0.75, .momentum = 0.5, .weight_decay = 0.1});
  });
  optimizer<nn::RMSprop>("rmsprop,lr=0.125,centered=1",
                         [] { return nn::RMSprop({.learning_rate = 0.125, .centered = true}); });
  optimizer<nn::Adagrad>("adagrad,lr=0.5,initial=0.25,weight_decay=0.1", [] {
    return nn::Adagrad({.learning_rate = 0.5, .initial = 0.25, .weight_decay = 0.1});
  });
  optimizer<nn::Adadelta>("adadelta,lr=1,rho=0.75", [] { return nn::Adadelta({.rho = 0.75}); });
  optimizer<nn::Adamax>("adamax,lr=0.125,weight_decay=0.1",
                        [] { return nn::Adamax({.learning_rate = 0.125, .weight_decay = 0.1}); });
  optimizer<nn::NAdam>("nadam,lr=0.125,weight_decay=0.1",
                       [] { return nn::NAdam({.learning_rate = 0.125, .weight_decay = 0.1}); });
  optimizer<nn::Lion>("lion,lr=0.125,weight_decay=0.25",
                      [] { return nn::Lion({.learning_rate = 0.125, .weight_decay = 0.25}); });
  optimizer<nn::LAMB>("lamb,lr=0.125,weight_decay=0.25",
                      [] { return nn::LAMB({.learning_rate = 0.125, .weight_decay = 0.25}); });
}

void schedules() {
  const auto schedule = [](const std::string& name, const nn::Schedule& rate) {
    std::vector<Tensor> rates;
    for (int64_t step = 0; step < 40; ++step)
      rates.push_back(rate(td::constant(static_cast<double>(step), td::f64)));
    write(name, {{"y", td::stack(rates)}});
  };
  schedule("constant", nn::schedules::constant(0.5));
  schedule("piecewise", nn::schedules::piecewise({{0, 0.5}, {7, 0.25}, {20, 0.125}}));
  schedule("exponential,staircase=0",
           nn::schedules::exponential(0.5, {.factor = 0.75, .steps = 8}));
  schedule("exponential,staircase=1",
           nn::schedules::exponential(0.5, {.factor = 0.75, .steps = 8, .staircase = true}));
  schedule("cosine", nn::schedules::cosine(0.5, {.steps = 25, .least = 0.125}));
  schedule("warm_up",
           nn::schedules::warm_up(5, nn::schedules::cosine(0.5, {.steps = 25, .least = 0.125})));
}

// ---- draws --------------------------------------------------------------------------------------

void draws() {
  constexpr int64_t kCount = 200'000;
  const auto key = [] { return td::random::Key(++drawn); };
  for (const td::DType dtype : {td::f32, td::f64}) {
    write(td::cat("normal,dtype=", dtype),
          {{"y",
            td::random::normal({kCount}, {.mean = 3, .stddev = 2, .dtype = dtype, .key = key()})}});
    write(td::cat("uniform,dtype=", dtype),
          {{"y",
            td::random::uniform({kCount}, {.low = -1, .high = 4, .dtype = dtype, .key = key()})}});
  }
  for (const int64_t range : {2, 7, 100})
    write(td::cat("integers,range=", range),
          {{"y", td::random::integers(
                     {kCount}, {.low = -3, .high = range - 3, .dtype = td::i64, .key = key()})}});
  write("integers,range=4000000000",
        {{"y", td::random::integers(
                   {kCount}, {.low = -3, .high = 3'999'999'997, .dtype = td::i64, .key = key()})}});
  write("bernoulli,p=0.3",
        {{"y", td::cast(td::random::bernoulli({kCount}, {.p = 0.3, .key = key()}), td::i64)}});
  write("dropout,rate=0.25",
        {{"y", td::dropout(td::ones({kCount}, td::f64), {.rate = 0.25, .key = key()})}});
  const td::Shape many{kCount};
  namespace random = td::random;
  for (const td::DType dtype : {td::f32, td::f64}) {
    const std::string words = td::cat(",dtype=", dtype);
    write("exponential_draws" + words,
          {{"y", random::exponential(many, {.rate = 2.5, .dtype = dtype, .key = key()})}});
    write("gumbel" + words, {{"y", random::gumbel(many, {.dtype = dtype, .key = key()})}});
    write("laplace" + words,
          {{"y", random::laplace(many, {.mean = 1, .scale = 3, .dtype = dtype, .key = key()})}});
    for (const auto& [low, high] : {std::pair{-2.0, 2.0}, {-0.5, 3.0}, {4.0, 5.0}, {-30.0, 1.0}})
      write(td::cat("truncated_normal", words, ",low=", low, ",high=", high),
            {{"y", random::truncated_normal(many, {.mean = 1,
                                                   .stddev = 2,
                                                   .low = low,
                                                   .high = high,
                                                   .dtype = dtype,
                                                   .key = key()})}});
  }
  for (const double alpha : {0.05, 0.5, 1.0, 2.5, 40.0})
    write(td::cat("gamma,alpha=", alpha),
          {{"y", random::gamma(alpha, many, {.dtype = td::f64, .key = key()})}});
  for (const auto& [a, b] : {std::pair{0.5, 0.5}, {2.0, 3.0}, {0.25, 7.0}})
    write(td::cat("beta,a=", a, ",b=", b),
          {{"y", random::beta(a, b, many, {.dtype = td::f64, .key = key()})}});
  for (const double rate : {0.1, 3.0, 9.5, 10.5, 40.0, 1000.0})
    write(td::cat("poisson_draws,rate=", rate),
          {{"y", random::poisson(rate, many, {.key = key()})}});
  const Tensor chances = td::constant({0.1, 0.2, 0.05, 0.65});
  write("categorical",
        {{"p", chances},
         {"y", random::categorical(td::log(chances), {.count = kCount, .key = key()})}});
  write("multinomial",
        {{"p", chances},
         {"y", random::multinomial(1000, td::broadcast_to(chances, {500, 4}), {.key = key()})}});
  write("integers,range=7",
        {{"y", random::integers(td::full(many, -3), td::full(many, 4), many, {.key = key()})}});
  write("bernoulli,p=0.3",
        {{"y", td::cast(random::bernoulli(td::full(many, 0.3), many, {.key = key()}), td::i64)}});
  std::vector<Tensor> orders, shuffles;
  for (int64_t i = 0; i < 20'000; ++i) {
    orders.push_back(td::random::permutation(4, {.key = key()}));
    std::vector<int64_t> order;
    for (const Tensor& each : td::data::range(5).shuffle({.seed = i}))
      order.push_back(each.item<int64_t>());
    shuffles.push_back(td::constant(order));
  }
  write("permutation,n=4", {{"y", td::stack(orders)}});
  write("shuffle,n=5", {{"y", td::stack(shuffles)}});
  // Streams that should have nothing to do with each other.
  td::random::seed(7);
  const auto split = td::random::Key(7).split(2);
  write("streams",
        {{"global", td::random::normal({1000}, {.dtype = td::f64})},
         {"split0", td::random::normal({1000}, {.dtype = td::f64, .key = split[0]})},
         {"split1", td::random::normal({1000}, {.dtype = td::f64, .key = split[1]})},
         {"fold7",
          td::random::normal({1000}, {.dtype = td::f64, .key = td::random::Key(7).fold_in(7)})},
         {"own", td::random::normal({1000}, {.dtype = td::f64, .key = td::random::Key(7)})}});
  const td::Shape shape{300, 200};
  write("glorot_uniform", {{"y", nn::initializers::glorot_uniform(shape, td::f64)}});
  write("glorot_normal", {{"y", nn::initializers::glorot_normal(shape, td::f64)}});
  write("he_uniform", {{"y", nn::initializers::he_uniform(shape, td::f64)}});
  write("he_normal", {{"y", nn::initializers::he_normal(shape, td::f64)}});
  write("orthogonal", {{"y", nn::initializers::orthogonal(shape, td::f64)}});
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: models_driver FOLDER\n";
    return 2;
  }
  folder = words[1];
  try {
    layers();
    losses();
    other_losses();
    metrics();
    running_metrics();
    optimizers();
    schedules();
    draws();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
