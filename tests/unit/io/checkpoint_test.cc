#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include "tests/unit/error_of.h"
#include "tests/unit/io/files.h"
#include "tidemark/io/system_calls.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace tidemark {
namespace {

struct Layer {
  td::Variable kernel{td::zeros({3, 4})}, bias{td::zeros({4})};
};
struct Model {
  std::vector<Layer> blocks = std::vector<Layer>(2);
  td::Variable scale{1.0F};
};

void fill(const Model& model, float first) {
  for (const auto& [name, variable] : td::nn::named_variables(model)) {
    variable.assign(td::full(variable.shape(), first));
    first += 1;
  }
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : td::io::load_safetensors(path)) names.push_back(name);
  return names;
}

void expect_same(const Model& a, const Model& b) {
  const auto x = td::nn::named_variables(a), y = td::nn::named_variables(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(td::identical(x[i].second.value(), y[i].second.value())) << x[i].first;
}

// The message without folder and line.
template <class F>
std::string said(const Folder& folder, const F& f) {
  std::string text = without(folder, error_of(f));
  const size_t line = text.find("\n  at checkpoint_test.cc:");
  if (line != std::string::npos) text.erase(line, text.find('\n', line + 1) - line);
  return text;
}

TEST(Checkpoint, NamesVariablesByFieldAndIndex) {
  const Folder folder;
  Model model;
  td::io::Checkpoint checkpoint{{"model", model}};
  checkpoint.save(folder / "x.safetensors");
  EXPECT_EQ(names_in(folder / "x.safetensors"),
            (std::vector<std::string>{"model/blocks/0/bias", "model/blocks/0/kernel",
                                      "model/blocks/1/bias", "model/blocks/1/kernel", "model/scale",
                                      "random"}));
}

TEST(Checkpoint, BringsBackEveryBit) {
  const Folder folder;
  const Model model, other;
  fill(model, 1.5);
  const td::io::Checkpoint checkpoint{{"model", model}};
  checkpoint.save(folder / "x.safetensors", {.metadata = {{"epoch", "3"}}});
  EXPECT_EQ(td::io::load_safetensors(folder / "x.safetensors").metadata.at("epoch"), "3");
  const td::io::RestoreReport restored =
      td::io::Checkpoint{{"model", other}}.load(folder / "x.safetensors");
  expect_same(model, other);
  EXPECT_EQ(restored.loaded.size(), 6U);
  EXPECT_TRUE(restored.missing.empty() && restored.unexpected.empty());
  fill(model, 7);
  checkpoint.load(folder / "x.safetensors");
  expect_same(model, other);
}

TEST(Checkpoint, HoldsNumbersTensorsAndStructsByAddress) {
  struct Progress {
    int64_t step = 0;
    double best = 0;
    bool done = false;
    std::vector<int> order = {};
    td::Tensor mean = td::zeros({2});
  };
  const Folder folder;
  Progress progress{
      .step = 41, .best = 0.125, .done = true, .order = {3, 1, 2}, .mean = td::ones({3})};
  int epoch = 7;
  const td::Variable rate(td::constant(0.5, td::f64));
  const td::io::Checkpoint checkpoint{{"progress", &progress}, {"epoch", &epoch}, {"rate", rate}};
  checkpoint.save(folder / "x.safetensors");
  progress = {};
  epoch = 0;
  rate.assign(td::constant(0.0, td::f64));
  checkpoint.load(folder / "x.safetensors");
  EXPECT_EQ(progress.step, 41);
  EXPECT_EQ(progress.best, 0.125);
  EXPECT_TRUE(progress.done);
  EXPECT_EQ(progress.order, (std::vector<int>{3, 1, 2}));
  EXPECT_TRUE(td::identical(progress.mean, td::ones({3})));
  EXPECT_EQ(epoch, 7);
  EXPECT_EQ(rate.value().item<double>(), 0.5);
}

TEST(Checkpoint, HoldsWhatAnEntryListsItself) {
  const Folder folder;
  td::Variable kernel(td::ones({2}));
  double rate = 0.5;
  const auto entry =
      td::io::CheckpointEntry::listed_by("state", [&](auto& items, const std::string& name) {
        items.add(name + "/kernel", kernel);
        items.add(name + "/rate", rate);
      });
  const td::io::Checkpoint checkpoint{entry};
  checkpoint.save(folder / "x.safetensors");
  kernel.assign(td::zeros({2}));
  rate = 3;
  checkpoint.load(folder / "x.safetensors");
  EXPECT_TRUE(td::identical(kernel.value(), td::ones({2})));
  EXPECT_EQ(rate, 0.5);
  EXPECT_EQ(names_in(folder / "x.safetensors"),
            (std::vector<std::string>{"random", "state/kernel", "state/rate"}));
}

TEST(Checkpoint, HoldsThePositionOfADataset) {
  struct Position {
    int64_t pass = 0, element = 0;
  };
  struct Dataset {
    std::shared_ptr<Position> at = std::make_shared<Position>();
    Position position() const { return *at; }
    void restore(Position position) const { *at = position; }
  };
  const Folder folder;
  const Dataset dataset;
  *dataset.at = {2, 17};
  const td::io::Checkpoint checkpoint{{"data", dataset}};
  checkpoint.save(folder / "x.safetensors");
  *dataset.at = {};
  checkpoint.load(folder / "x.safetensors");
  EXPECT_EQ(dataset.at->pass, 2);
  EXPECT_EQ(dataset.at->element, 17);
}

TEST(Checkpoint, GoesOnWithTheSameRandomNumbers) {
  const Folder folder;
  const Model model;
  const td::io::Checkpoint checkpoint{{"model", model}};
  td::random::seed(5);
  (void)td::random::normal({3});
  checkpoint.save(folder / "x.safetensors");
  const td::Tensor first = td::random::normal({4});
  checkpoint.load(folder / "x.safetensors", {.random = false});
  const td::Tensor second = td::random::normal({4});
  EXPECT_FALSE(td::identical(first, second));
  checkpoint.load(folder / "x.safetensors");
  EXPECT_TRUE(td::identical(td::random::normal({4}), first));
  EXPECT_TRUE(td::identical(td::random::normal({4}), second));
  // Without it in the file the generator is left alone.
  checkpoint.save(folder / "x.safetensors", {.random = false});
  const td::Tensor state = td::random::state();
  checkpoint.load(folder / "x.safetensors");
  EXPECT_TRUE(td::identical(state, td::random::state()));
}

TEST(Checkpoint, SavesTiedVariablesOnce) {
  struct Tied {
    td::Variable table{td::zeros({5})};
    td::Variable again = table;
  };
  const Folder folder;
  const Tied tied;
  td::io::Checkpoint{{"model", tied}}.save(folder / "x.safetensors", {.random = false});
  EXPECT_EQ(names_in(folder / "x.safetensors"), std::vector<std::string>{"model/table"});
}

// Declares a slot for each Variable at its first update, as optimizers do.
struct Momentum {
  struct State {
    td::NamedVariables slots = {};
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  td::Variable iterations{td::constant(std::vector<int64_t>{0}, td::Shape{}), {.trainable = false}};

  template <class M>
  void build(const M& model) const {
    for (const auto& [name, variable] : td::nn::named_variables(model))
      state->slots.emplace_back(name, td::Variable(td::zeros(variable.shape())));
  }
  void tidemark_walk(const td::detail::VariablePath& path,
                     const td::detail::SeeVariable& see) const {
    see(path.field("iterations"), iterations);
    const td::detail::VariablePath slots = path.field("m");
    for (const auto& [name, variable] : state->slots) see(slots.field(name), variable);
  }
};

TEST(Checkpoint, FindsWhatIsDeclaredAfterItWasMade) {
  const Folder folder;
  const Model model;
  const Momentum optimizer;
  const td::io::Checkpoint checkpoint{{"model", model}, {"optimizer", optimizer}};
  optimizer.build(model);
  optimizer.state->slots[1].second.assign(td::full({4}, 9.0F));
  checkpoint.save(folder / "x.safetensors", {.random = false});
  EXPECT_EQ(names_in(folder / "x.safetensors").size(), 11U);
}

TEST(Checkpoint, LetsAFreshOptimizerDeclareTheStateThatTheFileHas) {
  const Folder folder;
  const Model model;
  const Momentum optimizer;
  optimizer.build(model);
  optimizer.state->slots[1].second.assign(td::full({4}, 9.0F));
  td::io::Checkpoint{{"model", model}, {"optimizer", optimizer}}.save(folder / "x.safetensors");
  const Model other;
  const Momentum fresh;
  td::io::Checkpoint{{"model", other}, {"optimizer", fresh}}.load(folder / "x.safetensors");
  ASSERT_EQ(fresh.state->slots.size(), 5U);
  EXPECT_EQ(fresh.state->slots[1].first, "blocks/0/bias");
  EXPECT_TRUE(td::identical(fresh.state->slots[1].second.value(), td::full({4}, 9.0F)));
}

TEST(Checkpoint, GivesAModelThatWasNeverCalledTheShapesOfTheFile) {
  const Folder folder;
  const td::nn::Dense dense(5), unbuilt(5);
  (void)dense(td::ones({2, 3}));
  td::io::Checkpoint{{"dense", dense}}.save(folder / "x.safetensors");
  td::io::Checkpoint{{"dense", unbuilt}}.load(folder / "x.safetensors");
  EXPECT_TRUE(td::identical(dense(td::ones({2, 3})), unbuilt(td::ones({2, 3}))));
}

// A model, its optimizer, its batches and its dropout, trained for some steps.
struct Training {
  td::nn::Sequential model{td::nn::Dense(8, {.activation = td::tanh}), td::nn::Dropout(0.5),
                           td::nn::Dense(1)};
  td::nn::Adam optimizer{{.learning_rate = 0.01}};
  td::data::Dataset<td::Tensor> batches =
      td::data::from_tensor_slices(td::reshape(td::arange(0, 60, 1, td::f32) / 60, {20, 3}))
          .shuffle({.buffer = 20, .seed = 3})
          .batch(4)
          .repeat();
  int64_t step = 0;

  td::io::Checkpoint checkpoint() {
    return {{"model", model}, {"optimizer", optimizer}, {"data", batches}, {"step", &step}};
  }
  // Up to a number of steps; the losses since `from`, before which the state is saved.
  std::vector<float> train(int64_t steps, int64_t from, const std::string& path) {
    const td::nn::Training on;
    std::vector<float> losses;
    for (const td::Tensor& x : batches) {
      td::GradientTape tape;
      const td::Tensor loss = td::mean(td::square(model(x) - td::sum(x, -1, td::keepdims)));
      if (step >= from) losses.push_back(loss.item<float>());
      optimizer.minimize(tape, loss, model);
      if (++step == from) checkpoint().save(path);
      if (step == steps) break;
    }
    return losses;
  }
};

TEST(Checkpoint, ATrainingThatIsResumedGoesOnBitForBit) {
  const Folder folder;
  td::random::seed(1);
  Training first;
  const std::vector<float> losses = first.train(13, 7, folder / "x.safetensors");
  ASSERT_EQ(losses.size(), 6U);
  // As in another process: nothing was called yet, and the generator is somewhere else.
  td::random::seed(99);
  Training second;
  second.checkpoint().load(folder / "x.safetensors");
  EXPECT_EQ(second.step, 7);
  EXPECT_EQ(second.train(13, 7, ""), losses);
}

TEST(Checkpoint, TakesNoBytesToSaveNorToLoadInPlace) {
  const Folder folder;
  const td::Variable v(td::random::normal({64, 1024, 32})), w(td::random::normal({1000}));
  const td::io::Checkpoint checkpoint{{"v", v}, {"w", w}};
  const td::Tensor kept = td::identity(v.value());
  const int64_t before = td::memory::current().count;
  td::memory::reset_peak();
  checkpoint.save(folder / "x.safetensors", {.random = false});
  EXPECT_EQ(td::memory::peak().count, before);
  v.assign_sub(1);
  td::memory::reset_peak();
  checkpoint.load(folder / "x.safetensors");
  EXPECT_EQ(td::memory::peak().count, before);
  EXPECT_EQ(td::memory::current().count, before);
  EXPECT_TRUE(td::identical(v.value(), kept));
}

TEST(Checkpoint, TakesItsOwnSizeToLoadVariablesWithoutBytes) {
  const Folder folder;
  const auto zeros = [](const td::Shape& shape, td::DType dtype) {
    return td::zeros(shape, dtype);
  };
  {
    const td::Variable v(td::random::normal({64, 1024})), w(td::random::normal({1000}));
    td::io::Checkpoint{{"v", v}, {"w", w}}.save(folder / "x.safetensors", {.random = false});
  }
  const td::Variable v(td::Shape{64, 1024}, zeros), w(td::Shape{1000}, zeros);
  const int64_t before = td::memory::current().count;
  td::memory::reset_peak();
  td::io::Checkpoint{{"v", v}, {"w", w}}.load(folder / "x.safetensors");
  const int64_t own = 64 * 1024 * 4 + granted_bytes(4000);
  EXPECT_EQ(td::memory::peak().count, before + own);
  EXPECT_EQ(td::memory::of(td::ByteClass::variables).count >= own, true);
}

// Resident bytes of the process: now, and the most there were.
int64_t status_kib(const std::string& row) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(row)) return std::stoll(line.substr(row.size()));
  return -1;
}

