// Allocations that fail while files are saved and loaded, and while reports are written: files are
// as they were or all new, nothing lies beside them, and what is loaded into is as it was.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "tests/faults/injector.h"
#include "tests/unit/error_of.h"
#include "tests/unit/io/files.h"

namespace td = tidemark;

namespace tidemark::testing {
namespace {

// Names and bytes of all that is in it.
std::string contents(const Folder& folder) {
  std::map<std::string, std::string> files;
  for (const auto& each : std::filesystem::directory_iterator(folder.path()))
    files[each.path().filename()] = read_file(each.path());
  std::string all;
  for (const auto& [name, bytes] : files) all += cat(name, " ", bytes, "\n");
  return all;
}

std::string bits_of(const std::map<std::string, Tensor>& tensors) {
  std::string all;
  for (const auto& [name, tensor] : tensors) all += cat(name, " ") + bits(tensor);
  return all;
}

class FileFaults : public ::testing::Test {
 protected:
  FileFaults() {
    for (const char* name : {"a", "long name of a layer/kernel", "z"})
      tensors_.emplace(name, td::random::normal({30, 7}, {.key = td::random::Key(1)}));
    tensors_.emplace("view", td::transpose(tensors_.at("a")));
  }
  ~FileFaults() override { std::cout << text(counts_) << '\n'; }

  // A save over an old file, and one where there is none.
  void expect_save_survives(const std::string& name,
                            const std::function<void(const std::string& path)>& save) {
    for (const bool is_there : {true, false}) {
      counts_ += expect_survives({.name = name,
                                  .prepare =
                                      [&] {
                                        std::filesystem::remove(path());
                                        if (is_there) write_file(path(), "what was there");
                                      },
                                  .act =
                                      [&] {
                                        save(path());
                                        return std::string();
                                      },
                                  .state = [&] { return contents(folder_); }});
    }
  }
  void expect_load_survives(const std::string& name, const std::function<std::string()>& load) {
    counts_ += expect_survives({.name = name, .act = load, .state = [&] {
                                  return contents(folder_) + generator_state();
                                }});
  }
  std::string path() const { return folder_ / "file"; }

  Folder folder_;
  std::map<std::string, Tensor> tensors_;
  FaultCounts counts_;
};

TEST_F(FileFaults, Npy) {
  expect_save_survives("save_npy",
                       [&](const std::string& to) { td::io::save_npy(to, tensors_.at("a")); });
  expect_save_survives("save_npy of a view",
                       [&](const std::string& to) { td::io::save_npy(to, tensors_.at("view")); });
  td::io::save_npy(path(), tensors_.at("a"));
  for (const bool copy : {false, true})
    expect_load_survives("load_npy",
                         [&] { return bits(td::io::load_npy(path(), {.copy = copy})); });
}

TEST_F(FileFaults, Npz) {
  expect_save_survives("save_npz", [&](const std::string& to) { td::io::save_npz(to, tensors_); });
  td::io::save_npz(path(), tensors_);
  for (const bool copy : {false, true})
    expect_load_survives("load_npz",
                         [&] { return bits_of(td::io::load_npz(path(), {.copy = copy})); });
}

TEST_F(FileFaults, Safetensors) {
  const td::io::SafetensorsOptions options{.metadata = {{"key", "a value that is no short text"}}};
  expect_save_survives("save_safetensors", [&](const std::string& to) {
    td::io::save_safetensors(to, tensors_, options);
  });
  td::io::save_safetensors(path(), tensors_, options);
  for (const bool copy : {false, true}) {
    expect_load_survives("load_safetensors", [&] {
      const td::io::Safetensors loaded = td::io::load_safetensors(path(), {.copy = copy});
      return bits_of(loaded) + loaded.metadata.at("key");
    });
  }
}

// All that a checkpoint can hold.
struct Everything {
  std::map<std::string, td::Variable> variables = {{"first", td::Variable(td::zeros({500}))},
                                                   {"second", td::Variable(td::zeros({20, 3}))}};
  td::nn::Sequential model{td::nn::Dense(4), td::nn::Dense(2)};
  td::nn::Adam optimizer{{.learning_rate = 0.5}};
  td::data::Dataset<td::Tensor> rows = td::data::range(10);
  int64_t step = 3;
  std::vector<int> order = {1, 2};
  td::Tensor mean = td::zeros({2});
  td::Variable held{td::zeros({500})};
  td::Tensor snapshot = held.value();

