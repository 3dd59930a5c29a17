// What the safetensors package itself writes and reads is compared in other_programs.py.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/error_of.h"
#include "tests/unit/io/files.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace tidemark {
namespace {

std::string file_of(const std::string& json, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return bytes + json + data;
}

std::string said(const std::string& bytes) {
  const Folder folder;
  write_file(folder / "x.safetensors", bytes);
  std::string text =
      without(folder, error_of([&] { td::io::load_safetensors(folder / "x.safetensors"); }));
  const size_t line = text.find("\n  at safetensors_test.cc:");
  if (line != std::string::npos) text.erase(line, text.find('\n', line + 1) - line);
  return text;
}

TEST(Safetensors, KeepsTensorsAndMetadata) {
  const Folder folder;
  std::map<std::string, td::Tensor> tensors = {{"a \"b\" é", td::arange(3)},
                                               {"view", td::transpose(td::random::normal({3, 4}))}};
  for (const td::DType dtype : {td::f16, td::bf16, td::f32, td::f64, td::i8, td::i16, td::i32,
                                td::i64, td::u8, td::u16, td::u32, td::u64, td::boolean})
    for (const td::Shape& shape : {td::Shape{}, td::Shape{0}, td::Shape{3}, td::Shape{2, 3, 1}})
      tensors[cat(dtype, shape)] =
          td::cast(td::reshape(td::arange(shape.size()) % 2, shape), dtype);
  td::io::save_safetensors(folder / "x", tensors, {.metadata = {{"k", "v\n"}, {"", "1"}}});
  for (const bool copy : {false, true}) {
    const td::io::Safetensors found = td::io::load_safetensors(folder / "x", {.copy = copy});
    EXPECT_EQ(found.metadata, (std::map<std::string, std::string>{{"k", "v\n"}, {"", "1"}}));
    ASSERT_EQ(found.size(), tensors.size());
    for (const auto& [name, tensor] : tensors)
      EXPECT_TRUE(td::identical(found.at(name), tensor)) << name;
  }
}

TEST(Safetensors, IsTheBytesOfTheFormat) {
  const Folder folder;
  td::io::save_safetensors(folder / "x",
                           {{"b", td::constant({1, 0}, td::u8)}, {"a", td::constant({{1.0F}})}});
  std::string json =
      R"({"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})";
  while ((json.size() + 8) % 64 != 0) json += ' ';
  EXPECT_EQ(read_file(folder / "x"), file_of(json, std::string("\0\0\x80\x3f\1\0", 6)));
}

TEST(Safetensors, TakesNoBytesToSaveAndToLoad) {
  const Folder folder;
  const td::Tensor a = td::ones({1000}), b = td::ones({300, 10}), view = td::transpose(b);
  const int64_t before = td::memory::current().count;
  td::memory::reset_peak();
  td::io::save_safetensors(folder / "x", {{"a", a}, {"b", b}});
  const td::io::Safetensors mapped = td::io::load_safetensors(folder / "x");
  EXPECT_EQ(td::memory::peak().count, before);
  // One copy at a time of what is not dense.
  td::io::save_safetensors(folder / "y", {{"a", view}, {"b", view}, {"c", view}});
  EXPECT_EQ(td::memory::peak().count, before + granted_bytes(12000));
}

TEST(Safetensors, CopiesWhatLiesAskew) {
  const Folder folder;
  // The header has 7 bytes more than a multiple of 8, as files of others may.
  std::string json = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  while (json.size() % 8 != 7) json += ' ';
  write_file(folder / "x", file_of(json, std::string("\0\0\x80\x3f", 4)));
  EXPECT_EQ(td::io::load_safetensors(folder / "x").at("a").item<float>(), 1);
}

std::string one(const std::string& entry) { return "{\"a\":" + entry + "}"; }

TEST(LoadSafetensorsErrors, NameTheFileAndTheByte) {
  EXPECT_EQ(
      said("1234567"),
      "load_safetensors: x.safetensors, byte 7: the file ends inside the length of its header");
  EXPECT_EQ(said("\x93NUMPY more"),
            "load_safetensors: x.safetensors, byte 0: the header says it has 7863383150818578067 "
            "bytes, the file has 3 more\n  give a safetensors file");
  EXPECT_EQ(said(std::string(8, '\xff')).substr(0, 84),
            "load_safetensors: x.safetensors, byte 0: the header says it has 18446744073709551615");
  EXPECT_EQ(said(file_of("[]", "")),
            "load_safetensors: x.safetensors, byte 8: the header's JSON needs '{' here");
  EXPECT_EQ(said(file_of("{} x", "")),
            "load_safetensors: x.safetensors, byte 11: unexpected text after the header's JSON");
  EXPECT_EQ(said(file_of("", "")),
            "load_safetensors: x.safetensors, byte 8: the header's JSON needs '{' here");
}

