#include "tidemark/data/files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "files_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}

class DataFiles : public testing::Test {
 protected:
  std::string written(const std::string& name, const std::string& content) {
    const std::string path = testing::TempDir() + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  // By the system's gzip.
  std::string compressed(const std::string& name, const std::string& content) {
    const std::string path = written(name, content);
    if (std::system(cat("gzip -kf ", path).c_str()) != 0) return "";
    return path + ".gz";
  }
  std::string at = "\n  at files_test.cc:\n  ";
};

TEST_F(DataFiles, ATableHasItsColumnsWithTheirTypes) {
  const std::string text =
      "area,rooms,\"the \"\"price\"\"\",new\r\n1.5,3,100,true\r\n,4,200,false\n-2e1, 5 "
      ",\"300\",True";
  for (const std::string& path : {written("a.csv", text), compressed("b.csv", text)}) {
    const data::Table table = data::load_csv(path, {.dtypes = {{"rooms", i32}, {"new", boolean}}});
    EXPECT_EQ(table.names, (std::vector<std::string>{"area", "rooms", "the \"price\"", "new"}));
    EXPECT_EQ(table.at("area").dtype(), f32);
    EXPECT_EQ(table.at("area")[0].item<double>(), 1.5);
    EXPECT_TRUE(std::isnan(table.at("area")[1].item<double>()));
    EXPECT_TRUE(identical(table.at("rooms"), constant({3, 4, 5})));
    EXPECT_TRUE(identical(table.at("the \"price\""), constant({100, 200, 300}, i64)));
    EXPECT_TRUE(identical(table.at("new"), constant({true, false, true})));
  }
  const data::Table two =
      data::load_csv(written("c.csv", "1;x;3\n4;y;6\n"),
                     {.header = false, .separator = ';', .columns = {"0", "2"}});
  EXPECT_TRUE(identical(two.at("2"), constant({3, 6}, i64)));
  EXPECT_EQ(two.size(), 2U);
}

TEST_F(DataFiles, ATableSaysWhereItIsWrong) {
  const std::string path = written("d.csv", "a,b\n1,2\n3,red\n");
  EXPECT_EQ(said([&] { data::load_csv(path); }),
            "load_csv: " + path + " has \"red\" in line 3, column \"b\", which is no number" + at +
                "leave the column out: {.columns = {...}}");
  EXPECT_EQ(
      said([&] { data::load_csv(path, {.columns = {"c"}}); }),
      "load_csv: " + path + " has no column \"c\"" + at + "name columns of the file's first line");
  const std::string ragged = written("e.csv", "a,b\n1,2,3\n");
  EXPECT_EQ(said([&] { data::load_csv(ragged); }),
            "load_csv: " + ragged + " has 3 fields in line 2, and 2 in its first" + at +
                "put fields with separators in double quotes");
  const std::string empty = written("f.csv", "");
  EXPECT_EQ(said([&] { data::load_csv(empty); }),
            "load_csv: " + empty + " is empty" + at + "give a file with at least a header");
}

TEST_F(DataFiles, IdxFilesHaveTheirShapesAndTypes) {
  const std::string images(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"
      "abcdef",
      22);
  for (const std::string& path : {written("images", images), compressed("zipped", images)}) {
    const Tensor x = data::load_idx(path);
    EXPECT_EQ(x.dtype(), u8);
    EXPECT_EQ(x.shape(), Shape({2, 1, 3}));
    EXPECT_EQ((x[{1, 0, 2}].item<int>()), 'f');
  }
  const std::string floats("\0\0\x0d\x01\0\0\0\x02\x3f\x80\0\0\xc0\0\0\0", 16);
  EXPECT_TRUE(identical(data::load_idx(written("floats", floats)), constant({1.0F, -2.0F})));
}

TEST_F(DataFiles, IdxFilesThatAreDamagedAreRefused) {
  const std::string other = written("other", "abcdefgh");
  EXPECT_EQ(said([&] { data::load_idx(other); }), "load_idx: " + other +
                                                      ", byte 0: this is no IDX file" + at +
                                                      "IDX files begin with two zero bytes");
  const std::string cut = written("cut", std::string("\0\0\x08\x01\0\0\0\x09"
                                                     "abc",
                                                     11));
  EXPECT_EQ(error_of([&] { data::load_idx(cut); }).substr(0, 80 + cut.size()).find("the file has"),
            cat("load_idx: ", cut, ", byte 8: ").size());
  std::ifstream zipped(compressed("whole", std::string(1000, 'x')), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(zipped)), {});
  bytes[bytes.size() - 7] ^= 1;
  EXPECT_NE(error_of([&] {
              data::load_idx(written("damaged.gz", bytes));
            }).find("the checksum does not match the content"),
            std::string::npos);
}

TEST_F(DataFiles, CifarHasImagesWithChannelsLast) {
  std::string bytes;
  for (int image = 0; image < 2; ++image) {
    bytes += static_cast<char>(7 + image);
    for (int channel = 0; channel < 3; ++channel)
      for (int pixel = 0; pixel < 1024; ++pixel)
        bytes += static_cast<char>(channel * 50 + pixel % 32 + image);
  }
  const auto [images, labels] = data::load_cifar(written("cifar", bytes));
  EXPECT_EQ(images.shape(), Shape({2, 32, 32, 3}));
  EXPECT_EQ(labels.to_vector<int>(), (std::vector<int>{7, 8}));
  EXPECT_EQ((images[{1, 3, 4}].to_vector<int>()), (std::vector<int>{5, 55, 105}));
  const std::string path = written("short", "abc");
  EXPECT_EQ(said([&] { data::load_cifar(path); }),
            "load_cifar: " + path + " has 3 bytes, not rows of 3073" + at +
                "each image has one label in CIFAR-10, two in CIFAR-100: load_cifar(path, 2)");
}

}  // namespace
}  // namespace tidemark
