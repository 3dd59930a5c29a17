// Writes the pages that page_test.py looks at, and the JSON behind them: report_pages FOLDER
#include <iostream>

#include "tests/unit/report/model.h"

namespace td = tidemark;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  const td::Weights w = td::weights(3, 64, 10);
  const auto step = td::training_step();
  const td::Tensor x = td::random::normal({256, 64}, {.key = td::random::Key(7)});
  const td::Tensor labels = td::zeros({256}, td::i32);
  const td::Plan plan = step.plan(x, labels, w);
  const auto [gradients, profile] = step.profile(x, labels, w);
  td::report::write_file(folder + "plan.json", plan.to_json(), "pages", td::Source::here());
  td::report::write_file(folder + "profile.json", profile.to_json(), "pages", td::Source::here());
  td::report::write_html(folder + "plan.html", plan);
  td::report::write_html(folder + "run.html", plan, profile);
  td::report::write_trace(folder + "trace.json", profile);
  const td::Plan larger = step.plan(td::spec({384, 64}), td::spec({384}, td::i32), w);
  td::report::write_file(folder + "larger.json", larger.to_json(), "pages", td::Source::here());
  td::report::write_html(folder + "compare.html", plan, larger);
  td::report::write_html(folder + "budgets.html", plan, profile, {.tradeoff = true});
  td::report::write_file(folder + "tradeoff.json", td::report::tradeoff_document(plan), "pages",
                         td::Source::here());
  td::report::write_html(folder + "within.html", plan.within(td::Bytes(plan.peak().count * 2 / 3)));
  const auto looped = td::function(
      [](const td::Tensor& start) {
        const td::Tensor grown = td::fori_loop(
            0, 20,
            [](const td::Tensor&, const td::Tensor& each) { return td::matmul(each, each) * 0.1; },
            start);
        const td::Tensor rows =
            td::map_fn([](const td::Tensor& row) { return td::sum(td::cumsum(row)) + row; }, grown,
                       {.parallel_iterations = 4});
        return td::cond(
            td::sum(rows) >= 0, [=] { return td::exp(rows); }, [=] { return td::cumsum(rows); });
      },
      {.name = "loops"});
  const td::Tensor start = td::ones({96, 96}) * 0.01;
  const td::Plan loops = looped.plan(start);
  const auto [result, looped_profile] = looped.profile(start);
  td::report::write_html(folder + "loops.html", loops, looped_profile);
  td::report::write_file(folder + "loops.json", loops.to_json(), "pages", td::Source::here());
  std::cout << plan.to_text() << looped_profile << loops.to_text();
}