TEST(LoadSafetensorsErrors, SayWhatIsWrongWithATensor) {
  const std::string start = "load_safetensors: x.safetensors, byte ";
  EXPECT_EQ(said(file_of(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "1234")),
            start + "62: the tensors take 8 bytes, the file has 4 more");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), "1234")),
            start + "61: tensor \"a\" is f32[2] and takes 8 bytes, its offsets are 0 to 4");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","shape":[2],"data_offsets":[4,2]})"), "1234")),
            start + "60: tensor \"a\" is u8[2] and takes 2 bytes, its offsets are 4 to 2");
  EXPECT_EQ(
      said(file_of(one(R"({"dtype":"C8","shape":[2],"data_offsets":[0,2]})"), "12")),
      start +
          "26: a tensor has the dtype \"C8\", which Tidemark does not support\n"
          "  supported are F16, BF16, F32, F64, C64, BOOL and integers: convert it before saving");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","shape":[-2],"data_offsets":[0,2]})"), "12")),
            start + "36: a size or an offset is not a whole number");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","shape":[NaN],"data_offsets":[0,2]})"), "12")),
            start + "36: a size or an offset is not a whole number");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","shape":[1e400],"data_offsets":[0,2]})"), "12")),
            start + "37: a size or an offset is not a whole number");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","shape":[2.0],"data_offsets":[0,2]})"), "12")),
            start + "37: a size or an offset is not a whole number");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","shape":[99999999999999999999]})"), "12")),
            start + "36: a size or an offset does not fit 63 bits");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","shape":[02]})"), "12")),
            start + "36: a number of the header has a leading 0");
  EXPECT_EQ(
      said(file_of(one(R"({"dtype":"F64","shape":[4294967296,4294967296,0],"data_offsets":[0,0]})"),
                   "")),
      start + "83: a shape of [4294967296, 4294967296, 0] has more bytes than fit 63 bits");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","shape":[2]})"), "12")),
            start + "39: tensor \"a\" has no \"data_offsets\"");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"U8","dtype":"U8"})"), "12")),
            start + "34: tensor \"a\" has the field \"dtype\" twice");
  EXPECT_EQ(said(file_of(one(R"({"type":"U8"})"), "12")),
            start + "20: tensor \"a\" has an unknown field \"type\"");
  EXPECT_EQ(said(file_of(one(std::string(100000, '[')), "12")),
            start + "13: the header's JSON needs '{' here");
  EXPECT_EQ(said(file_of(one(R"({"dtype":"BOOL","shape":[2],"data_offsets":[0,2]})"),
                         std::string("\1\3", 2))),
            start + "64: a bool is 3, not 0 or 1\n  save it as u8, and compare: x != 0");
}

TEST(LoadSafetensorsErrors, RefuseOverlapsHolesAndDuplicates) {
  const std::string start = "load_safetensors: x.safetensors, byte ";
  const auto two = [](const std::string& a, const std::string& b, const std::string& name = "b") {
    const std::string head = R"({"dtype":"U8","shape":[2],"data_offsets":[)";
    return "{\"a\":" + head + a + "]},\"" + name + "\":" + head + b + "]}}";
  };
  EXPECT_EQ(said(file_of(two("0,2", "2,4"), "1234")), "no error");
  EXPECT_EQ(said(file_of(two("0,2", "1,3"), "123")),
            start + "115: tensor \"b\" begins at offset 1, the tensors before it end at 2");
  EXPECT_EQ(said(file_of(two("0,2", "3,5"), "12345")),
            start + "115: tensor \"b\" begins at offset 3, the tensors before it end at 2");
  EXPECT_EQ(said(file_of(two("0,2", "2,4", "a"), "1234")),
            start + "64: two tensors are called \"a\"");
  EXPECT_EQ(said(file_of(two("0,2", "2,4"), "12345")),
            start + "113: the tensors take 4 bytes, the file has 5 more");
}

TEST(LoadSafetensorsErrors, RefuseStringsThatAreNone) {
  const std::string start = "load_safetensors: x.safetensors, byte ";
  EXPECT_EQ(said(file_of("{\"a", "")), start + "10: a string of the header does not end");
  EXPECT_EQ(said(file_of("{\"\n\"", "")), start + "10: a string of the header has a control byte");
  EXPECT_EQ(said(file_of("{\"\xff\"", "")),
            start + "10: a string of the header is not valid UTF-8");
  EXPECT_EQ(said(file_of("{\"\xed\xa0\x80\"", "")),
            start + "10: a string of the header is not valid UTF-8");
  EXPECT_EQ(said(file_of("{\"\\x\"", "")),
            start + "11: a string of the header has an unknown escape sequence");
  EXPECT_EQ(said(file_of("{\"\\u12\"", "")),
            start + "12: a string of the header has a \\u escape without four hexadecimal digits");
  EXPECT_EQ(said(file_of("{\"\\ud800\"", "")),
            start + "16: a string of the header has an unpaired surrogate");
  EXPECT_EQ(said(file_of("{\"__metadata__\":{\"a\":1}}", "")),
            start + "29: the header's JSON needs a string here");
  EXPECT_EQ(said(file_of("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", "")),
            start + "40: the metadata have \"a\" twice");
}

TEST(LoadSafetensors, ReadsEscapes) {
  const Folder folder;
  write_file(folder / "x", file_of(R"({"__metadata__":{"\u0041\n\ud83d\ude00\/":"\"\\"}})", ""));
  EXPECT_EQ(td::io::load_safetensors(folder / "x").metadata,
            (std::map<std::string, std::string>{{"A\n\xf0\x9f\x98\x80/", "\"\\"}}));
}

TEST(SaveSafetensorsErrors, RefuseNamesThatCannotBe) {
  const Folder folder;
  const auto error = [&](const std::string& name) {
    const std::string text = without(
        folder, error_of([&] { td::io::save_safetensors(folder / "x", {{name, td::ones({1})}}); }));
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(error("__metadata__"),
            "save_safetensors: x cannot hold a tensor called \"__metadata__\"");
  EXPECT_EQ(error("\xff"),
            "save_safetensors: x cannot hold the name \"\xff\": it is not valid UTF-8");
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

}  // namespace
}  // namespace tidemark
