// td.nn: losses and metrics.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "convert.h"
#include "nn.h"
#include "source.h"
#include "variable.h"

namespace tidemark::python {
namespace {

using nb::arg;

std::optional<Tensor> tensor_or_none(nb::handle object, Source at) {
  if (object.is_none()) return std::nullopt;
  return tensor_from(object, at);
}

// f(y_true, y_pred, at) without the GIL.
template <class F>
Tensor measured(nb::handle y_true, nb::handle y_pred, const F& f) {
  const Source at = calling_line();
  const Value expected(y_true, at), given(y_pred, at);
  const nb::gil_scoped_release released;
  return f(expected.operand(), given.operand(), at);
}

// ---- losses -------------------------------------------------------------------------------------

// A loss whose options `make(values..., at)` makes of its own arguments. All have weights.
template <class... Values, class Loss, class Make, class... Own>
void bind_loss(nb::module_& module, const char* name, const Loss& loss, const char* doc, Make make,
               Own... own) {
  module.def(
      name,
      [&loss, make](nb::handle y_true, nb::handle y_pred, Values... values, nb::handle weights) {
        const Source at = calling_line();
        auto options = make(values..., at);
        options.weights = tensor_or_none(weights, at);
        return measured(y_true, y_pred, [&](const Operand& a, const Operand& b, Source line) {
          return loss(a, b, options, line);
        });
      },
      arg("y_true"), arg("y_pred"), nb::kw_only(), own..., arg("weights") = nb::none(), doc);
}

void bind_differences(nb::module_& module) {
  namespace losses = nn::losses;
  const auto simple = [&](const char* name, const losses::Loss& loss, const char* doc) {
    bind_loss(module, name, loss, doc, [](Source) { return nn::LossOptions{}; });
  };
  simple("mse", losses::mse, "The mean of squared differences.");
  simple("mae", losses::mae, "The mean of absolute differences.");
  simple("hinge", losses::hinge, "max(0, 1 - y_true * y_pred): y_true is -1 or 1.");
  simple("cosine", losses::cosine, "1 - the cosine of the angle between vectors.");
  bind_loss<double>(
      module, "huber", losses::huber, "Half the squared difference up to delta, linear beyond.",
      [](double delta, Source) { return nn::HuberOptions{.delta = delta}; }, arg("delta") = 1.0);
  bind_loss<bool>(
      module, "poisson", losses::poisson, "rate - y_true * log(rate); y_pred is log(rate).",
      [](bool from_logs, Source) { return nn::PoissonOptions{.from_logs = from_logs}; },
      arg("from_logs") = true);
  module.def(
      "triplet",
      [](nb::handle anchor, nb::handle positive, nb::handle negative, double margin,
         nb::handle weights) {
        const Source at = calling_line();
        const Value a(anchor, at), p(positive, at), n(negative, at);
        const nn::TripletOptions options{.margin = margin, .weights = tensor_or_none(weights, at)};
        const nb::gil_scoped_release released;
        return losses::triplet(a.operand(), p.operand(), n.operand(), options, at);
      },
      arg("anchor"), arg("positive"), arg("negative"), nb::kw_only(), arg("margin") = 1.0,
      arg("weights") = nb::none(),
      "max(0, |anchor - positive| - |anchor - negative| + margin), distances along the last axis.");
}

void bind_entropies(nb::module_& module) {
  namespace losses = nn::losses;
  const auto entropy = [&](const char* name, const losses::CrossEntropy& loss, const char* doc) {
    bind_loss<bool, double, nb::handle>(
        module, name, loss, doc,
        [](bool from_logits, double smoothing, nb::handle class_weights, Source at) {
          return nn::CrossEntropyOptions{.from_logits = from_logits,
                                         .label_smoothing = smoothing,
                                         .class_weights = tensor_or_none(class_weights, at)};
        },
        arg("from_logits") = true, arg("label_smoothing") = 0.0, arg("class_weights") = nb::none());
  };
  entropy("binary_crossentropy", losses::binary_crossentropy,
          "Each element is a separate binary class: y_true is between 0 and 1.");
  entropy("categorical_crossentropy", losses::categorical_crossentropy,
          "Classes along the last axis: y_true has their probabilities, which add up to 1.");
  entropy("sparse_categorical_crossentropy", losses::sparse_categorical_crossentropy,
          "The same with y_true as class numbers, with one axis less.");
  bind_loss<double, std::optional<double>, bool>(
      module, "focal", losses::focal,
      "The binary crossentropy, times (1 - p)^gamma with p the probability of the true class.",
      [](double gamma, std::optional<double> alpha, bool from_logits, Source) {
        return nn::FocalOptions{.gamma = gamma, .alpha = alpha, .from_logits = from_logits};
      },
      arg("gamma") = 2.0, arg("alpha") = nb::none(), arg("from_logits") = true);
  bind_loss<bool>(
      module, "kl_divergence", losses::kl_divergence,
      "sum(y_true * log(y_true / y_pred)) over the last axis.",
      [](bool from_logits, Source) { return nn::DivergenceOptions{.from_logits = from_logits}; },
      arg("from_logits") = true);
  bind_loss<nb::handle, nb::handle, int64_t, bool>(
      module, "ctc", losses::ctc,
      "The negative log-likelihood of label sequences [n, labels] under logits [n, steps, "
      "classes], summed over all alignments.",
      [](nb::handle label_lengths, nb::handle logit_lengths, int64_t blank, bool zero_infinity,
         Source at) {
        return nn::CTCOptions{.label_lengths = tensor_or_none(label_lengths, at),
                              .logit_lengths = tensor_or_none(logit_lengths, at),
                              .blank = blank,
                              .zero_infinity = zero_infinity};
      },
      arg("label_lengths") = nb::none(), arg("logit_lengths") = nb::none(), arg("blank") = 0,
      arg("zero_infinity") = false);
}

// ---- metrics ------------------------------------------------------------------------------------

void bind_batch_metrics(nb::module_& metrics) {
  const auto simple = [&](const char* name, const nn::metrics::Metric& metric, const char* doc) {
    metrics.def(
        name,
        [&metric](nb::handle y_true, nb::handle y_pred) {
          return measured(y_true, y_pred, metric);
        },
        arg("y_true"), arg("y_pred"), doc);
  };
  simple("accuracy", nn::metrics::accuracy,
         "The fraction of rows whose largest element of y_pred is the class.");
  simple("sparse_accuracy", nn::metrics::sparse_accuracy, "The same; y_true is class numbers.");
  simple("binary_accuracy", nn::metrics::binary_accuracy,
         "The fraction of correct elements: y_pred is logits, above 0 means 1.");
  metrics.def(
      "top_k",
      [](nb::handle y_true, nb::handle y_pred, int64_t k) {
        return measured(y_true, y_pred, [&](const Operand& a, const Operand& b, Source at) {
          return nn::metrics::top_k(a, b, k, at);
        });
      },
      arg("y_true"), arg("y_pred"), arg("k") = 5,
      "The fraction of rows whose class is among the k largest of y_pred.");
}

// The methods that all running metrics have.
template <class Metric>
nb::class_<Metric> bind_running(nb::module_& metrics, const char* name, const char* doc) {
  nb::class_<Metric> made(metrics, name, doc);
  make_part<Metric>(made);
  made.def(
          "result", [](const Metric& self) { return self.result(calling_line()); },
          "The metric of all that was added.")
      .def(
          "reset", [](const Metric& self) { self.reset(calling_line()); },
          "Forgets what was added.");
  return made;
}

template <class Metric>
void bind_update(nb::class_<Metric>& made) {
  made.def(
      "update",
      [](const Metric& self, nb::handle y_true, nb::handle y_pred, nb::handle weights) {
        const Source at = calling_line();
        const Value expected(y_true, at), given(y_pred, at);
        if (weights.is_none()) return self.update(expected.operand(), given.operand(), at);
        const Value weighted(weights, at);
        self.update(expected.operand(), given.operand(), weighted.operand(), at);
      },
      arg("y_true"), arg("y_pred"), arg("weights") = nb::none(), "Adds a batch.");
}

template <class Metric>
void bind_binary(nb::module_& metrics, const char* name, const char* doc) {
  nb::class_<Metric> made = bind_running<Metric>(metrics, name, doc);
  made.def(
      "__init__",
      [](Metric* self, double threshold, std::string name) {
        new (self) Metric({threshold, std::move(name)}, calling_line());
      },
      nb::kw_only(), arg("threshold") = 0.0, arg("name") = "");
  bind_update(made);
}

void bind_mean(nb::module_& metrics) {
  using Mean = nn::metrics::Mean;
  bind_running<Mean>(metrics, "Mean", "A mean over many calls, eager or in a function.")
      .def(
          "__init__",
          [](Mean* self, std::string name) { new (self) Mean(std::move(name), calling_line()); },
          arg("name") = "mean")
      .def(
          "update",
          [](const Mean& self, nb::handle x, nb::handle weight) {
            const Source at = calling_line();
            const Value value(x, at);
            if (weight.is_none()) return self.update(value.operand(), at);
            const Value weighted(weight, at);
            self.update(value.operand(), weighted.operand(), at);
          },
          arg("x"), arg("weight") = nb::none(), "Adds all elements of x, or x with this weight.")
      .def_prop_ro("total", [](const Mean& self) { return wrap(self.total); })
      .def_prop_ro("count", [](const Mean& self) { return wrap(self.count); });
}

void bind_confusion_matrix(nb::module_& metrics) {
  using nn::metrics::ConfusionMatrix;
  bind_running<ConfusionMatrix>(metrics, "ConfusionMatrix",
                                "How often class i (the row) was called class j (the column).")
      .def(
          "__init__",
          [](ConfusionMatrix* self, int64_t classes, std::string name) {
            new (self) ConfusionMatrix(classes, std::move(name), calling_line());
          },
          arg("classes"), arg("name") = "confusion_matrix")
      .def(
          "update",
          [](const ConfusionMatrix& self, nb::handle y_true, nb::handle y_pred) {
            const Source at = calling_line();
            const Value expected(y_true, at), given(y_pred, at);
            self.update(expected.operand(), given.operand(), at);
          },
          arg("y_true"), arg("y_pred"), "Adds a batch.")
      .def(
          "precision", [](const ConfusionMatrix& self) { return self.precision(calling_line()); },
          "By class.")
      .def(
          "recall", [](const ConfusionMatrix& self) { return self.recall(calling_line()); },
          "By class.")
      .def("f1", [](const ConfusionMatrix& self) { return self.f1(calling_line()); }, "By class.");
}

void bind_running_metrics(nb::module_& metrics) {
  using namespace nn::metrics;
  bind_mean(metrics);
  bind_confusion_matrix(metrics);
  bind_binary<Precision>(metrics, "Precision",
                         "Of the elements that were called positive, the fraction that are.");
  bind_binary<Recall>(metrics, "Recall",
                      "Of the elements that are positive, the fraction that were called so.");
  bind_binary<F1>(metrics, "F1", "The harmonic mean of precision and recall.");
  auto auc = bind_running<AUC>(metrics, "AUC",
                               "The area under the ROC curve, from a histogram of predictions.");
  auc.def(
      "__init__",
      [](AUC* self, int64_t thresholds, bool from_logits, std::string name) {
        new (self) AUC({thresholds, from_logits, std::move(name)}, calling_line());
      },
      nb::kw_only(), arg("thresholds") = 200, arg("from_logits") = true, arg("name") = "auc");
  bind_update(auc);
  auto perplexity = bind_running<Perplexity>(
      metrics, "Perplexity", "exp of the mean crossentropy of class numbers under logits.");
  perplexity.def(
      "__init__",
      [](Perplexity* self, std::string name) {
        new (self) Perplexity(std::move(name), calling_line());
      },
      arg("name") = "perplexity");
  bind_update(perplexity);
}

}  // namespace

void bind_measures(nb::module_& module) {
  nb::module_ nn = nb::borrow<nb::module_>(module.attr("nn"));
  nb::module_ losses = nn.def_submodule(
      "losses",
      "Functions of (y_true, y_pred) that return the mean, weighted if `weights` are given: one "
      "for each example, or for each element.");
  bind_differences(losses);
  bind_entropies(losses);
  nb::module_ metrics = nn.def_submodule(
      "metrics", "Functions of (y_true, y_pred), and metrics that run over batches.");
  bind_batch_metrics(metrics);
  bind_running_metrics(metrics);
}

}  // namespace tidemark::python
