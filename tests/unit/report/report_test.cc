// Pages and traces, read back as their readers read them.
#include "tidemark/report/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tests/unit/report/model.h"
#include "tidemark/base/json.h"

namespace tidemark {
namespace {

class Report : public testing::Test {
 protected:
  Report()
      : folder_(std::filesystem::temp_directory_path() /
                ("tidemark_report_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Report() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  const MachineCode machine_;
  const std::filesystem::path folder_;
  const Weights weights_ = weights(2, 16, 4);
  const Tensor x_ = random::normal({8, 16}, {.key = random::Key(7)});
  const Tensor labels_ = zeros({8}, i32);
};

// What stands between the marks of the page's data.
std::string data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"tidemark-data\">";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

int64_t number(const JsonValue& object, std::string_view name) {
  return static_cast<int64_t>(object.find(name)->number);
}

TEST_F(Report, PageHoldsThePlanAndTheRun) {
  const auto step = training_step();
  const Plan plan = step.plan(x_, labels_, weights_);
  const Profile profile = step.profile(x_, labels_, weights_).second;
  report::write_html(path("run.html"), plan, profile);
  const JsonValue data = parse_json(data_of(read("run.html")), "data");
  ASSERT_EQ(data.items.size(), 2U);
  EXPECT_EQ(number(data.items[0], "peak"), plan.peak().count);
  EXPECT_EQ(number(data.items[1], "touched"), profile.touched.count);
  EXPECT_EQ(data.items[0].find("timeline")->items.size(), plan.timeline().size());
  EXPECT_EQ(data.items[1].find("steps")->items.size(), plan.timeline().size());
  EXPECT_EQ(data.items[0].find("buffers")->items.size(), plan.buffers().size());
}

TEST_F(Report, PageNeedsNothingElse) {
  report::write_html(path("plan.html"), training_step().plan(x_, labels_, weights_));
  const std::string page = read("plan.html");
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  for (const char* const fetched : {"src=\"", "url(", "@import", "fetch(", "XMLHttp",
                                    "http:", "https:", "<link", "import(", "<!--tidemark:"})
    EXPECT_EQ(page.find(fetched), std::string::npos) << fetched;
}

TEST_F(Report, NamesCannotBreakThePage) {
  const std::string name = "</script><script>alert(1)</script><!-- \" \\ \xE9";
  const auto f = function(
      [&](const Tensor& x) {
        const NameScope scope(name);
        return exp(x) + sum(x);
      },
      {.name = name});
  report::write_html(path("plan.html"), f.plan(spec({100})));
  const std::string page = read("plan.html");
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  const JsonValue data = parse_json(data_of(page), "data");
  const std::string as_utf8 = name.substr(0, name.size() - 1) + "\xEF\xBF\xBD";
  EXPECT_EQ(data.items[0].find("timeline")->items[0].find("layer")->text, as_utf8);
}

TEST_F(Report, PageHoldsPlansFromTheUsualOneToTheFloor) {
  const Plan plan = training_step().plan(spec({256, 16}), spec({256}, i32), weights_);
  report::write_html(path("budgets.html"), plan, {.tradeoff = true});
  const JsonValue data = parse_json(data_of(read("budgets.html")), "data");
  ASSERT_EQ(data.items.size(), 2U);
  EXPECT_EQ(data.items[1].find("kind")->text, "tradeoff");
  const std::vector<JsonValue>& points = data.items[1].find("points")->items;
  const std::vector<JsonValue>& plans = data.items[1].find("plans")->items;
  EXPECT_EQ(points.size(), plan.tradeoff().size());
  EXPECT_EQ(plans.size(), std::min<size_t>(12, points.size()));
  for (const JsonValue& each : plans) {
    const JsonValue& point = points[static_cast<size_t>(number(each, "point"))];
    EXPECT_EQ(number(*each.find("plan"), "peak"), number(point, "peak"));
  }
  EXPECT_EQ(number(*plans[0].find("plan"), "peak"), plan.peak().count);
  EXPECT_EQ(number(*plans.back().find("plan"), "peak"), plan.floor().count);
}

TEST_F(Report, PageHasNoOtherPlansUnlessAsked) {
  const Plan plan = training_step().plan(x_, labels_, weights_);
  report::write_html(path("plan.html"), plan);
  report::write_html(path("same.html"), plan, report::HtmlOptions());
  EXPECT_EQ(parse_json(data_of(read("plan.html")), "data").items.size(), 1U);
  EXPECT_EQ(read("plan.html"), read("same.html"));
}

TEST_F(Report, ComparesTwoPlans) {
  const auto step = training_step();
  const Plan small = step.plan(x_, labels_, weights_);
  const Plan large = step.plan(spec({64, 16}), spec({64}, i32), weights_);
  report::write_html(path("two.html"), small, large);
  const JsonValue data = parse_json(data_of(read("two.html")), "data");
  ASSERT_EQ(data.items.size(), 2U);
  EXPECT_EQ(number(data.items[0], "peak"), small.peak().count);
  EXPECT_EQ(number(data.items[1], "peak"), large.peak().count);
}

TEST_F(Report, DrawsWhatAWatchedLoopHeld) {
  std::vector<Tensor> kept;
  const auto leak = [&] { kept.push_back(zeros({100, 100})); };
  const WatchReport watched = memory::watch(300, leak);
  report::write_html(path("growth.html"), watched);
  const std::string page = read("growth.html");
  EXPECT_EQ(page, report::html_page(watched));
  EXPECT_EQ(page.find("<!doctype html>"), 0U);
  EXPECT_NE(page.find("300 steps: growing"), std::string::npos) << page;
  EXPECT_NE(page.find("report_test.cc:"), std::string::npos) << "the line that leaks";
  const std::string open = "<polyline points=\"";
  const size_t begin = page.find(open) + open.size();
  const std::string points = page.substr(begin, page.find('"', begin) - begin);
  EXPECT_EQ(static_cast<size_t>(std::count(points.begin(), points.end(), ',')),
            watched.history.size());
  for (const char* const fetched : {"src=", "url(", "http:", "https:", "<link", "<script"})
    EXPECT_EQ(page.find(fetched), std::string::npos) << fetched;
  report::write_html(path("none.html"), WatchReport());
  EXPECT_NE(read("none.html").find("0 steps"), std::string::npos);
}

TEST_F(Report, SaysWhatIsWrong) {
  const auto step = training_step();
  const Plan plan = step.plan(x_, labels_, weights_);
  const auto line = [](const std::string& text) { return text.substr(0, text.find("\n")); };
  EXPECT_EQ(
      line(error_of([&] { report::write_html("/nowhere/plan.html", plan); })),
      "write_html: /nowhere/plan.html cannot be saved: /nowhere/plan.html.saving: No such file or "
      "directory");
  EXPECT_EQ(line(error_of([&] { report::write_trace("/nowhere/t.json", Profile()); })),
            "write_trace: /nowhere/t.json cannot be saved: /nowhere/t.json.saving: No such file or "
            "directory");
  EXPECT_EQ(error_of<DeviceError>([&] { report::write_html("/dev/full", plan); }),
            "write_html: /dev/full cannot be written to at byte 0: No space left on device");
  report::write_html("/dev/null", plan);
  const Source at = Source::here("user.cc", 7, "main");
  const std::string differ =
      error_of([&] { report::write_html(path("no.html"), plan, Profile(), at); });
  EXPECT_EQ(differ, cat("write_html: the plan has ", plan.timeline().size(),
                        " steps, the profile 0\n  at user.cc:7\n  give the plan and the profile of "
                        "the same function with the same sizes"));
}

TEST_F(Report, RefusesARunOfOtherSizes) {
  const auto step = training_step();
  const Plan small = step.plan(x_, labels_, weights_);
  const Profile run =
      step.profile(random::normal({64, 16}, {.key = random::Key(7)}), zeros({64}, i32), weights_)
          .second;
  ASSERT_EQ(small.timeline().size(), run.steps.size());
  const Source at = Source::here("user.cc", 7, "main");
  EXPECT_EQ(error_of([&] { report::write_html(path("no.html"), small, run, at); }),
            cat("write_html: the plan needs ", small.peak().count,
                " bytes at once, the run was planned for ", run.planned.count,
                "\n  at user.cc:7\n  give the plan and the profile of the same function with the "
                "same sizes"));
}

TEST_F(Report, BuffersOfAPlanNeverOverlapAndReachThePeak) {
  const Plan plan = training_step().plan(x_, labels_, weights_);
  const std::vector<PlanBuffer> buffers = plan.buffers();
  int64_t top = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const PlanBuffer& a = buffers[i];
    top = std::max(top, a.offset + a.bytes.count);
    for (size_t k = 0; k < i; ++k) {
      const PlanBuffer& b = buffers[k];
      const bool in_time = a.begin < b.end && b.begin < a.end;
      const bool in_place =
          a.offset < b.offset + b.bytes.count && b.offset < a.offset + a.bytes.count;
      EXPECT_FALSE(in_time && in_place) << a.name << " and " << b.name;
    }
  }
  EXPECT_EQ(top, plan.peak().count);
  for (size_t step = 0; step < plan.timeline().size(); ++step) {
    int64_t alive = 0;
    for (const PlanBuffer& buffer : buffers) {
      const auto at = static_cast<int64_t>(step);
      if (buffer.begin <= at && at < buffer.end) alive += buffer.bytes.count;
    }
    EXPECT_EQ(alive, plan.timeline()[step].in_use.count) << "step " << step;
  }
}

TEST_F(Report, AStraightProgramUsesWhatIsPlannedAtEveryStep) {
  const Profile profile = training_step().profile(x_, labels_, weights_).second;
  ASSERT_FALSE(profile.steps.empty());
  for (const ProfileStep& step : profile.steps) {
    EXPECT_EQ(step.in_use.count, step.planned.count) << step.name << ' ' << step.line;
    EXPECT_EQ(step.runs, 1) << step.name;
  }
  EXPECT_EQ(profile.touched.count, profile.planned.count);
}

// A loop, a map, and a branch of which one side runs.
Profile looped() {
  const auto f = function([](const Tensor& start) {
    const Tensor grown = fori_loop(
        0, 20, [](const Tensor&, const Tensor& each) { return matmul(each, each) * 0.1; }, start);
    const Tensor rows = map_fn([](const Tensor& row) { return sum(cumsum(row)) + row; }, grown,
                               {.parallel_iterations = 4});
    return cond(sum(rows) >= 0, [=] { return exp(rows); }, [=] { return cumsum(rows) + rows; });
  });
  return f.profile(ones({32, 32}) * 0.01).second;
}

TEST_F(Report, CountsRunsOfLoopsMapsAndBranches) {
  const Profile profile = looped();
  std::map<std::string, int64_t> runs;
  for (const ProfileStep& step : profile.steps) {
    if (runs[step.name] == 0) runs[step.name] = step.runs;
    EXPECT_LE(step.in_use.count, step.planned.count) << step.name;
    EXPECT_TRUE(step.runs > 0 || step.time_ns == 0);
  }
  EXPECT_EQ(runs["loop"], 1);
  EXPECT_EQ(runs["matmul"], 20);
  EXPECT_EQ(runs["map"], 1);
  EXPECT_EQ(runs["exp"], 1);
  EXPECT_EQ(profile.steps.back().runs, 0) << "the branch that was not taken";
}

TEST_F(Report, MeasuresTheSameWithOneThreadAsWithMany) {
  const int threads = num_threads();
  for (const int count : {1, 4}) {
    set_num_threads(count);
    const Profile profile = training_step().profile(x_, labels_, weights_).second;
    for (const ProfileStep& step : profile.steps)
      EXPECT_EQ(step.in_use.count, step.planned.count) << step.name;
  }
  set_num_threads(threads);
}

TEST_F(Report, TraceHasEverySliceAndTheBytesInUse) {
  const Profile profile = looped();
  report::write_trace(path("trace.json"), profile);
  const JsonValue trace = parse_json(read("trace.json"), "trace.json");
  std::map<std::string, size_t> slices, kinds;
  int64_t highest = 0;
  for (const JsonValue& event : trace.find("traceEvents")->items) {
    const std::string kind = event.find("ph")->text;
    ++kinds[kind];
    if (kind == "X") {
      ++slices[event.find("name")->text];
      EXPECT_GE(event.find("ts")->number, 0);
      EXPECT_GE(event.find("dur")->number, 0);
      const auto step = static_cast<size_t>(number(*event.find("args"), "step"));
      EXPECT_EQ(event.find("name")->text, profile.steps[step].name);
      EXPECT_LE(event.find("ts")->number + event.find("dur")->number,
                static_cast<double>(profile.time_ns) / 1000 + 0.01);
    }
    if (kind == "C") highest = std::max(highest, number(*event.find("args"), "bytes"));
  }
  EXPECT_EQ(kinds["X"], profile.slices.size());
  EXPECT_GE(slices["matmul"], 20U);
  EXPECT_GE(kinds["M"], 2U) << "the process and its threads have names";
  int64_t wanted = 0;
  for (const ProfileStep& step : profile.steps)
    if (step.runs > 0) wanted = std::max(wanted, step.in_use.count);
  EXPECT_EQ(highest, wanted);
}

// What Perfetto and chrome://tracing ask of a trace in this format: a kind, a process and a thread
// in every event; a time in all but names; a duration in slices, which on one thread lie beside or
// inside each other; numbers alone in counters.
TEST_F(Report, TraceKeepsTheRulesOfItsFormat) {
  report::write_trace(path("trace.json"), looped());
  const JsonValue trace = parse_json(read("trace.json"), "trace.json");
  EXPECT_EQ(trace.find("displayTimeUnit")->text, "ns");
  struct Slice {
    double begin, end;
  };
  std::map<int64_t, std::vector<Slice>> by_thread;
  std::map<int64_t, std::string> thread_names;
  for (const JsonValue& event : trace.find("traceEvents")->items) {
    const std::string kind = event.find("ph")->text;
    EXPECT_EQ(event.find("pid")->kind, JsonValue::Kind::number);
    EXPECT_EQ(event.find("tid")->kind, JsonValue::Kind::number);
    EXPECT_FALSE(event.find("name")->text.empty());
    const int64_t thread = number(event, "tid");
    if (kind == "M") {
      if (event.find("name")->text == "thread_name")
        thread_names[thread] = event.find("args")->find("name")->text;
      continue;
    }
    ASSERT_TRUE(kind == "X" || kind == "C") << kind;
    const double begin = event.find("ts")->number;
    EXPECT_GE(begin, 0);
    if (kind == "X") {
      by_thread[thread].push_back({begin, begin + event.find("dur")->number});
      continue;
    }
    ASSERT_FALSE(event.find("args")->items.empty());
    for (const JsonValue& value : event.find("args")->items)
      EXPECT_EQ(value.kind, JsonValue::Kind::number);
  }
  constexpr double kRounding = 0.0005;  // Times have three places.
  for (auto& [thread, slices] : by_thread) {
    EXPECT_FALSE(thread_names[thread].empty()) << "thread " << thread << " has no name";
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<double> open;  // Where those that are not over end, the outermost first.
    for (const Slice& slice : slices) {
      while (!open.empty() && open.back() <= slice.begin + kRounding) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(slice.end, open.back() + kRounding) << "thread " << thread;
      }
      open.push_back(slice.end);
    }
  }
}

TEST_F(Report, LongLoopsKeepABoundedNumberOfSlices) {
  const auto f = function([](const Tensor& x) {
    return fori_loop(
        0, 60'000, [](const Tensor&, const Tensor& each) { return cumsum(each) * 0.0; }, x);
  });
  const Profile profile = f.profile(ones({4})).second;
  int64_t runs = 0;
  for (const ProfileStep& step : profile.steps) runs += step.runs;
  ASSERT_GT(runs, 100'000);
  EXPECT_EQ(profile.slices.size(), 100'000U);
  EXPECT_GE(profile.slices_left_out, runs - 100'000);
}

TEST_F(Report, ProfileIsJson) {
  Profile profile = looped();
  profile.function = "a \"quoted\" name";
  const JsonValue json = parse_json(profile.to_json(), "profile");
  EXPECT_EQ(json.find("kind")->text, "profile");
  EXPECT_EQ(json.find("function")->text, profile.function);
  EXPECT_EQ(number(json, "planned"), profile.planned.count);
  const std::vector<JsonValue>& steps = json.find("steps")->items;
  ASSERT_EQ(steps.size(), profile.steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(number(steps[i], "in_use"), profile.steps[i].in_use.count);
    EXPECT_EQ(number(steps[i], "runs"), profile.steps[i].runs);
  }
}

TEST_F(Report, PlanIsJsonWithBlameThatAddsUp) {
  const Plan plan = training_step().plan(x_, labels_, weights_);
  const JsonValue json = parse_json(plan.to_json(), "plan");
  const JsonValue& peak =
      json.find("timeline")->items[static_cast<size_t>(number(json, "peak_step"))];
  for (const char* const list : {"at_peak", "by_line", "by_layer"}) {
    int64_t sum = 0;
    for (const JsonValue& each : json.find(list)->items) sum += number(each, "bytes");
    EXPECT_EQ(sum, number(peak, "in_use")) << list;
  }
}

TEST_F(Report, ExplainDrawsTheTimelineAndListsThePeak) {
  const Plan plan = training_step().plan(x_, labels_, weights_);
  const std::string text = plan.explain();
  EXPECT_NE(text.find("█"), std::string::npos) << text;
  const PlanTensor& largest = plan.at_peak()[0];
  const size_t row = text.find(cat(largest.bytes, "  ", largest.type));
  ASSERT_NE(row, std::string::npos) << text;
  EXPECT_NE(text.find(largest.line + ", in " + largest.layer, row), std::string::npos) << text;
  EXPECT_NE(text.find(cat("\n    and ", plan.at_peak().size() - 5, " more\n")), std::string::npos);
}

}  // namespace
}  // namespace tidemark
