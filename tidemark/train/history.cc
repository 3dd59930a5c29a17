#include "tidemark/train/history.h"

#include <iomanip>
#include <ostream>
#include <sstream>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"

namespace tidemark::nn {
namespace {

void write(std::ostream& out, const char* before, const NamedNumbers& numbers) {
  for (const auto& [name, value] : numbers) out << ", " << before << name << ' ' << value;
}

double found(const NamedNumbers& metrics, const std::string& name) {
  for (const auto& [known, value] : metrics)
    if (known == name) return value;
  throw UserError(cat("metric: \"", name, "\" was not measured"), Source::none(),
                  "name it in .metrics; a ConfusionMatrix is asked for its result()");
}

}  // namespace

double Epoch::metric(const std::string& name) const {
  return name == "loss" ? loss : found(metrics, name);
}

double Evaluation::metric(const std::string& name) const {
  return name == "loss" && loss ? *loss : found(metrics, name);
}

std::ostream& operator<<(std::ostream& out, const Epoch& epoch) {
  TextStream text;
  text << std::setprecision(4) << "epoch " << epoch.number << ": loss " << epoch.loss;
  write(text, "", epoch.metrics);
  if (epoch.validation_loss) text << ", validation loss " << *epoch.validation_loss;
  write(text, "validation ", epoch.validation_metrics);
  text << ", " << std::fixed << std::setprecision(2) << epoch.seconds << " s";
  if (epoch.seconds > 0)
    text << ", " << static_cast<int64_t>(static_cast<double>(epoch.examples) / epoch.seconds)
         << " examples/s";
  return out << text.str() << ", peak " << epoch.peak;
}

std::ostream& operator<<(std::ostream& out, const Evaluation& evaluation) {
  TextStream text;
  text << std::setprecision(4);
  NamedNumbers all = evaluation.metrics;
  if (evaluation.loss) all.emplace(all.begin(), "loss", *evaluation.loss);
  for (const auto& [name, value] : all) text << name << ' ' << value << ", ";
  return out << text.str() << evaluation.examples << " examples";
}

std::ostream& operator<<(std::ostream& out, const History& history) {
  for (const Epoch& epoch : history.epochs) out << epoch << '\n';
  if (!history.stopped.empty()) out << "stopped: " << history.stopped << '\n';
  return out;
}

}  // namespace tidemark::nn