  td::io::Checkpoint checkpoint() {
    return {{"variables", variables}, {"model", model},  {"optimizer", optimizer}, {"rows", rows},
            {"step", &step},          {"order", &order}, {"mean", &mean},          {"held", held}};
  }
  void train() {
    variables.at("first").assign(td::ones({500}));
    held.assign(td::ones({500}));
    td::GradientTape tape;
    optimizer.minimize(tape, td::sum(model(td::ones({1, 3}))), model);
    step = 9;
    order = {3, 2, 1};
    mean = td::ones({2});
    auto walk = rows.begin();
    ++walk;
  }
  std::string text() {
    std::string all;
    const auto add = [&](const td::NamedVariables& named) {
      for (const auto& [name, variable] : named) all += cat(name, " ", variable, "\n");
    };
    add(td::nn::named_variables(variables));
    add(td::nn::named_variables(model));
    add(td::nn::named_variables(optimizer));
    for (const int each : order) all += cat(each, " ");
    return cat(all, rows.position().pass, " ", rows.position().element, " ", step, mean, held,
               snapshot, td::random::state());
  }
};

TEST_F(FileFaults, CheckpointSave) {
  td::random::seed(3);
  Everything all;
  all.train();
  expect_save_survives("Checkpoint::save", [&](const std::string& to) {
    all.checkpoint().save(to, {.metadata = {{"epoch", "the third of all"}}});
  });
}

TEST_F(FileFaults, CheckpointLoad) {
  td::random::seed(3);
  {
    Everything trained;
    trained.train();
    trained.checkpoint().save(path());
  }
  // Into Variables with values, of which one is held; and into a model that was never called.
  for (const bool is_built : {true, false}) {
    std::string changed;
    const auto act = [&] {
      td::random::seed(4);
      Everything all;
      if (is_built) {
        (void)all.model(td::zeros({1, 3}));
        all.optimizer.build(all.model);
        for (const auto& [name, variable] : td::nn::named_variables(all.optimizer))
          (void)variable.value();
      }
      const std::string before = all.text();
      try {
        all.checkpoint().load(path());
      } catch (...) {
        if (all.text() != before) changed = cat(before, "became\n", all.text());
        throw;
      }
      return all.text();
    };
    counts_ += expect_survives({.name = cat("Checkpoint::load, built ", is_built), .act = act});
    EXPECT_EQ(changed, "");
  }
}

TEST_F(FileFaults, PartialCheckpointLoad) {
  td::random::seed(3);
  td::io::Checkpoint{{"old", td::Variable(td::ones({7}))}, {"b", td::Variable(td::ones({5}))}}.save(
      path());
  std::optional<td::Variable> a;
  counts_ += expect_survives({.name = "Checkpoint::load, partial",
                              .prepare = [&] { a.emplace(td::zeros({7})); },
                              .act =
                                  [&] {
                                    const auto restored = td::io::Checkpoint{{"new", *a}}.load(
                                        path(), {.partial = true, .rename = {{"old", "new"}}});
                                    return cat(restored.loaded.size(), restored.unexpected.size());
                                  },
                              .state = [&] { return bits(a->value()) + generator_state(); }});
}

// Under a budget the first product is computed again.
td::Tensor read_again(const td::Tensor& x) {
  const td::Tensor first = td::matmul(x, x);
  return td::sum(td::cumsum(td::cumsum(td::cumsum(first)), 1) * first);
}

TEST_F(FileFaults, Reports) {
  const auto f = td::function(read_again);
  const td::Tensor x = td::ones({40, 40});
  (void)f(x);
  const td::Plan plan = f.plan(x);
  const td::Profile profile = f.profile(x).second;
  expect_save_survives("write_html of a plan",
                       [&](const std::string& to) { td::report::write_html(to, plan); });
  expect_save_survives("write_html of a profile",
                       [&](const std::string& to) { td::report::write_html(to, plan, profile); });
  expect_save_survives("write_html with plans of other budgets", [&](const std::string& to) {
    td::report::write_html(to, plan, {.tradeoff = true});
  });
  expect_save_survives("write_html of two plans",
                       [&](const std::string& to) { td::report::write_html(to, plan, plan); });
  expect_save_survives("write_trace",
                       [&](const std::string& to) { td::report::write_trace(to, profile); });
  expect_load_survives("to_json", [&] { return plan.to_json() + profile.to_json(); });
  expect_load_survives("explain", [&] { return plan.explain() + plan.to_text(); });
  const td::Plan least = plan.within(plan.floor());
  ASSERT_FALSE(least.decisions().empty());
  expect_load_survives("explain of a budget", [&] { return least.explain() + least.to_json(); });
}

TEST_F(FileFaults, Text) {
  const td::Tensor x = td::reshape(td::arange(60), {3, 20});
  const td::Variable v(td::ones({3}), {.name = "a Variable with a long name"});
  expect_load_survives("tensors as text", [&] { return cat(x, v, td::Bytes(1 << 20)); });
  expect_load_survives("a ledger as text",
                       [] { return std::string(cat(td::memory::ledger()), 0, 3); });
  // The text of an error is whole, or the error is one of memory.
  expect_load_survives("the text of an error",
                       [&] { return error_of([&] { (void)(x + td::ones({7, 11})); }); });
  expect_load_survives("the text of an error of files", [&] {
    return error_of([&] { (void)td::io::load_npy(folder_ / "not there, as everybody can see"); });
  });
}

}  // namespace
}  // namespace tidemark::testing
