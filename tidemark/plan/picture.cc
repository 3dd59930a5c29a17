#include "tidemark/plan/picture.h"

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string_view>

#include "tidemark/base/markup.h"
#include "tidemark/base/text.h"

namespace tidemark::plan {
namespace {

constexpr double kWidth = 1200, kHeight = 700, kMargin = 40;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", value);
  return text;
}

// Spreads neighbours over the colour wheel, the same for the same buffer every time.
int hue(size_t index) { return static_cast<int>(index * 137 % 360); }

}  // namespace

void draw_svg(std::ostream& out, const Problem& problem, const Placement& placement,
              std::span<const std::string> names, int64_t capacity_bytes) {
  double first = 0, last = 1;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Lifetime& time = problem.buffers[i].lifetime;
    first =
        i == 0 ? static_cast<double>(time.begin) : std::min(first, static_cast<double>(time.begin));
    last = i == 0 ? static_cast<double>(time.end) : std::max(last, static_cast<double>(time.end));
  }
  const auto top =
      static_cast<double>(std::max<int64_t>({1, placement.tidemark_bytes, capacity_bytes}));
  auto x = [&](double time) { return kMargin + (time - first) / (last - first) * kWidth; };
  auto y = [&](double offset) { return kMargin + (1 - offset / top) * kHeight; };
  auto line = [&](int64_t bytes, std::string_view what, std::string_view colour) {
    const double height = y(static_cast<double>(bytes));
    out << "<line x1=\"" << number(kMargin) << "\" x2=\"" << number(kMargin + kWidth) << "\" y1=\""
        << number(height) << "\" y2=\"" << number(height) << "\" stroke=\"" << colour
        << "\" stroke-dasharray=\"6 4\"/>\n<text x=\"" << number(kMargin) << "\" y=\""
        << number(height - 4) << "\" fill=\"" << colour << "\">" << what << ' ' << bytes << " ("
        << Bytes(bytes) << ")</text>\n";
  };

  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << number(kWidth + 2 * kMargin)
      << ' ' << number(kHeight + 2 * kMargin)
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
         "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.size_bytes == 0) continue;
    const auto begin = static_cast<double>(buffer.lifetime.begin);
    const auto end = static_cast<double>(buffer.lifetime.end);
    const auto offset = static_cast<double>(placement.offsets[i]);
    const auto size = static_cast<double>(buffer.size_bytes);
    out << "<rect x=\"" << number(x(begin)) << "\" y=\"" << number(y(offset + size))
        << "\" width=\"" << number(x(end) - x(begin)) << "\" height=\""
        << number(y(offset) - y(offset + size)) << "\" fill=\"hsl(" << hue(i)
        << ",55%,70%)\" stroke=\"#333\" stroke-width=\"0.3\"><title>" << escaped(names[i]) << ": "
        << buffer.size_bytes << " bytes at " << placement.offsets[i] << ", steps ["
        << buffer.lifetime.begin << ", " << buffer.lifetime.end << ")</title></rect>\n";
  }
  line(placement.tidemark_bytes, "tidemark", "#c00");
  line(load_bytes(problem), "load", "#06c");
  if (capacity_bytes > 0) line(capacity_bytes, "capacity", "#080");
  out << "<text x=\"" << number(kMargin) << "\" y=\"" << number(kMargin * 1.7 + kHeight)
      << "\">steps " << number(first) << " to " << number(last) << "</text>\n</svg>\n";
}

}  // namespace tidemark::plan
