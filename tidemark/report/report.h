// Pictures of plans and runs.
//
//   td::Plan plan = step.plan(td::spec({64, 784}));
//   td::report::write_html("plan.html", plan);
//   auto [result, profile] = step.profile(x);
//   td::report::write_html("run.html", plan, profile);
//   td::report::write_trace("run.json", profile);   // For ui.perfetto.dev or chrome://tracing.
//   td::report::write_html("growth.html", td::memory::watch(1000, [&] { train(); }));
//
// A page is one file that needs nothing else: no network, no other file. docs/report.md shows one.
#pragma once

#include <span>
#include <string>

#include "tidemark/api/plan.h"
#include "tidemark/base/source.h"
#include "tidemark/report/growth.h"

namespace tidemark::report {

void write_html(const std::string& path, const Plan& plan, Source at = Source::here());
// The plan, and a run of it: `profile` is of the same function with the same sizes.
void write_html(const std::string& path, const Plan& plan, const Profile& profile,
                Source at = Source::here());
// Two plans compared.
void write_html(const std::string& path, const Plan& before, const Plan& after,
                Source at = Source::here());

// What a loop held from step to step, as a line, and what grew: of StepMonitor::report or
// memory::watch.
void write_html(const std::string& path, const WatchReport& watched, Source at = Source::here());

// When each step ran on which thread, and the bytes in use.
void write_trace(const std::string& path, const Profile& profile, Source at = Source::here());

// The page of one or two documents, each the JSON of a plan or of a profile.
std::string html_page(std::span<const std::string> documents);
// Writes a file, whole or not at all, or to a pipe or terminal. Errors name `what` asked for it.
void write_file(const std::string& path, const std::string& text, const char* what, Source at);

}  // namespace tidemark::report
