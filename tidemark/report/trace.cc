// The format of chrome://tracing, which Perfetto opens too: a list of events, times in
// microseconds.
#include <algorithm>
#include <cstdio>

#include "tidemark/base/json.h"
#include "tidemark/report/report.h"

namespace tidemark::report {
namespace {

std::string microseconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", static_cast<double>(ns) / 1000);
  return text;
}

class Events {
 public:
  // An event of a kind ("ph") at a time; `rest` are further members.
  void add(const char* kind, int32_t thread, const std::string& name, const std::string& rest) {
    out_ += cat(out_.empty() ? "" : ",\n", R"({"ph": ")", kind, R"(", "pid": 1, "tid": )", thread,
                R"(, "name": )", json_quoted(name), rest, "}");
  }
  std::string text() const { return out_; }

 private:
  std::string out_;
};

void name_threads(const Profile& profile, Events& events) {
  int32_t last = 0;
  for (const ProfileSlice& slice : profile.slices) last = std::max(last, slice.thread);
  events.add("M", 0, "process_name",
             cat(R"(, "args": {"name": )", json_quoted(profile.function), "}"));
  for (int32_t thread = 0; thread <= last; ++thread) {
    const std::string name = thread == 0 ? "the calling thread" : cat("worker ", thread);
    events.add("M", thread, "thread_name", cat(R"(, "args": {"name": )", json_quoted(name), "}"));
  }
}

void add_slice(const Profile& profile, const ProfileSlice& slice, Events& events) {
  const ProfileStep& step = profile.steps[static_cast<size_t>(slice.step)];
  events.add(
      "X", slice.thread, step.name,
      cat(R"(, "cat": "step", "ts": )", microseconds(slice.begin_ns), R"(, "dur": )",
          microseconds(slice.end_ns - slice.begin_ns), R"(, "args": {"step": )", slice.step,
          R"(, "line": )", json_quoted(step.line), R"(, "layer": )", json_quoted(step.layer), "}"));
}

void count_bytes(const ProfileStep& step, int64_t at_ns, Events& events) {
  events.add(
      "C", 0, "memory in use",
      cat(R"(, "ts": )", microseconds(at_ns), R"(, "args": {"bytes": )", step.in_use.count, "}"));
}

}  // namespace

void write_trace(const std::string& path, const Profile& profile, Source at) {
  Events events;
  name_threads(profile, events);
  const ProfileStep* last = nullptr;
  for (const ProfileSlice& slice : profile.slices) {
    add_slice(profile, slice, events);
    if (slice.thread != 0) continue;
    last = &profile.steps[static_cast<size_t>(slice.step)];
    count_bytes(*last, slice.begin_ns, events);
  }
  if (last != nullptr) count_bytes(*last, profile.time_ns, events);
  write_file(path,
             cat(R"({"displayTimeUnit": "ns", "otherData": {"slices_left_out": )",
                 profile.slices_left_out, R"(}, "traceEvents": [)", "\n", events.text(), "\n]}\n"),
             "write_trace", at);
}

}  // namespace tidemark::report
