// Allocations that fail while datasets are made and walked, on the thread that walks and on theirs.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>

#include "tests/faults/injector.h"
#include "tests/unit/data/png.h"
#include "tests/unit/io/files.h"

namespace td = tidemark;

namespace tidemark::testing {
namespace {

using Rows = td::data::Dataset<td::Tensor>;

std::string walked(const Rows& rows) {
  std::string all;
  for (const td::Tensor& row : rows) all += bits(row);
  return all;
}
template <class... Parts>
std::string walked(const td::data::Dataset<std::tuple<Parts...>>& rows) {
  std::string all;
  for (const auto& row : rows)
    std::apply([&](const auto&... parts) { ((all += bits(parts)), ...); }, row);
  return all;
}

class DataFaults : public ::testing::Test {
 protected:
  DataFaults() { td::io::save_npy(folder_ / "rows.npy", x_); }
  ~DataFaults() override { std::cout << text(counts_) << '\n'; }

  // Makes the dataset and walks it twice, and walks one that was there already: the position of
  // that one is as it was where its walk could not begin.
  template <class Make>
  void expect_walk_survives(const std::string& name, const Make& make) {
    counts_ += expect_survives({.name = name,
                                .prepare = [&] { clear(); },
                                .act =
                                    [&] {
                                      const auto rows = make();
                                      return walked(rows) + walked(rows);
                                    },
                                .state = [] { return generator_state(); }});
    std::optional<decltype(make())> rows;
    const auto prepare = [&] {
      clear();
      rows.emplace(make());
    };
    const auto begin = [&] {
      {
        auto walk = rows->begin();
      }
      const td::data::Position at = rows->position();
      rows.reset();  // And what it keeps.
      return cat(at.pass, " ", at.element);
    };
    const auto position = [&] {
      return rows ? cat(rows->position().pass, " ", rows->position().element) : "begun";
    };
    counts_ += expect_survives(
        {.name = name + ", begun", .prepare = prepare, .act = begin, .state = position});
    counts_ += expect_survives(
        {.name = name + ", planned", .act = [&] { return make().plan().to_text(); }});
  }
  void write(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  void clear() { std::filesystem::remove(folder_ / "cache"); }

  Folder folder_;
  td::Tensor x_ = td::reshape(td::arange(0, 96, 1, td::f32), {24, 4});
  FaultCounts counts_;
};

TEST_F(DataFaults, Sources) {
  expect_walk_survives("from_tensor_slices", [&] { return td::data::from_tensor_slices(x_); });
  expect_walk_survives("from_npy", [&] { return td::data::from_npy(folder_ / "rows.npy"); });
  write("lines.txt", "one\ntwo and more\n\nfour\n");
  expect_walk_survives("text_lines", [&] { return td::data::text_lines(folder_ / "lines.txt"); });
  expect_walk_survives("range", [] { return td::data::range(0, 20, 3); });
  expect_walk_survives("from_generator", [] {
    return td::data::from_generator([i = 0]() mutable -> std::optional<td::Tensor> {
      if (++i > 5) return std::nullopt;
      return td::full({3}, static_cast<float>(i));
    });
  });
}

TEST_F(DataFaults, Files) {
  write("rows.csv", "a,b\n1,2.5\n-3,\n7,\"8\"\n");
  const auto csv = [&] {
    const td::data::Table table = td::data::load_csv(folder_ / "rows.csv");
    return bits(table.at("a")) + bits(table.at("b"));
  };
  counts_ += expect_survives({.name = "load_csv", .act = csv});
  write("rows.idx", std::string_view("\0\0\x08\x02\0\0\0\x02\0\0\0\x03\1\2\3\4\5\6", 18));
  counts_ += expect_survives(
      {.name = "load_idx", .act = [&] { return bits(td::data::load_idx(folder_ / "rows.idx")); }});
  write("batch.bin", std::string(2 * 3073, '\5'));
  const auto cifar = [&] {
    const td::data::CifarBatch batch = td::data::load_cifar(folder_ / "batch.bin");
    return bits(batch.images) + bits(batch.labels);
  };
  counts_ += expect_survives({.name = "load_cifar", .act = cifar});
}

TEST_F(DataFaults, Images) {
  if (!has_png()) GTEST_SKIP() << "libpng is not there";
  write("a.png", png(2, 2, 8, 2, std::string("\0\1\2\3\4\5\6\0\7\x08\x09\x0a\x0b\x0c", 14)));
  counts_ += expect_survives(
      {.name = "load_image", .act = [&] { return bits(td::data::load_image(folder_ / "a.png")); }});
}

TEST_F(DataFaults, Stages) {
  const auto rows = [&] { return td::data::from_tensor_slices(x_); };
  const auto more = [](const td::Tensor& row) { return row + 1; };
  expect_walk_survives("map", [&] { return rows().map(more); });
  expect_walk_survives("filter", [&] {
    return rows().filter([](const td::Tensor& row) { return row[0].item<float>() < 50; });
  });
  expect_walk_survives("shuffle", [&] { return rows().shuffle({.seed = 3}); });
  expect_walk_survives("shuffle with a buffer", [&] {
    return rows().map(more).filter([](const td::Tensor&) { return true; }).shuffle({.buffer = 5});
  });
  expect_walk_survives("batch", [&] { return rows().batch(5); });
  expect_walk_survives("batch of a map", [&] { return rows().map(more).batch(5); });
  const auto shorter = [](const td::Tensor& row) {
    return row[{td::Slice{.end = static_cast<int64_t>(row[0].item<float>()) % 3 + 1}}];
  };
  expect_walk_survives("padded_batch", [&] { return rows().map(shorter).padded_batch(5); });
  expect_walk_survives("bucket_by_length", [&] {
    return rows().map(shorter).bucket_by_length(
        [](const td::Tensor& row) { return int64_t{row.shape()[0]}; }, {{2}, {3}});
  });
  expect_walk_survives("window", [&] { return rows().map(more).window(3, {.shift = 2}); });
  expect_walk_survives("shard", [&] { return rows().map(more).shard(3, 1); });
  expect_walk_survives("interleave", [&] {
    return rows().take(3).interleave(
        [](const td::Tensor& row) { return td::data::from_tensor_slices(row); }, {.cycle = 2});
  });
  expect_walk_survives("sample_from", [&] {
    return td::data::sample_from(std::vector{rows(), rows()}, {.weights = {1, 2}});
  });
  expect_walk_survives("sample", [&] {
    return rows()
        .sample({.weights = std::vector<double>(static_cast<size_t>(*rows().count()), 1)})
        .batch(3);
  });
  expect_walk_survives("repeat", [&] { return rows().repeat(2); });
  expect_walk_survives("take and skip", [&] { return rows().skip(3).take(7); });
  expect_walk_survives("zip", [&] { return td::data::zip(rows(), rows().map(more)); });
  expect_walk_survives("cache", [&] { return rows().map(more).cache(); });
  expect_walk_survives("cache in a file",
                       [&] { return rows().map(more).cache(folder_ / "cache"); });
  expect_walk_survives("within", [&] { return rows().batch(5).within(td::Bytes(1 << 20)); });
}

TEST_F(DataFaults, StagesWithThreads) {
  const auto rows = [&] { return td::data::from_tensor_slices(x_); };
  const auto more = [](const td::Tensor& row) { return row + 1; };
  expect_walk_survives("parallel map", [&] { return rows().map(more, {.parallel = 2}); });
  expect_walk_survives("prefetch", [&] { return rows().prefetch(3); });
  expect_walk_survives("all", [&] {
    return rows().shuffle({.seed = 1}).map(more, {.parallel = 2}).batch(4).prefetch(2);
  });
}

}  // namespace
}  // namespace tidemark::testing