TEST(Checkpoint, KeepsOnlyAPieceOfTheFileInMemory) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer has four bytes of its own for each that is read";
#endif
  const Folder folder;
  constexpr int64_t kBytes = 64 << 20;
  const td::Variable v(td::full({kBytes / 4096, 1024}, 1.5F));
  const td::io::Checkpoint checkpoint{{"v", v}};
  checkpoint.save(folder / "x.safetensors");
  checkpoint.load(folder / "x.safetensors");
  if (!(std::ofstream("/proc/self/clear_refs") << 5 << std::flush))
    GTEST_SKIP() << "the system does not forget the most it has seen";
  const int64_t before = status_kib("VmRSS:");
  checkpoint.load(folder / "x.safetensors");
  // A piece, and what the system reads around it.
  EXPECT_LE((status_kib("VmHWM:") - before) * 1024, 8 << 20);
}

TEST(CheckpointErrors, ListWhatIsMissingAndWhatIsMore) {
  const Folder folder;
  const Model model;
  td::io::Checkpoint{{"model", model}}.save(folder / "x.safetensors");
  const Layer layer;
  const auto load = [&](td::io::RestoreOptions options) {
    return [&folder, &layer, options] {
      td::io::Checkpoint{{"layer", layer}}.load(folder / "x.safetensors", options);
    };
  };
  EXPECT_EQ(said(folder, load({})),
            "Checkpoint::load: x.safetensors does not match this checkpoint:\n"
            "  not in the file: layer/kernel, layer/bias\n"
            "  only in the file: model/blocks/0/bias, model/blocks/0/kernel, model/blocks/1/bias, "
            "model/blocks/1/kernel, model/scale\n"
            "  {.partial = true} restores only what is in both; {.rename = {{\"old\", \"new\"}}} "
            "maps names of the file");
  const td::io::RestoreReport restored =
      td::io::Checkpoint{{"layer", layer}}.load(folder / "x.safetensors", {.partial = true});
  EXPECT_EQ(restored.loaded, std::vector<std::string>{"random"});
  EXPECT_EQ(restored.missing, (std::vector<std::string>{"layer/kernel", "layer/bias"}));
  EXPECT_EQ(restored.unexpected.size(), 5U);
}

