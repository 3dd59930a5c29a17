// Errors, positions, caches in files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/error_of.h"
#include "tests/unit/io/files.h"
#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/data/dataset.h"
#include "tidemark/io/checkpoint.h"
#include "tidemark/io/npy.h"

namespace tidemark {
namespace {

using Numbers = std::vector<int64_t>;

Numbers numbers_of(const data::Dataset<Tensor>& dataset) {
  Numbers list;
  for (const Tensor& x : dataset)
    for (const int64_t number : x.to_vector<int64_t>()) list.push_back(number);
  return list;
}
data::Dataset<Tensor> rows(int64_t count) { return data::from_tensor_slices(arange(count)); }
Source line(unsigned number) { return Source::here("a.cc", number, "main"); }

int64_t files_in(const Folder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()),
                       std::filesystem::directory_iterator());
}

// ---- errors -------------------------------------------------------------------------------------

TEST(DataErrors, AFailingMapNamesTheElement) {
  for (const int parallel : {1, 2, 8}) {
    const auto bad = rows(40).map(
        [](const Tensor& x) {
          if (x.item<int>() == 17) throw UserError("too many", line(3), "take fewer");
          return x;
        },
        {.parallel = parallel}, line(2));
    Numbers before;
    const std::string text = error_of([&] {
      for (const Tensor& x : bad) before.push_back(x.item<int>());
    });
    EXPECT_EQ(text,
              "data: map failed at element 17: too many\n  at a.cc:3\n  take fewer\n  at a.cc:2");
    EXPECT_EQ(before.size(), 17u);
    EXPECT_EQ(error_of([&] { numbers_of(bad.batch(4).prefetch(2)); }), text);
  }
}

TEST(DataErrors, ACauseKeepsItsKindAndIsNested) {
  const auto bad = rows(2).map(
      [](const Tensor& x) -> Tensor {
        throw DeviceError("no paper");
        return x;
      },
      {}, line(2));
  EXPECT_EQ(error_of<DeviceError>([&] { numbers_of(bad); }),
            "data: map failed at element 0: no paper\n  at a.cc:2");
  const auto number = rows(2).map(
      [](const Tensor& x) -> Tensor {
        throw 5;
        return x;
      },
      {}, line(2));
  EXPECT_EQ(
      error_of([&] { numbers_of(number); }),
      "data: map failed at element 0: an exception that is not a std::exception\n  at a.cc:2");
  try {
    numbers_of(number);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THROW(std::rethrow_if_nested(error), int);
  }
}

TEST(DataErrors, ATensorThatHoldsNothingNamesTheElement) {
  const auto map =
      rows(4).map([](const Tensor& x) { return x.item<int>() == 2 ? Tensor() : x; }, {}, line(2));
  EXPECT_EQ(error_of([&] { numbers_of(map); }),
            "data: map failed at element 2: it returned an empty Tensor\n"
            "  return a Tensor that has a value: has_value() tells whether it does\n  at a.cc:2");
  const auto generator = data::from_generator(
      [i = 0]() mutable -> std::optional<Tensor> { return i++ == 1 ? Tensor() : ones({}); },
      line(3));
  EXPECT_EQ(error_of([&] { numbers_of(generator); }),
            "data: generator failed at element 1: it returned an empty Tensor\n"
            "  return a Tensor that has a value: has_value() tells whether it does\n  at a.cc:3");
}

TEST(DataErrors, AWrongOpNamesItsLine) {
  const auto bad =
      data::from_tensor_slices(ones({4, 3}))
          .map([](const Tensor& x) { return matmul(x, ones({2, 2}), {}, line(5)); }, {}, line(2));
  const std::string text = error_of([&] { numbers_of(bad); });
  EXPECT_TRUE(text.starts_with("data: map failed at element 0: matmul: ")) << text;
  EXPECT_NE(text.find("\n  at a.cc:5\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n  at a.cc:2")) << text;
}

TEST(DataErrors, FiltersAndGeneratorsNameTheElementToo) {
  const auto filter = rows(9).filter(
      [](const Tensor& x) {
        if (x.item<int>() == 3) throw std::runtime_error("no");
        return true;
      },
      line(4));
  EXPECT_EQ(error_of([&] { numbers_of(filter); }),
            "data: filter failed at element 3: no\n  at a.cc:4");
  const auto generator = data::from_generator(
      [i = 0]() mutable -> std::optional<Tensor> {
        if (i == 2) throw std::runtime_error("dry");
        return Tensor(i++);
      },
      line(4));
  EXPECT_EQ(error_of([&] { numbers_of(generator); }),
            "data: generator failed at element 2: dry\n  at a.cc:4");
}

