// The page of a watched loop: bytes over steps as a line, and the report's text below it.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tidemark/base/markup.h"
#include "tidemark/base/text.h"
#include "tidemark/report/report.h"

namespace tidemark::report {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Memory over steps · Tidemark</title>
<style>
:root { color-scheme: light dark; --ink: #15212b; --muted: #5a6a76; --line: #dfe5e9; --water: #0b6b88; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3eaee; --muted: #93a4b0; --line: #26323a; --water: #58b9d6; }
}
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink); font: 15px system-ui, sans-serif; }
svg { width: 100%; height: auto; }
svg text { fill: var(--muted); font-size: 12px; }
svg line { stroke: var(--line); }
polyline { fill: none; stroke: var(--water); stroke-width: 2; stroke-linejoin: round; }
pre { overflow-x: auto; font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; }
</style>
</head>
<body>
<h1>Bytes in use over steps</h1>
)";

// The plot, in its own units. The axis of bytes begins at 0, so that slopes are not exaggerated.
constexpr double kWidth = 900, kHeight = 260, kLeft = 80, kRight = 10, kTop = 10, kBottom = 30;

struct Scale {
  int64_t steps = 1, bytes = 1;
  double x(int64_t step) const {
    return kLeft +
           (kWidth - kLeft - kRight) * static_cast<double>(step) / static_cast<double>(steps);
  }
  double y(int64_t count) const {
    return kHeight - kBottom -
           (kHeight - kTop - kBottom) * static_cast<double>(count) / static_cast<double>(bytes);
  }
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

void add_row(std::string& out, const Scale& scale, int64_t bytes) {
  const std::string y = number(scale.y(bytes));
  out += cat("<line x1=\"", number(kLeft), "\" x2=\"", number(kWidth - kRight), "\" y1=\"", y,
             "\" y2=\"", y, "\"/><text x=\"", number(kLeft - 8), "\" y=\"", y,
             "\" text-anchor=\"end\" dominant-baseline=\"middle\">", Bytes(bytes), "</text>\n");
}

std::string picture(const WatchReport& watched) {
  Scale scale{.steps = std::max<int64_t>(1, watched.steps)};
  for (const WatchPoint& point : watched.history)
    scale.bytes = std::max(scale.bytes, point.in_use.count);
  std::string out = cat("<svg viewBox=\"0 0 ", number(kWidth), " ", number(kHeight),
                        "\" role=\"img\" aria-label=\"Bytes in use over ", watched.steps,
                        " steps, at most ", Bytes(scale.bytes), "\">\n");
  for (const int64_t quarter : {0, 1, 2, 3, 4}) add_row(out, scale, scale.bytes / 4 * quarter);
  out += "<polyline points=\"";
  for (const WatchPoint& point : watched.history)
    out += cat(number(scale.x(point.step)), ",", number(scale.y(point.in_use.count)), " ");
  out += cat("\"/>\n<text x=\"", number(kLeft), "\" y=\"", number(kHeight - 8),
             "\">step 0</text><text x=\"", number(kWidth - kRight), "\" y=\"", number(kHeight - 8),
             "\" text-anchor=\"end\">step ", watched.steps, "</text>\n</svg>\n");
  return out;
}

}  // namespace

std::string html_page(const WatchReport& watched) {
  TextStream text;
  text << watched;
  return cat(kHead, picture(watched), "<pre>", escaped(text.str()), "</pre>\n</body>\n</html>\n");
}

void write_html(const std::string& path, const WatchReport& watched, Source at) {
  write_file(path, html_page(watched), "write_html", at);
}

}  // namespace tidemark::report