TEST(CheckpointErrors, ShowBothShapesAndChangeNothing) {
  const Folder folder;
  const Model model;
  fill(model, 1);
  td::io::Checkpoint{{"model", model}}.save(folder / "x.safetensors");
  Model other;
  other.blocks[1].kernel = td::Variable(td::zeros({3, 5}));
  other.blocks[1].bias = td::Variable(td::zeros({4}, td::f64));
  for (const bool partial : {false, true}) {
    const auto load = [&] {
      td::io::Checkpoint{{"model", other}}.load(folder / "x.safetensors", {.partial = partial});
    };
    EXPECT_EQ(said(folder, load),
              "Checkpoint::load: x.safetensors does not match this checkpoint:\n"
              "  model/blocks/1/kernel is f32[3, 5], the file has f32[3, 4]\n"
              "  model/blocks/1/bias is f64[4], the file has f32[4]\n"
              "  build the model as it was when it was saved");
  }
  EXPECT_TRUE(td::identical(other.blocks[0].kernel.value(), td::zeros({3, 4})));
  EXPECT_EQ(other.scale.value().item<float>(), 1);
}

TEST(CheckpointErrors, RefuseOneNameForTwo) {
  const Folder folder;
  const Model model;
  int64_t step = 0;
  const auto twice = [&] {
    td::io::Checkpoint{{"model", model}, {"model", Model()}}.save(folder / "x.safetensors");
  };
  EXPECT_EQ(said(folder, twice),
            "Checkpoint::save: x.safetensors cannot hold two tensors called "
            "\"model/blocks/0/kernel\"\n"
            "  give each entry a name of its own; \"random\" is the random generator's");
  const auto random = [&] { td::io::Checkpoint{{"random", &step}}.save(folder / "x.safetensors"); };
  EXPECT_EQ(said(folder, random).substr(0, 70),
            "Checkpoint::save: x.safetensors cannot hold two tensors called \"random");
}