TEST(DataErrors, SayWhatCannotBe) {
  EXPECT_EQ(error_of([] { data::from_tensor_slices(Tensor(3), line(1)); }),
            "from_tensor_slices: the tensor is i32[], a scalar, which has no rows\n"
            "  at a.cc:1\n  rows are slices of the first axis");
  EXPECT_EQ(
      error_of([] { data::from_tensor_slices(std::tuple{zeros({3, 2}), zeros({4})}, line(1)); }),
      "from_tensor_slices: different numbers of rows: [0] has 3, [1] has 4\n"
      "  at a.cc:1\n"
      "  rows are slices of the first axis; shorten the longer one: x[{td::Slice{.end = n}}]");
  EXPECT_EQ(error_of([] { data::from_tensor_slices(std::vector<Tensor>{}, line(1)); }),
            "from_tensor_slices: a structure without tensors has no rows\n  at a.cc:1");
  EXPECT_EQ(error_of([] { data::range(1, 5, 0, line(1)); }),
            "range: cannot go from 1 to 5 in steps of 0\n  at a.cc:1");
  EXPECT_EQ(error_of([] { data::range(INT64_MIN, INT64_MAX, 1, line(1)); }),
            "range: 18446744073709551615 numbers are more than can be counted\n  at a.cc:1");
  EXPECT_EQ(error_of([] { rows(3).batch(0, {}, line(1)); }),
            "batch: a batch cannot have 0 elements\n  at a.cc:1\n  give 1 or more");
  EXPECT_EQ(error_of([] { rows(3).take(-1, line(1)); }),
            "take: the number of elements cannot be -1\n  at a.cc:1\n  give 0 or more");
  EXPECT_EQ(error_of([] { rows(3).skip(-1, line(1)); }),
            "skip: the number of elements cannot be -1\n  at a.cc:1\n  give 0 or more");
  EXPECT_EQ(
      error_of([] { rows(3).repeat(-1, line(1)); }),
      "repeat: cannot repeat -1 times\n  at a.cc:1\n  give 0 or more, or no argument to repeat "
      "for ever");
  EXPECT_EQ(error_of([] { rows(3).prefetch(0, line(1)); }),
            "prefetch: cannot keep 0 elements ahead\n  at a.cc:1\n  give 1 or more");
  EXPECT_EQ(error_of([] { rows(3).shuffle({.buffer = -2}, line(1)); }),
            "shuffle: .buffer cannot be -2 elements\n  at a.cc:1\n"
            "  give 1 or more, or 0 to shuffle by index");
  EXPECT_EQ(error_of([] { rows(3).map(exp, {.parallel = 0}, line(1)); }),
            "map: .parallel = 0 is not a number of threads\n  at a.cc:1\n  give 1 to 1024");
  EXPECT_EQ(error_of([] { rows(3).repeat().cache(line(1)); }),
            "cache: the elements before it never end\n  at a.cc:1\n"
            "  put cache before repeat(), or limit the elements with take()");
}

TEST(DataErrors, AShuffleSaysWhoCannotBeReadByIndex) {
  const auto odd = rows(9).filter([](const Tensor& x) { return x % 2 == 1; }, line(4)).map(exp);
  EXPECT_EQ(
      error_of([&] { odd.shuffle({}, line(6)); }),
      "shuffle: filter (a.cc:4) cannot be read by index, so a shuffle after it needs a buffer\n"
      "  at a.cc:6\n"
      "  give the size of the buffer: .shuffle({.buffer = 1000}), or shuffle before that stage");
}

TEST(DataErrors, RowsOfABatchAreAlike) {
  const auto ragged = data::range(1, 4).map([](const Tensor& i) { return zeros({i.item<int>()}); });
  EXPECT_EQ(
      error_of([&] { numbers_of(ragged.batch(2, {}, line(1))); }),
      "data: elements of different types cannot be in one batch: row 0 is f32[1], row 1 is f32[2]\n"
      "  at a.cc:1\n  make them alike with map first, or remove the others with filter");
  const auto lists = data::range(1, 4).map([](const Tensor& i) {
    return std::vector<Tensor>(static_cast<size_t>(i.item<int>()), zeros({2}));
  });
  EXPECT_EQ(error_of([&] {
              for ([[maybe_unused]] const auto& x : lists.batch(2, {}, line(1))) continue;
            }),
            "data: elements of different structure cannot be in one batch: from row 0 to row 1, "
            "element: 1 item became 2 items\n"
            "  at a.cc:1\n  make them alike with map first, or remove the others with filter");
}

