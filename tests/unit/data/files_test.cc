#include "tidemark/data/files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <span>

#include "tests/unit/data/png.h"
#include "tests/unit/error_of.h"
#include "tidemark/io/crc32.h"
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
  const std::string odd = written("d.csv", "a\n\x01" + std::string(59, 'x') + "\u00e9" + "y\n");
  EXPECT_EQ(said([&] { data::load_csv(odd); }),
            "load_csv: " + odd + " has \"?" + std::string(59, 'x') +
                "...\" in line 2, column \"a\", which is no number" + at +
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

TEST_F(DataFiles, AColumnHasOnlyValuesOfItsType) {
  const std::string path = written("g.csv", "a,b\n1,\"x\ny\"\n300,3.5\n+7,\n");
  const auto read = [&](const data::CSVOptions& options) {
    return said([&] { data::load_csv(path, options); });
  };
  const std::string leave = at + "leave the column out: {.columns = {...}}";
  EXPECT_EQ(read({.columns = {"a"}, .dtypes = {{"a", u8}}}),
            "load_csv: " + path + " has \"300\" in line 4, column \"a\", which is no u8" + leave);
  const std::string numbers = written("h.csv", "a,b\n1,2\n3,3.5\n5,\n7,NA\n");
  EXPECT_EQ(
      said([&] { data::load_csv(numbers, {.dtypes = {{"b", i32}}}); }),
      "load_csv: " + numbers + " has \"3.5\" in line 3, column \"b\", which is no i32" + leave);
  EXPECT_EQ(said([&] { data::load_csv(numbers, {.dtypes = {{"c", i32}}}); }),
            "load_csv: " + numbers + " has no column \"c\"" + at +
                "name columns of the file's first line");
  const std::string whole = written("i.csv", "a,b\n1,2\n3,\n5,NA\n");
  EXPECT_EQ(said([&] { data::load_csv(whole, {.dtypes = {{"b", i32}}}); }),
            "load_csv: " + whole + " has no value in line 3, column \"b\", which is i32" + at +
                "give a value for missing ones: {.missing = {{\"b\", 0}}}");
  const data::Table table =
      data::load_csv(whole, {.dtypes = {{"b", i32}}, .missing = {{"b", -1}}, .na = "NA"});
  EXPECT_TRUE(identical(table.at("b"), constant({2, -1, -1})));
  EXPECT_TRUE(identical(data::load_csv(whole, {.dtypes = {{"a", f64}}, .na = "NA"}).at("a"),
                        constant({1, 3, 5}, f64)));
}

TEST_F(DataFiles, AColumnOfAnyIntegerHoldsItsWholeRange) {
  const std::string path =
      written("o.csv", "a,b,c\n-128,0,18446744073709551615\n127,65535,9223372036854775808\n");
  const data::Table table = data::load_csv(path, {.dtypes = {{"a", i8}, {"b", u16}, {"c", u64}}});
  EXPECT_EQ(table.at("a").to_vector<int>(), (std::vector<int>{-128, 127}));
  EXPECT_EQ(table.at("b").to_vector<int>(), (std::vector<int>{0, 65535}));
  EXPECT_EQ(table.at("c").to_vector<uint64_t>(),
            (std::vector<uint64_t>{UINT64_MAX, uint64_t{1} << 63}));
  const std::string over = written("p.csv", "a,b\n-129,-1\n");
  const std::string leave = at + "leave the column out: {.columns = {...}}";
  EXPECT_EQ(said([&] { data::load_csv(over, {.dtypes = {{"a", i8}}}); }),
            "load_csv: " + over + " has \"-129\" in line 2, column \"a\", which is no i8" + leave);
  EXPECT_EQ(said([&] { data::load_csv(over, {.dtypes = {{"b", u64}}}); }),
            "load_csv: " + over + " has \"-1\" in line 2, column \"b\", which is no u64" + leave);
}

TEST_F(DataFiles, ATableThatIsNoneIsRefused) {
  const std::string open = written("j.csv", "a,b\n1,\"2\n3,4\n");
  EXPECT_EQ(said([&] { data::load_csv(open); }),
            "load_csv: " + open + " has a double quote in line 2 that is not closed" + at +
                "close it, and write quotes inside of it twice");
  const std::string twice = written("k.csv", "a,a\n1,2\n");
  EXPECT_EQ(said([&] { data::load_csv(twice); }),
            "load_csv: " + twice + " has two columns \"a\"" + at +
                "rename one, or read without names: {.header = false}");
  const std::string marked = written("l.csv",
                                     "\xef\xbb\xbf"
                                     "a\n1\n");
  EXPECT_EQ(data::load_csv(marked).names, std::vector<std::string>{"a"});
}

TEST_F(DataFiles, JoinedGzipFilesAreOne) {
  const auto bytes_of = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  const std::string both =
      bytes_of(compressed("m.csv", "a\n1\n")) + bytes_of(compressed("n.csv", "2\n"));
  EXPECT_TRUE(identical(data::load_csv(written("both.gz", both)).at("a"), constant({1, 2}, i64)));
  const std::string more = written("more.gz", both + "x");
  EXPECT_EQ(said([&] { data::load_csv(more); }), cat("load_csv: ", more, ", byte ", both.size(),
                                                     ": the gzip file goes on with something else",
                                                     at, "the file is damaged: fetch it again"));
}

std::string text_of(const Tensor& line) {
  std::string text;
  for (const int letter : line.to_vector<int>()) text += static_cast<char>(letter);
  return text;
}

TEST_F(DataFiles, LinesAreViewsOfTheFile) {
  const std::string text = "one\r\n\ntwo words\nthree";
  for (const std::string& path : {written("a.txt", text), compressed("b.txt", text)}) {
    const auto lines = data::text_lines({path, written("empty.txt", "")});
    EXPECT_EQ(lines.count(), 4);
    const Bytes before = memory::current();
    std::vector<std::string> list;
    for (const Tensor& line : lines) {
      EXPECT_EQ(memory::current(), before);
      list.push_back(text_of(line));
    }
    EXPECT_EQ(list, (std::vector<std::string>{"one", "", "two words", "three"}));
    int count = 0;
    for (const Tensor& line : lines.shuffle({.seed = 1}).padded_batch(4)) {
      EXPECT_EQ(line.shape(), Shape({4, 9}));
      ++count;
    }
    EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(error_of([] { data::text_lines("/nowhere.txt"); }).find("text_lines: /nowhere.txt"),
            0U);
}

TEST_F(DataFiles, APngHasItsPixels) {
  if (!has_png()) GTEST_SKIP() << "libpng is not there";
  const std::string rows("\0\1\2\3\4\5\6\0\7\x08\x09\x0a\x0b\x0c", 14);
  const std::string file = png(2, 2, 8, 2, rows);
  const Tensor image = data::decode_png(as_tensor(file));
  EXPECT_EQ(image.shape(), Shape({2, 2, 3}));
  EXPECT_EQ(image.to_vector<int>(), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_TRUE(identical(data::load_image(written("a.png", file)), image));
  const Tensor four = data::decode_image(as_tensor(file), {.channels = 4});
  EXPECT_EQ((four[{0, 1}].to_vector<int>()), (std::vector<int>{4, 5, 6, 255}));
  const Tensor grey = data::decode_png(as_tensor(png(3, 1, 1, 0, std::string("\0\xa0", 2))));
  EXPECT_EQ(grey.to_vector<int>(), (std::vector<int>{255, 0, 255}));
  const Tensor deep = data::decode_png(as_tensor(png(1, 1, 16, 0, std::string("\0\x12\xff", 3))));
  EXPECT_EQ(deep.to_vector<int>(), std::vector<int>{0x12});
}

TEST_F(DataFiles, ImagesThatAreNoneAreRefused) {
  const Tensor text = as_tensor("text");
  EXPECT_EQ(
      error_of([&] { data::decode_png(text); }).find("decode_png: these bytes are no PNG file\n"),
      0U);
  EXPECT_EQ(error_of([&] {
              data::decode_jpeg(text);
            }).find("decode_jpeg: these bytes are no JPEG file\n"),
            0U);
  EXPECT_EQ(error_of([&] {
              data::decode_image(text);
            }).find("decode_image: these bytes are neither a PNG file nor a JPEG file\n"),
            0U);
  EXPECT_EQ(error_of([&] {
              data::decode_png(ones({2, 2}));
            }).find("decode_png: the bytes of a file are u8[n], these are f32[2, 2]\n"),
            0U);
  const std::string file = png(2, 2, 8, 0, std::string("\0\1\2\0\3\4", 6));
  EXPECT_EQ(said([&] { data::decode_png(as_tensor(file), {.channels = 5}); }),
            "decode_png: a PNG cannot be read with 5 channels" + at +
                "give 1, 2, 3 or 4, or 0 for those of the file");
  if (!has_png()) GTEST_SKIP() << "libpng is not there";
  EXPECT_EQ(said([&] { data::decode_png(as_tensor(file.substr(0, file.size() - 30))); }),
            "decode_png: libpng: the file is cut off" + at + "the file is damaged, or no PNG");
}

}  // namespace
}  // namespace tidemark