TEST(CheckpointErrors, RefuseToSaveWhatHasNoShapeOrNoVariables) {
  const Folder folder;
  const td::nn::Dense dense(5);
  const auto unshaped = [&] {
    td::io::Checkpoint{{"dense", dense}}.save(folder / "x.safetensors");
  };
  EXPECT_EQ(said(folder, unshaped),
            "Checkpoint::save: x.safetensors cannot hold \"dense/kernel\", which has no shape yet\n"
            "  call the model once, or td::nn::build(model, td::spec({...})), before it is saved");
  const auto closure = [](const td::Tensor& x) { return x; };
  const auto nothing = [&] { td::io::Checkpoint{{"f", closure}}.save(folder / "x.safetensors"); };
  EXPECT_EQ(said(folder, nothing),
            "Checkpoint::save: x.safetensors would contain nothing of \"f\": it has no Variables\n"
            "  Variables captured by a closure are not found: give the layers that it uses");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.safetensors"));
}

TEST(Checkpoint, Renames) {
  const Folder folder;
  const Layer layer, other;
  layer.kernel.assign(td::full({3, 4}, 2.0F));
  td::io::Checkpoint{{"model", Model()}, {"encoder", layer}}.save(folder / "x.safetensors");
  const td::io::RestoreReport restored = td::io::Checkpoint{{"backbone", other}}.load(
      folder / "x.safetensors", {.partial = true, .rename = {{"encoder", "backbone"}}});
  EXPECT_TRUE(td::identical(other.kernel.value(), layer.kernel.value()));
  EXPECT_EQ(restored.missing.size(), 0U);
  const auto clash = [&] {
    td::io::Checkpoint{{"backbone", other}}.load(
        folder / "x.safetensors", {.rename = {{"encoder/kernel", "b"}, {"encoder/bias", "b"}}});
  };
  EXPECT_EQ(
      said(folder, clash),
      "Checkpoint::load: x.safetensors has \"encoder/bias\" and \"encoder/kernel\", which are "
      "both renamed to \"b\"\n"
      "  change {.rename = ...}");
}

