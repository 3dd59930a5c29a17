// Plans and runs as HTML pages and traces.
//
//   td::Plan plan = step.plan(td::spec({64, 784}));
//   td::report::write_html("plan.html", plan);
//   auto [result, profile] = step.profile(x);
//   td::report::write_html("run.html", plan, profile);
//   td::report::write_trace("run.json", profile);   // For ui.perfetto.dev or chrome://tracing.
//   td::report::write_html("budgets.html", plan, {.tradeoff = true});
//   td::report::write_html("growth.html", td::memory::watch(1000, [&] { train(); }));
//
// A page is one self-contained file: it needs no network and no other file. docs/report.md shows
// one.
#pragma once

#include <span>
#include <string>

#include "tidemark/api/plan.h"
#include "tidemark/base/source.h"
#include "tidemark/report/growth.h"

namespace tidemark::report {

struct HtmlOptions {
  // Adds the curve of bytes against work, and a slider that shows the plan within any budget. The
  // page has about 12 plans then, and making them searches for the floor: seconds for a large
  // model.
  bool tradeoff = false;
};

void write_html(const std::string& path, const Plan& plan, Source at = Source::here());
void write_html(const std::string& path, const Plan& plan, const HtmlOptions& options,
                Source at = Source::here());
// A plan and a run of it: `profile` must be of the same function and sizes.
void write_html(const std::string& path, const Plan& plan, const Profile& profile,
                Source at = Source::here());
void write_html(const std::string& path, const Plan& plan, const Profile& profile,
                const HtmlOptions& options, Source at = Source::here());
// Two plans compared.
void write_html(const std::string& path, const Plan& before, const Plan& after,
                Source at = Source::here());

// The bytes of a loop over its steps, and what grew: from StepMonitor::report or memory::watch.
void write_html(const std::string& path, const WatchReport& watched, Source at = Source::here());

// When and on which thread each step ran, and the bytes in use.
void write_trace(const std::string& path, const Profile& profile, Source at = Source::here());

// The trade of a plan between bytes and work, with about 12 plans from the usual one to the floor.
std::string tradeoff_document(const Plan& plan);
// The page of one or two documents, each the JSON of a plan or of a profile; beside one plan, also
// its tradeoff_document.
std::string html_page(std::span<const std::string> documents);
std::string html_page(const WatchReport& watched);
// Writes a file atomically, or to a pipe or terminal. Errors begin with `what`, the name of the
// caller.
void write_file(const std::string& path, const std::string& text, const char* what, Source at);

}  // namespace tidemark::report
