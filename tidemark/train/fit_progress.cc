#include "tidemark/train/fit_progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <sstream>

#include "tidemark/base/output.h"
#include "tidemark/base/text.h"

namespace tidemark::nn {
namespace {

constexpr double kBetweenDrawings = 0.1;  // Seconds.
constexpr int kMostBar = 30, kLeastBar = 5;
constexpr int kColumnsOfSink = 110;  // A sink is no terminal, whose width could be asked for.

std::string clock(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  const std::string rest = cat(whole % 60);
  return cat(whole / 60, ":", rest.size() < 2 ? "0" : "", rest);
}

int columns_of_terminal() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

// The text after the bar.
std::string figures(const BarState& state) {
  TextStream text;
  text << ' ' << state.batches;
  if (state.of_batches) text << '/' << *state.of_batches;
  if (state.seconds > 0)
    text << ", " << static_cast<int64_t>(static_cast<double>(state.examples) / state.seconds)
         << "/s";
  text << ", loss " << std::setprecision(3) << state.loss;
  if (state.of_batches && state.batches > 0)
    text << ", "
         << clock(state.seconds * static_cast<double>(*state.of_batches - state.batches) /
                  static_cast<double>(state.batches))
         << " left";
  text << ", " << state.now << ", peak " << state.peak;
  return text.str();
}

std::string bar(const BarState& state, int width) {
  const auto all = static_cast<double>(std::max<int64_t>(*state.of_batches, 1));
  const double share = std::min(static_cast<double>(state.batches) / all, 1.0);
  const int done = static_cast<int>(share * width);
  std::string text(static_cast<size_t>(width), ' ');
  std::fill_n(text.begin(), done, '=');
  if (done < width) text[static_cast<size_t>(done)] = '>';
  return cat(" [", text, "]");
}

}  // namespace

std::string bar_text(const BarState& state, int columns) {
  std::string text = cat("epoch ", state.epoch, "/", state.epochs);
  const std::string rest = figures(state);
  const int left = columns - static_cast<int>(text.size() + rest.size()) - 3;
  if (state.of_batches && left >= kLeastBar) text += bar(state, std::min(left, kMostBar));
  text += rest;
  if (static_cast<int>(text.size()) > columns) text.resize(static_cast<size_t>(columns));
  return text;
}

ProgressDisplay::ProgressDisplay(Progress progress) : progress_(progress) {
  if (progress == Progress::automatic)
    progress_ =
        detail::has_bar_sink() || isatty(STDOUT_FILENO) != 0 ? Progress::bar : Progress::lines;
}

void ProgressDisplay::batch(const BarState& state) {
  if (progress_ != Progress::bar) return;
  if (state.seconds >= drawn_at_ && state.seconds < drawn_at_ + kBetweenDrawings) return;
  drawn_at_ = state.seconds;
  if (detail::draw_bar(bar_text(state, kColumnsOfSink))) return;
  // Returns to the start of the line and clears it.
  std::printf("\r\x1b[K%s", bar_text(state, columns_of_terminal() - 1).c_str());
  std::fflush(stdout);
}

void ProgressDisplay::epoch(const Epoch& epoch) {
  if (progress_ == Progress::none) return;
  if (progress_ == Progress::bar && !detail::draw_bar({})) std::printf("\r\x1b[K");
  std::fflush(stdout);
  drawn_at_ = -1;
  detail::write_line(cat(epoch, "\n"));
}

}  // namespace tidemark::nn