TEST(Checkpoint, AFailedLoadForWantOfMemoryChangesNothing) {
  const Folder folder;
  const auto ones = [](const td::Shape& shape, td::DType dtype) { return td::ones(shape, dtype); };
  {
    const td::Variable a(td::zeros({1000})), b(td::zeros({1000000}));
    td::io::Checkpoint{{"a", a}, {"b", b}}.save(folder / "x.safetensors");
  }
  const td::Variable a(td::ones({1000})), b(td::Shape{1000000}, ones);
  td::memory::release();
  const td::Bytes limit = td::memory::limit();
  td::memory::set_limit(td::memory::current() + 1000000);
  EXPECT_THROW((td::io::Checkpoint{{"a", a}, {"b", b}}.load(folder / "x.safetensors")),
               td::OutOfMemory);
  td::memory::set_limit(limit);
  EXPECT_TRUE(td::identical(a.value(), td::ones({1000})));
  EXPECT_TRUE(td::identical(b.value(), td::ones({1000000})));
}

// Bytes reach the file through this; a test may do something first, or say that the disk fails.
std::function<bool()> before_io;  // False: it fails.
class WatchedIo {
 public:
  explicit WatchedIo(std::function<bool()> before) : real_(io::system_calls()) {
    before_io = std::move(before);
    static io::SystemCalls real;
    real = real_;
    io::system_calls().write = [](int file, const void* from, size_t bytes) -> ssize_t {
      if (before_io()) return real.write(file, from, bytes);
      errno = EIO;
      return -1;
    };
    io::system_calls().read = [](int file, void* to, size_t bytes, off_t offset) -> ssize_t {
      if (before_io()) return real.read(file, to, bytes, offset);
      errno = EIO;
      return -1;
    };
  }
  ~WatchedIo() { io::system_calls() = real_; }
  WatchedIo(const WatchedIo&) = delete;
  WatchedIo& operator=(const WatchedIo&) = delete;