// ---- positions ----------------------------------------------------------------------------------

// Walks as far as `stop`, and goes on in a dataset made anew.
template <class Make>
void expect_resumes(Make make, int64_t passes, int64_t stop) {
  const data::Dataset<Tensor> whole = make(), first = make(), second = make();
  Numbers all, parts;
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (const Tensor& x : whole)
      for (const int64_t number : x.to_vector<int64_t>()) all.push_back(number);
  }
  data::Position at;
  for (int64_t pass = 0; pass < passes; ++pass) {
    int64_t given = 0;
    if (pass + 1 < passes || stop == 0) {
      if (pass + 1 < passes)
        for (const int64_t number : numbers_of(first)) parts.push_back(number);
      continue;
    }
    for (const Tensor& x : first) {
      for (const int64_t number : x.to_vector<int64_t>()) parts.push_back(number);
      at = first.position();
      if (++given == stop) break;
    }
    EXPECT_EQ(at, (data::Position{pass, given}));
    second.restore(at);
    EXPECT_EQ(second.position(), at);
    for (const int64_t number : numbers_of(second)) parts.push_back(number);
    // And from there pass by pass.
    EXPECT_EQ(numbers_of(second), numbers_of(whole));
  }
  EXPECT_EQ(parts, all);
}

TEST(DataPosition, IsWhereAnotherWalkGoesOn) {
  const auto add = [](const Tensor& x) { return x + 1; };
  expect_resumes([&] { return rows(10); }, 1, 4);
  expect_resumes([&] { return rows(40).shuffle({.seed = 3}).batch(4); }, 3, 5);
  expect_resumes([&] { return rows(40).shuffle({.buffer = 7, .seed = 3}).map(add).batch(4); }, 2,
                 3);
  expect_resumes([&] { return rows(40).shuffle().map(add, {.parallel = 3}).batch(3).prefetch(2); },
                 2, 4);
  expect_resumes([&] { return rows(8).shuffle().repeat(3).batch(5); }, 2, 3);
  expect_resumes([&] { return rows(8).shuffle().repeat().take(21); }, 2, 17);
  expect_resumes(
      [&] { return rows(20).skip(3).take(11).filter([](const Tensor& x) { return x % 3 != 0; }); },
      1, 3);
  expect_resumes(
      [&] {
        return data::zip(rows(9).shuffle(), data::range(7))
            .map([](const Tensor& a, const Tensor& b) { return a * 100 + b; });
      },
      2, 4);
  expect_resumes(
      [&] {
        return data::from_generator(
                   [i = 0]() mutable { return i < 9 ? std::optional(Tensor(i++)) : std::nullopt; })
            .batch(2);
      },
      1, 2);
  expect_resumes([&] { return rows(12).map(add).cache().shuffle().batch(4); }, 2, 2);
}

TEST(DataPosition, DoesNotMakeAgainWhatCanBePassedOver) {
  int made = 0;
  const auto counted = rows(100)
                           .map([&](const Tensor& x) {
                             ++made;
                             return x;
                           })
                           .batch(10);
  counted.restore({0, 8});
  EXPECT_EQ(numbers_of(counted).size(), 20u);
  EXPECT_EQ(made, 20);
}

TEST(DataPosition, AtTheEndOfAPassThereIsNothingLeftOfIt) {
  const auto ten = rows(10);
  numbers_of(ten);
  EXPECT_EQ(ten.position(), (data::Position{0, 10}));
  const auto again = rows(10);
  again.restore({0, 10});
  EXPECT_EQ(numbers_of(again), Numbers{});
  EXPECT_EQ(numbers_of(again).size(), 10u);
  EXPECT_EQ(error_of([&] { again.restore({2, 11}, line(3)); }),
            "data: there is no element 11 in pass 2 of 10 elements\n  at a.cc:3\n"
            "  restore a value of position(), on a dataset built in the same way");
}

