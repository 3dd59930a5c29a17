#include "tools/report.h"

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
    R"(usage: tidemark report FILE [FILE] [--output=PAGE.html] [--no-jit]

Makes one HTML page that needs nothing else: the bytes in use over steps, where everything lies, what
the peak is made of by line and by layer, and a table of all of it. A file is a program (FILE.tm), or
the JSON of a plan (tidemark plan --json, Plan::to_json) or of a run (Profile::to_json).

Two files: a plan and a run of it are drawn together, two plans are compared.

options:
  --output=PAGE.html  where it goes (default: the first file's name with .html)
  --no-jit            plan programs unfused

exit code: 0 done; 2 bad input or usage.
)";

struct Options {
  std::vector<std::string> inputs;
  std::string output;
  bool fuse = true;
};

Options parse(Arguments arguments) {
  constexpr std::string_view kOutput = "--output=";
  Options options;
  for (const std::string& argument : arguments) {
    if (argument.starts_with(kOutput))
      options.output = argument.substr(kOutput.size());
    else if (argument == "--no-jit")
      options.fuse = false;
    else
      take_file("report", argument, options.inputs.emplace_back());
  }
  if (options.inputs.empty()) need_file("report", "");
  if (options.inputs.size() > 2)
    usage_error("report", cat("one file or two, not ", options.inputs.size()));
  if (options.output.empty()) {
    const std::string& first = options.inputs[0];
    options.output = first.substr(0, first.rfind('.')) + ".html";
  }
  for (const std::string& input : options.inputs)
    if (options.output == input)
      usage_error("report", cat("the page would replace '", input, "'; give another --output"));
  return options;
}

// What the page cannot do without.
void check_members(const JsonValue& document, const std::string& path, bool is_profile) {
  const std::vector<const char*> wanted =
      is_profile ? std::vector<const char*>{"function", "planned", "touched", "time_ns", "steps"}
                 : std::vector<const char*>{"function", "peak",      "arena",    "load",
                                            "classes",  "peak_step", "timeline", "buffers"};
  for (const char* const name : wanted) {
    if (document.find(name) != nullptr) continue;
    throw UserError(cat("report: '", path, "' is no ", is_profile ? "profile" : "plan",
                        ": it has no \"", name, "\""),
                    Source::none(),
                    "tidemark plan FILE.tm --json, Plan::to_json and Profile::to_json write what "
                    "is wanted");
  }
}

struct Document {
  std::string text;
  bool is_profile = false;
  size_t steps = 0;
};

Document read_document(const std::string& path, bool fuse) {
  if (path.ends_with(".tm")) {
    const Plan plan = plan_of_file(path, "report", fuse);
    return {plan.to_json(), false, plan.timeline().size()};
  }
  Document document;
  document.text = read_text(path, "report");
  const JsonValue value = parse_json(document.text, path);
  const JsonValue* const kind = value.find("kind");
  document.is_profile = kind != nullptr && kind->text == "profile";
  check_members(value, path, document.is_profile);
  document.steps = value.find(document.is_profile ? "steps" : "timeline")->items.size();
  return document;
}

void check_pair(const std::vector<Document>& documents) {
  if (documents.size() < 2) return;
  if (documents[0].is_profile && documents[1].is_profile)
    throw UserError("report: both files are profiles", Source::none(),
                    "give a plan and its profile, or two plans");
  const bool is_run = documents[0].is_profile || documents[1].is_profile;
  if (is_run && documents[0].steps != documents[1].steps)
    throw UserError(cat("report: the plan and the profile differ: ", documents[0].steps, " and ",
                        documents[1].steps, " steps"),
                    Source::none(), "give a plan and a run of the same function and sizes");
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
  report::write_file(options.output, report::html_page(texts), "report", Source::none());
  std::cout << options.output << '\n';
  return 0;
}

}  // namespace tidemark::tools