 private:
  io::SystemCalls real_;
};

// A step comes before every write: the file still has the Variables of one moment, and the
// generator of the same.
TEST(Checkpoint, IsOfOneMomentThoughOthersAssignMeanwhile) {
  const Folder folder;
  const Model model;
  const td::Variable draw(td::zeros({}));
  const td::Variable last(td::zeros({}));
  const auto step = td::function([model, draw, last] {
    draw.assign(td::random::uniform({}));
    for (const auto& [name, variable] : td::nn::named_variables(model)) variable.assign_add(1);
    last.assign_add(1);
  });
  const td::io::Checkpoint checkpoint{{"model", model}, {"draw", draw}, {"last", last}};
  for (int i = 0; i < 3; ++i) step();
  {
    const WatchedIo watched([&] {
      step();
      return true;
    });
    checkpoint.save(folder / "x.safetensors");
  }
  checkpoint.load(folder / "x.safetensors");
  const float steps = last.value().item<float>();
  for (const auto& [name, variable] : td::nn::named_variables(model)) {
    const float first = name == "scale" ? 1.0F : 0.0F;
    EXPECT_TRUE(td::identical(variable.value(), td::full(variable.shape(), first + steps))) << name;
  }
  // The generator is where it was then.
  step();
  const td::Tensor next = draw.value();
  checkpoint.load(folder / "x.safetensors");
  step();
  EXPECT_TRUE(td::identical(draw.value(), next));
}

TEST(Checkpoint, IsOfOneMomentBesideThreads) {
  const Folder folder;
  const td::Variable a(td::zeros({2000})), b(td::zeros({2000})), c(td::zeros({}));
  const auto step = td::function([a, b, c] {
    a.assign_add(1);
    c.assign_add(td::random::uniform({}));
    b.assign_add(1);
  });
  step();
  const td::io::Checkpoint checkpoint{{"b", b}, {"a", a}, {"c", c}};
  std::atomic<bool> stop{false};
  std::thread stepping([&] {
    while (!stop) step();
  });
  for (int i = 0; i < 30; ++i) {
    checkpoint.save(folder / "x.safetensors");
    const td::io::Safetensors saved = td::io::load_safetensors(folder / "x.safetensors");
    EXPECT_TRUE(td::identical(saved.at("a"), saved.at("b")));
  }
  // Loading beside them is of one moment too.
  for (int i = 0; i < 30; ++i) {
    checkpoint.load(folder / "x.safetensors");
    const auto both = td::function([a, b] { return std::pair{td::identity(a), td::identity(b)}; });
    const auto [x, y] = both();
    EXPECT_TRUE(td::identical(x, y));
  }
  stop = true;
  stepping.join();
}

// All that a checkpoint can hold, and what a load may do to it.
struct Everything {
  Model model;
  td::nn::Dense unbuilt{4};
  td::nn::Adam optimizer{{.learning_rate = 0.5}};
  td::data::Dataset<td::Tensor> rows = td::data::range(10);
  int64_t step = 3;
  std::vector<int> order = {1, 2};
  td::Tensor mean = td::zeros({2});
  td::Variable held{td::zeros({500})};
  td::Tensor snapshot = held.value();

  td::io::Checkpoint checkpoint() {
    return {{"model", model}, {"dense", unbuilt}, {"optimizer", optimizer}, {"rows", rows},
            {"step", &step},  {"order", &order},  {"mean", &mean},          {"held", held}};
  }
  std::string text() const {
    std::string all;
    for (const auto& [name, variable] : td::nn::named_variables(model))
      all += cat(name, " ", variable.value(), "\n");
    for (const auto& [name, variable] : td::nn::named_variables(unbuilt))
      all += cat(name, " ", variable, "\n");
    for (const auto& [name, variable] : td::nn::named_variables(optimizer))
      all += cat(name, " ", variable, "\n");
    all += cat(rows.position().pass, " ", rows.position().element, " ", step, " ", order.size(),
               mean, held.value(), td::random::state());
    return all;
  }
};