TEST(DataPosition, IsKeptInACheckpoint) {
  const Folder folder;
  const auto make = [] { return rows(30).shuffle({.seed = 5}).batch(4).prefetch(2); };
  const auto whole = make(), first = make(), second = make();
  numbers_of(first);
  auto walk = first.begin();
  for (int i = 0; i < 3; ++i) ++walk;  // Four were given.
  io::Checkpoint({{"data", first}}).save(folder / "last.safetensors");
  io::Checkpoint({{"data", second}}).load(folder / "last.safetensors");
  EXPECT_EQ(second.position(), (data::Position{1, 4}));
  numbers_of(whole);
  const Numbers all = numbers_of(whole);
  EXPECT_EQ(numbers_of(second), Numbers(all.begin() + 16, all.end()));
}

TEST(DataPosition, IsWhatWasRestoredUntilAWalkBegins) {
  const auto ten = rows(10);
  EXPECT_EQ(ten.position(), (data::Position{0, 0}));
  ten.restore({1, 0});
  EXPECT_EQ(ten.position(), (data::Position{1, 0}));
  const auto walk = ten.begin();
  EXPECT_EQ(ten.position(), (data::Position{1, 1}));
  EXPECT_EQ(walk.position(), (data::Position{1, 1}));
}

TEST(DataPosition, AFailedElementNamesItsNumberInTheWholeWalk) {
  for (const int parallel : {1, 4}) {
    const auto bad = rows(20).map(
        [](const Tensor& x) -> Tensor {
          if (x.item<int>() == 12) throw std::runtime_error("no");
          return x;
        },
        {.parallel = parallel}, line(2));
    bad.restore({0, 10});
    EXPECT_EQ(error_of([&] { numbers_of(bad); }),
              "data: map failed at element 12: no\n  at a.cc:2");
  }
}

// ---- threads ------------------------------------------------------------------------------------

TEST(DataThreads, HaveTheModeOfTheWalk) {
  const auto modes =
      data::range(8).map([](const Tensor&) { return Tensor(nn::is_training()); }, {.parallel = 2});
  const auto ahead =
      data::range(8).map([](const Tensor&) { return Tensor(nn::is_training()); }).prefetch(2);
  EXPECT_EQ(numbers_of(modes), Numbers(8, 0));
  const nn::Training on;
  EXPECT_EQ(numbers_of(modes), Numbers(8, 1));
  EXPECT_EQ(numbers_of(ahead), Numbers(8, 1));
}

TEST(DataThreads, ElementsComeInAnyOrderWhereThatIsAllowed) {
  const auto any =
      rows(100).map([](const Tensor& x) { return x * 2; }, {.parallel = 4, .deterministic = false});
  Numbers all = numbers_of(any);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, numbers_of(rows(100).map([](const Tensor& x) { return x * 2; })));
}

// ---- caches and files ---------------------------------------------------------------------------

TEST(DataCache, MakesEachElementOnce) {
  int made = 0;
  const auto cached = rows(10)
                          .map([&](const Tensor& x) {
                            ++made;
                            return std::pair{x, x * 2};
                          })
                          .cache();
  const auto batches = cached.shuffle({.seed = 1}).batch(3);
  for (int walk = 0; walk < 3; ++walk)
    for (const auto& [x, y] : batches) EXPECT_TRUE(identical(x * 2, y));
  EXPECT_EQ(made, 10);
}

TEST(DataCache, IsAsItWasAfterAWalkThatGaveNothing) {
  int made = 0;
  bool fails = true;
  const auto cached = rows(10)
                          .map([&](const Tensor& x) {
                            ++made;
                            return x + 1;
                          })
                          .cache();
  const auto after = cached.map([&](const Tensor& x) {
    if (fails) throw std::runtime_error("no");
    return x;
  });
  const Bytes before = memory::current();
  EXPECT_THROW(after.begin(), UserError);
  EXPECT_EQ(memory::current(), before);
  EXPECT_EQ(after.position(), data::Position{});

  // Another walk reads it now.
  auto reading = cached.begin();
  EXPECT_THROW(after.begin(), UserError);
  EXPECT_EQ((++reading)->item<float>(), 2);
  fails = false;
  EXPECT_EQ(numbers_of(after), numbers_of(cached));
  EXPECT_EQ(made, 20);
}

TEST(DataCache, KeepsElementsOfAnyShape) {
  const auto ragged =
      data::range(20).map([](const Tensor& i) { return full({i.item<int>() / 6}, i); }).cache();
  for (int walk = 0; walk < 2; ++walk) {
    int64_t number = 0;
    for (const Tensor& x : ragged) {
      EXPECT_TRUE(identical(x, full({number / 6}, Tensor(number), i64)));
      ++number;
    }
  }
  EXPECT_EQ(numbers_of(rows(10).batch(4).cache()), numbers_of(rows(10)));
  const auto odd = rows(100).filter([](const Tensor& x) { return x % 2 == 1; }).cache().shuffle();
  EXPECT_EQ(numbers_of(odd).size(), 50u);
  EXPECT_EQ(odd.count(), 50);
}

