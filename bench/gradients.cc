// gradients [seconds per row] [--python FILE] [model...]: what gradients of whole models need and
// take, ours and those of the peers that FILE has, and whether the bars are met. FILE is a Python,
// by default that of the virtual environment that bench/peers/run --install makes.
//
// Of memory the bars are 0.7 of what JAX takes for temporaries, or 1.05 of the least there can be
// where that is more. Peers run one after another, not in turns with us: bench/peers/run is the
// one to trust about time on a machine that others use.
#include "bench/gradient_models.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bars.h"
#include "bench/interleave.h"

namespace tidemark::bench {
namespace {

constexpr double kMiB = 1 << 20;

struct Model {
  const char* name;
  Prepared (*prepare)();
  double most_mib;    // Beside the results, whether JAX is there or not.
  double floor_mib;   // The least there can be with everything kept.
  double time_share;  // Of the best peer's.
};
// The long loop may take its 16 MiB and four matrices of 128 x 128 that are in work.
constexpr Model kModels[] = {
    {"mlp_step", mlp_step, 22, 21, 0.9},
    {"softmax_ce", softmax_ce, 12.8, 0, 0.35},
    {"conv_step", conv_step, 62, 61, 0.9},
    {"gpt_step", gpt_step, 203, 120, 0.9},
    {"lstm_grad", lstm_grad, 19.6, 4, 0.6},
    {"loop_grad", loop_grad, 1.02 * 62.5, 62.5, 0.6},
    {"loop_grad_long", loop_grad_long, (kLongLoopSaves + 4 * 65536) / kMiB, 13, 0.6},
};

struct Rival {
  const char* peer;
  const char* mode;
};
constexpr Rival kRivals[] = {
    {"jax", "jit"}, {"tensorflow", "function"}, {"tensorflow", "xla"}, {"torch", "eager"}};

struct Figures {
  double best_s = 0, first_s = 0;
  double beside_mib = 0;  // Beside the results; 0 where a peer does not tell.
};

// ---- the peers ----------------------------------------------------------------------------------

struct Output {
  bool ended_well = false;
  std::string text = {};

  std::string last_line() const {
    const size_t end = text.find_last_not_of('\n');
    if (end == std::string::npos) return "it printed nothing";
    return text.substr(0, end + 1).substr(text.rfind('\n', end) + 1);
  }
};

// What a command prints; errors too, so that others' warnings do not come between our rows.
Output output_of(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {};
  Output output;
  char piece[4096];
  while (std::fgets(piece, sizeof(piece), pipe) != nullptr) output.text += piece;
  output.ended_well = pclose(pipe) == 0;
  return output;
}

// The number called `key` in a flat piece of JSON; 0 for null.
double number(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  return at == std::string::npos ? 0 : std::strtod(json.c_str() + at + key.size() + 4, nullptr);
}

class Peers {
 public:
  explicit Peers(const std::string& python) : python_("'" + python + "'") {
    const std::string code =
        "import importlib.util as u; print(*[p for p in (\"jax\", \"tensorflow\", \"torch\") if "
        "u.find_spec(p)])";
    installed_ = output_of(python_ + " -c '" + code + "'");
  }

  bool has_python() const { return installed_.ended_well; }
  bool has(const char* peer) const {
    return has_python() && installed_.text.find(peer) != std::string::npos;
  }

  Output measure(const Rival& rival, const char* model, double seconds) const {
    return output_of(python_ + " '" + TIDEMARK_PEERS + "/measure.py' " + rival.peer + " " +
                     rival.mode + " " + model + " " + std::to_string(seconds));
  }