void save_everything(const std::string& path) {
  Everything other;
  fill(other.model, 7);
  {
    td::GradientTape tape;
    other.optimizer.minimize(tape, td::sum(other.unbuilt(td::ones({1, 3}))), other.unbuilt);
  }
  auto walk = other.rows.begin();
  ++walk;
  other.step = 9;
  other.order = {3, 2, 1};
  other.mean = td::ones({2});
  other.held.assign(td::ones({500}));
  (void)td::random::normal({1});
  other.checkpoint().save(path);
}

TEST(Checkpoint, AFailedReadChangesNothing) {
  const Folder folder;
  save_everything(folder / "x.safetensors");
  for (int fails = 1;; ++fails) {
    td::random::seed(4);
    Everything all;
    const std::string before = all.text();
    int reads = 0;
    std::string text;
    {
      const WatchedIo watched([&] { return ++reads != fails; });
      text = error_of<td::DeviceError>([&] { all.checkpoint().load(folder / "x.safetensors"); });
    }
    if (reads < fails) {
      EXPECT_GT(fails, 20);
      EXPECT_EQ(text, "no error");
      EXPECT_NE(all.text(), before);
      return;
    }
    EXPECT_TRUE(without(folder, text).starts_with("Checkpoint::load: x.safetensors cannot be read"))
        << text;
    EXPECT_EQ(all.text(), before) << "read " << fails;
  }
}

// A place of the user's that cannot be restored: what was restored before it is put back.
TEST(Checkpoint, ARestoreThatFailsChangesNothing) {
  struct Position {
    int64_t element = 0;
  };
  struct Place {
    std::shared_ptr<Position> at = std::make_shared<Position>();
    bool fails = false;
    Position position() const { return *at; }
    void restore(Position position) const {
      if (fails) throw UserError("no such place");
      *at = position;
    }
  };
  const Folder folder;
  Place first, second;
  td::Variable v(td::zeros({3}));
  int64_t step = 0;
  const auto checkpoint = [&] {
    return td::io::Checkpoint{{"v", v}, {"a", first}, {"step", &step}, {"b", second}};
  };
  first.at->element = second.at->element = 5;
  checkpoint().save(folder / "x.safetensors");
  first.at->element = second.at->element = 6;
  v.assign(td::ones({3}));
  step = 1;
  second.fails = true;
  EXPECT_EQ(said(folder, [&] { checkpoint().load(folder / "x.safetensors"); }), "no such place");
  EXPECT_EQ(first.at->element, 6);
  EXPECT_EQ(step, 1);
  EXPECT_TRUE(td::identical(v.value(), td::ones({3})));
}

// A child saves one version after another and is killed in the middle, at other moments each time.
// Whatever is there then is one of the versions, whole.
TEST(Checkpoint, IsAlwaysOneOfTheVersionsWhenItsProcessIsKilled) {
  const Folder folder;
  const auto version = [&](float number) {
    td::io::save_safetensors(folder / "x.safetensors",
                             {{"a", td::full({50000}, number)}, {"b", td::full({30000}, number)}});
  };
  version(0);
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 1;; ++i) version(static_cast<float>(i));
    }
    ::usleep(static_cast<useconds_t>(4000 + 3700 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const td::io::Safetensors saved = td::io::load_safetensors(folder / "x.safetensors");
    const float number = saved.at("a")[0].item<float>();
    EXPECT_TRUE(td::identical(saved.at("a"), td::full({50000}, number)));
    EXPECT_TRUE(td::identical(saved.at("b"), td::full({30000}, number)));
  }
  // At most the one temporary is left, and the next save takes it.
  version(1);
  int files = 0;
  for (const auto& each : std::filesystem::directory_iterator(folder.path()))
    files += each.exists();
  EXPECT_EQ(files, 1);
}

}  // namespace
}  // namespace tidemark