TEST(DataCache, InAFileOutlivesTheProgram) {
  const Folder folder;
  const std::string path = folder / "all.cache";
  int made = 0;
  const auto make = [&] {
    return rows(100)
        .map([&](const Tensor& x) {
          ++made;
          return std::tuple{x, cast(full({3}, x), f64), x % 2 == 0};
        })
        .cache(path);
  };
  for (int walk = 0; walk < 2; ++walk) {
    int64_t number = 0;
    for (const auto& [x, wide, even] : make()) {
      EXPECT_EQ(x.item<int64_t>(), number);
      EXPECT_TRUE(identical(wide, full({3}, static_cast<double>(number), f64)));
      EXPECT_EQ(even.item<bool>(), number % 2 == 0);
      ++number;
    }
    EXPECT_EQ(number, 100);
    EXPECT_EQ(made, 100 + walk);  // The first tells what an element is.
  }
  for (const auto& [x, wide, even] : make().shuffle().batch(7))
    EXPECT_TRUE(identical(cast(x, f64), wide[{all, 0}]));
  EXPECT_EQ(files_in(folder), 1);
}

TEST(DataCache, AFileOfAnotherDatasetIsRefused) {
  const Folder folder;
  const std::string path = folder / "all.cache";
  numbers_of(rows(10).cache(path));
  EXPECT_EQ(error_of([&] { numbers_of(rows(11).cache(path, line(3))); }),
            "cache: " + path +
                " holds 10 elements, this dataset gives 11\n  at a.cc:3\n"
                "  delete it if the dataset has changed, or give another path");
  EXPECT_EQ(error_of([&] { numbers_of(data::range(10).cache(path, line(3))); }),
            "cache: " + path +
                " holds elements i32[], this dataset gives i64[]\n  at a.cc:3\n"
                "  delete it if the dataset has changed, or give another path");
  write_file(folder / "letter", "Dear reader, this is no cache.");
  EXPECT_EQ(error_of([&] { numbers_of(rows(10).cache(folder / "letter", line(3))); }),
            "cache: " + folder / "letter" +
                " exists and is not a cache of a dataset\n  at a.cc:3\n"
                "  give another path");
  write_file(folder / "damaged",
             std::string("tidemark cache 1\ni3\0\xff[]\n", 23) + std::string(105, '\0'));
  EXPECT_EQ(error_of([&] { numbers_of(rows(10).cache(folder / "damaged", line(3))); }),
            "cache: " + folder / "damaged" +
                " is a damaged cache of a dataset\n  at a.cc:3\n"
                "  delete it; it will be written again");
}

TEST(DataCache, AFileIsWrittenWholeOrNotAtAll) {
  const Folder folder;
  const std::string path = folder / "all.cache";
  const auto failing = rows(10)
                           .map([](const Tensor& x) -> Tensor {
                             if (x.item<int>() == 7) throw std::runtime_error("no");
                             return x;
                           })
                           .cache(path);
  EXPECT_THROW(numbers_of(failing), UserError);
  EXPECT_EQ(files_in(folder), 0);
  const auto ragged = rows(10).batch(4).cache(path, line(3));
  EXPECT_EQ(error_of([&] { numbers_of(ragged); }),
            "cache: elements of different types cannot be in one file: element 0 is i32[4], "
            "element 2 is i32[2]\n"
            "  at a.cc:3\n  make them alike with map first, or cache before batch");
  EXPECT_EQ(files_in(folder), 0);
  EXPECT_EQ(numbers_of(rows(10).cache(path)).size(), 10u);
}

TEST(DataFiles, RowsOfNpyFilesAreMapped) {
  const Folder folder;
  const Tensor x = reshape(arange(60), {20, 3});
  io::save_npy(folder / "x.npy", x);
  const auto from_file = data::from_npy(folder / "x.npy");
  int64_t row = 0;
  for (const Tensor& each : from_file) EXPECT_TRUE(identical(each, x[row++]));
  EXPECT_EQ(row, 20);
  const auto order = [](const data::Dataset<Tensor>& d) {
    return numbers_of(d.shuffle({.seed = 9}).batch(6));
  };
  EXPECT_EQ(order(from_file), order(data::from_tensor_slices(x)));
}

}  // namespace
}  // namespace tidemark