 private:
  std::string python_;
  Output installed_;
};

// ---- a model ------------------------------------------------------------------------------------

template <class... Arguments>
std::string text(const char* format, Arguments... arguments) {
  char line[160];
  std::snprintf(line, sizeof(line), format, arguments...);
  return line;
}

void tell(const std::string& who, const std::string& what) {
  std::printf("  %-20s %s\n", who.c_str(), what.c_str());
  std::fflush(stdout);
}

Figures measure_ours(const Model& model, double seconds) {
  const Prepared prepared = model.prepare();
  Figures figures;
  const double begin = now_s();
  prepared.call();
  figures.first_s = figures.best_s = now_s() - begin;
  const double warm = now_s();
  for (int samples = 0; samples < 3 || now_s() - warm < seconds; ++samples) {
    const double sample_begin = now_s();
    prepared.call();
    figures.best_s = std::min(figures.best_s, now_s() - sample_begin);
  }
  const Plan plan = prepared.plan();
  figures.beside_mib =
      static_cast<double>(plan.peak().count - plan.of(ByteClass::outputs).count) / kMiB;
  tell("ours", text("%.2f ms a call, first call %.3f s, %.2f MiB beside the results, %.2f saved",
                    figures.best_s * 1e3, figures.first_s, figures.beside_mib,
                    static_cast<double>(plan.of(ByteClass::saved).count) / kMiB));
  return figures;
}

// Prints figures and bars; gives the number missed.
int measure(const Model& model, const Peers& peers, double seconds) {
  const std::string name = model.name;
  std::printf("%s\n", model.name);
  const Figures ours = measure_ours(model, seconds);
  std::vector<Bar> bars = {
      at_most(name + ", MiB beside its results", ours.beside_mib, model.most_mib)};
  double best_s = 0;
  std::string best;
  for (const Rival& rival : kRivals) {
    const std::string who = std::string(rival.peer) + " " + rival.mode;
    if (!peers.has(rival.peer)) {
      tell(who, std::string("not installed; bench/peers/run --install --peer ") + rival.peer);
      continue;
    }
    const Output said = peers.measure(rival, model.name, seconds);
    const Figures theirs = {number(said.text, "best_s"), number(said.text, "first_s"),
                            number(said.text, "temporary_bytes") / kMiB};
    if (!said.ended_well || theirs.best_s == 0) {
      tell(who, "failed: " + said.last_line());
      continue;
    }
    const bool is_jax = std::string_view(rival.peer) == "jax";
    tell(who, text("%.2f ms a call, first call %.3f s", theirs.best_s * 1e3, theirs.first_s) +
                  (is_jax ? text(", %.2f MiB of temporaries", theirs.beside_mib) : ""));
    if (is_jax) {
      const double least = 1.05 * model.floor_mib / theirs.beside_mib;
      bars.push_back(at_most(name + ", of JAX's temporaries", ours.beside_mib / theirs.beside_mib,
                             std::max(0.7, least)));
      bars.push_back(at_most(name + ", of JAX's first call", ours.first_s / theirs.first_s, 0.5));
    }
    if (best.empty() || theirs.best_s < best_s) {
      best_s = theirs.best_s;
      best = who;
    }
  }
  if (!best.empty())
    bars.push_back(
        at_most(name + ", of the time of " + best, ours.best_s / best_s, model.time_share));
  return print_all(bars);
}

int usage() {
  std::fprintf(stderr,
               "usage: gradients [seconds per row, 1 by default] [--python FILE] [model...]\n"
               "models:");
  for (const Model& model : kModels) std::fprintf(stderr, " %s", model.name);
  std::fprintf(stderr, "\n");
  return 2;
}

const Model* named(std::string_view name) {
  for (const Model& model : kModels) {
    if (name == model.name) return &model;
  }
  return nullptr;
}

int run(const std::vector<std::string>& arguments) {
  double seconds = 1;
  std::optional<std::string> python;
  std::vector<const Model*> models;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& each = arguments[i];
    if (each == "--python" && i + 1 < arguments.size()) {
      python = arguments[++i];
    } else if (const Model* model = named(each)) {
      models.push_back(model);
    } else if (i > 0 || (seconds = std::atof(each.c_str())) <= 0) {
      return usage();
    }
  }
  if (models.empty()) {
    for (const Model& model : kModels) models.push_back(&model);
  }
  const Peers peers(python.value_or(TIDEMARK_PEERS_PYTHON));
  if (python.has_value() && !peers.has_python()) {
    std::fprintf(stderr, "gradients: --python %s: cannot be run\n", python->c_str());
    return 2;
  }
  int missed = 0;
  for (const Model* model : models) missed += measure(*model, peers, seconds);
  std::printf("%d missed\n", missed);
  return missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::run(std::vector<std::string>(argv + 1, argv + argc));
}
