#include "tools/report.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/base/json.h"
#include "tidemark/report/report.h"
#include "tools/program.h"
#include "tools/program_file.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark report FILE [FILE] [--output=PAGE.html] [--tradeoff] [--no-jit]

Writes one self-contained HTML page: the bytes in use over the steps, the offsets of all buffers, the
peak by source line and layer, and a table. A file is a program (FILE.tm), or the JSON of a plan
(tidemark plan --json, Plan::to_json) or of a run (Profile::to_json).

With two files, a plan and a run of it are drawn together, or two plans are compared.

options:
  --output=PAGE.html  the page to write (default: the first file's name with .html)
  --tradeoff          add bytes against work, and a slider for the budget (one program, FILE.tm)
  --no-jit            plan programs unfused

exit code: 0 done; 2 bad input or usage.
)";

struct Options {
  std::vector<std::string> inputs;
  std::string output;
  bool tradeoff = false;
  bool fuse = true;
};

Options parse(Arguments arguments) {
  Options options;
  for (const std::string& argument : with_values("report", arguments, {"--output"})) {
    if (const auto output = value_of(argument, "--output"))
      options.output = *output;
    else if (argument == "--tradeoff")
      options.tradeoff = true;
    else if (argument == "--no-jit")
      options.fuse = false;
    else
      take_file("report", argument, options.inputs.emplace_back());
  }
  if (options.inputs.empty()) need_file("report", "");
  if (options.tradeoff && (options.inputs.size() > 1 || !options.inputs[0].ends_with(".tm")))
    usage_error("report", "--tradeoff needs one program, FILE.tm");
  if (options.inputs.size() > 2)
    usage_error("report", cat("expected one file or two, got ", options.inputs.size()));
  if (options.output.empty()) {
    const std::string& first = options.inputs[0];
    options.output = first.substr(0, first.rfind('.')) + ".html";
  }
  for (const std::string& input : options.inputs)
    if (options.output == input)
      usage_error("report", cat("the page would replace '", input, "'; give another --output"));
  return options;
}

// The members that the page requires.
void check_members(const JsonValue& document, const std::string& path, bool is_profile) {
  const std::vector<const char*> wanted =
      is_profile ? std::vector<const char*>{"function", "planned", "touched", "time_ns", "steps"}
                 : std::vector<const char*>{"function", "peak",      "arena",    "load",
                                            "classes",  "peak_step", "timeline", "buffers"};
  for (const char* const name : wanted) {
    if (document.find(name) != nullptr) continue;
    throw UserError(
        cat("report: '", path, "' is not a ", is_profile ? "profile" : "plan", ": it has no \"",
            name, "\""),
        Source::none(),
        "give a file written by tidemark plan FILE.tm --json, Plan::to_json or Profile::to_json");
  }
}

struct Document {
  std::string text;
  bool is_profile = false;
  std::vector<std::string> steps;  // Each with the bytes in use, as planned: "exp with 64 bytes".
  int64_t peak = 0;                // As planned.
};

std::string step_text(const std::string& name, int64_t bytes) {
  return cat(name, " with ", bytes, " bytes");
}
int64_t number_of(const JsonValue& object, const char* name) {
  const JsonValue* const found = object.find(name);
  return found == nullptr ? 0 : static_cast<int64_t>(found->number);
}

Document read_document(const std::string& path, bool fuse) {
  if (path.ends_with(".tm")) {
    const Plan plan = plan_of_file(path, "report", fuse);
    Document document{plan.to_json(), false, {}, plan.peak().count};
    for (const PlanStep& step : plan.timeline())
      document.steps.push_back(step_text(step.name, step.in_use.count));
    return document;
  }
  Document document;
  document.text = read_text(path, "report");
  const JsonValue value = parse_json(document.text, path);
  const JsonValue* const kind = value.find("kind");
  document.is_profile = kind != nullptr && kind->text == "profile";
  check_members(value, path, document.is_profile);
  for (const JsonValue& step : value.find(document.is_profile ? "steps" : "timeline")->items) {
    const JsonValue* const name = step.find("step");
    document.steps.push_back(
        step_text(name == nullptr ? "" : name->text,
                  number_of(step, document.is_profile ? "planned" : "in_use")));
  }
  document.peak = number_of(value, document.is_profile ? "planned" : "peak");
  return document;
}

void check_pair(const std::vector<Document>& documents) {
  if (documents.size() < 2) return;
  if (documents[0].is_profile && documents[1].is_profile)
    throw UserError("report: both files are profiles", Source::none(),
                    "give a plan and its profile, or two plans");
  if (!documents[0].is_profile && !documents[1].is_profile) return;
  const Document& plan = documents[documents[0].is_profile ? 1 : 0];
  const Document& run = documents[documents[0].is_profile ? 0 : 1];
  constexpr const char* remedy = "give a plan and a run of the same function and sizes";
  if (plan.steps.size() != run.steps.size())
    throw UserError(cat("report: the plan and the profile differ: ", plan.steps.size(), " and ",
                        run.steps.size(), " steps"),
                    Source::none(), remedy);
  if (plan.peak != run.peak)
    throw UserError(cat("report: the plan and the profile differ: ", plan.peak, " bytes at once, ",
                        "and a run that was planned for ", run.peak),
                    Source::none(), remedy);
  const auto [planned, ran] =
      std::mismatch(plan.steps.begin(), plan.steps.end(), run.steps.begin());
  if (planned != plan.steps.end())
    throw UserError(cat("report: the plan and the profile differ at step ",
                        planned - plan.steps.begin(), ": ", *planned, ", and ", *ran),
                    Source::none(), remedy);
}

}  // namespace

int report_command(Arguments arguments) {
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    std::cout << kHelp;
    return 0;
  }
  const Options options = parse(arguments);
  std::vector<Document> documents;
  for (const std::string& input : options.inputs)
    documents.push_back(read_document(input, options.fuse));
  check_pair(documents);
  std::vector<std::string> texts;
  for (Document& document : documents) texts.push_back(std::move(document.text));
  if (options.tradeoff)
    texts.push_back(
        report::tradeoff_document(plan_of_file(options.inputs[0], "report", options.fuse)));
  report::write_file(options.output, report::html_page(texts), "report", Source::none());
  std::cout << options.output << '\n';
  return 0;
}

}  // namespace tidemark::tools
