// The history of a training run, epoch by epoch.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/base/text.h"

namespace tidemark::nn {

// `automatic` is a bar if standard output is a terminal or bars have a sink (base/output.h), else
// lines. Lines go to td::print's sink.
enum class Progress : uint8_t { automatic, bar, lines, none };

// Means over examples, by name: {"accuracy", 0.97}.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

struct Epoch {
  int64_t number = 0;  // From 1.
  double loss = 0;     // The mean over the epoch's examples, computed during training.
  NamedNumbers metrics = {};
  std::optional<double> validation_loss = {};  // Of the model after the epoch.
  NamedNumbers validation_metrics = {};
  double learning_rate = 0;  // Of the last update.
  int64_t batches = 0, examples = 0;
  double seconds = 0;  // Validation included.
  Bytes peak = {};     // The peak of the epoch, above the bytes in use before it.
  // A callback sets it to make this epoch the last.
  bool stop = false;

  // A metric by its name, or "loss". A UserError if it was not measured.
  double metric(const std::string& name) const;
  // The number that early stopping compares: the validation loss if there is one, else the loss.
  double judged() const { return validation_loss.value_or(loss); }
};
// "epoch 3: loss 0.4312, accuracy 0.91, validation loss 0.5, 1.2 s, 3100 examples/s, peak 51.2 MiB"
std::ostream& operator<<(std::ostream& out, const Epoch& epoch);

struct Evaluation {
  std::optional<double> loss = {};  // The mean over examples, if a loss was given.
  NamedNumbers metrics = {};
  int64_t batches = 0, examples = 0;

  // A metric by its name, or "loss". A UserError if it was not measured.
  double metric(const std::string& name) const;
};

// "loss 0.4312, accuracy 0.91, 3100 examples"
std::ostream& operator<<(std::ostream& out, const Evaluation& evaluation);

struct Batch {
  int64_t epoch = 0, number = 0;  // Both from 1.
  double loss = 0;                // The mean over the epoch's examples so far.
  // A callback sets it to make this batch the last.
  bool stop = false;
};

struct History {
  std::vector<Epoch> epochs;
  int64_t best = 0;  // The epoch, counted from 1, whose judged() is least.
  // Why training stopped early; empty if it did not.
  std::string stopped;
  Bytes planned;       // The planned peak of a step on the first batch.
  int64_t traces = 0;  // Of the step.
};
// A line for each epoch.
std::ostream& operator<<(std::ostream& out, const History& history);

}  // namespace tidemark::nn
