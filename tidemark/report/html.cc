// Assembles a report page from its embedded files and the data.
#include <algorithm>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/io/save.h"
#include "tidemark/report/page.h"
#include "tidemark/report/report.h"

namespace tidemark::report {
namespace {

// JSON for inclusion in <script>: "<" occurs only in strings, and escaped it cannot end the element
// or begin a comment.
void append_data(std::string& out, std::span<const std::string> documents) {
  out += "<script type=\"application/json\" id=\"tidemark-data\">[";
  for (size_t i = 0; i < documents.size(); ++i) {
    if (i > 0) out += ",";
    for (const char c : documents[i]) {
      if (c == '<')
        out += "\\u003c";
      else
        out += c;
    }
  }
  out += "]</script>";
}

// All files with this suffix, concatenated.
void append_files(std::string& out, std::string_view tag, std::string_view ending) {
  out.append("<").append(tag).append(">\n");
  for (const PageFile& file : page_files())
    if (file.name.ends_with(ending)) out += file.text;
  out.append("</").append(tag).append(">");
}

}  // namespace

std::string html_page(std::span<const std::string> documents) {
  constexpr std::string_view open = "<!--tidemark:", close = "-->";
  std::string_view rest = page_files()[0].text;
  std::string out;
  for (size_t at = rest.find(open); at != rest.npos; at = rest.find(open)) {
    out += rest.substr(0, at);
    rest.remove_prefix(at + open.size());
    const std::string_view mark = rest.substr(0, rest.find(close));
    if (mark == "style") append_files(out, "style", ".css");
    if (mark == "data") append_data(out, documents);
    if (mark == "script") append_files(out, "script", ".js");
    rest.remove_prefix(mark.size() + close.size());
  }
  return out.append(rest);
}

std::string tradeoff_document(const Plan& plan) {
  constexpr size_t most = 12;
  const std::vector<TradeoffPoint> points = plan.tradeoff();
  const size_t shown = std::min(most, points.size());
  std::string plans;
  for (size_t i = 0; i < shown; ++i) {
    // Evenly spread, with the first and the last.
    const size_t point = shown < 2 ? 0 : i * (points.size() - 1) / (shown - 1);
    plans += cat(i == 0 ? "" : ", ", "{\"point\": ", point,
                 ", \"plan\": ", plan.within(points[point].peak).to_json(), "}");
  }
  return cat("{\"version\": 1, \"kind\": \"tradeoff\", \"points\": ", to_json(points),
             ", \"plans\": [", plans, "]}\n");
}

void write_file(const std::string& path, const std::string& text, const char* what, Source at) {
  io::save_text({what, path, at}, text);
}

namespace {

void write_page(const std::string& path, std::vector<std::string> documents, const Plan& plan,
                const HtmlOptions& options, Source at) {
  if (options.tradeoff) documents.push_back(tradeoff_document(plan));
  write_file(path, html_page(documents), "write_html", at);
}

}  // namespace

void write_html(const std::string& path, const Plan& plan, Source at) {
  write_html(path, plan, HtmlOptions(), at);
}

void write_html(const std::string& path, const Plan& plan, const HtmlOptions& options, Source at) {
  write_page(path, {plan.to_json()}, plan, options, at);
}

void write_html(const std::string& path, const Plan& plan, const Profile& profile, Source at) {
  write_html(path, plan, profile, HtmlOptions(), at);
}

void write_html(const std::string& path, const Plan& plan, const Profile& profile,
                const HtmlOptions& options, Source at) {
  constexpr const char* remedy =
      "give the plan and the profile of the same function with the same sizes";
  if (plan.timeline().size() != profile.steps.size())
    throw UserError(cat("write_html: the plan has ", plan.timeline().size(), " steps, the profile ",
                        profile.steps.size()),
                    at, remedy);
  if (plan.peak() != profile.planned)
    throw UserError(cat("write_html: the plan needs ", plan.peak().count,
                        " bytes at once, the run was planned for ", profile.planned.count),
                    at, remedy);
  write_page(path, {plan.to_json(), profile.to_json()}, plan, options, at);
}

void write_html(const std::string& path, const Plan& before, const Plan& after, Source at) {
  const std::string documents[] = {before.to_json(), after.to_json()};
  write_file(path, html_page(documents), "write_html", at);
}

}  // namespace tidemark::report
