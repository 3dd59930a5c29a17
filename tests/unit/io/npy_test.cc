#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/error_of.h"
#include "tests/unit/io/files.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace tidemark {
namespace {

// As NumPy writes it: magic, version, length, dict, blanks up to a multiple of 64, a new line.
std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string head("\x93NUMPY");
  head += static_cast<char>(version);
  head += '\0';
  const size_t start = version == 1 ? 10 : 12;
  std::string text = dict;
  while ((start + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  for (size_t i = 0; i < start - 8; ++i) head += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return head + text + data;
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

TEST(SaveNpy, WritesTheBytesThatNumPyWrites) {
  const Folder folder;
  td::io::save_npy(folder / "x.npy", td::constant({{1, 2, 3}, {4, 5, 6}}, td::f32));
  EXPECT_EQ(read_file(folder / "x.npy"),
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                bytes_of<float>({1, 2, 3, 4, 5, 6})));
  td::io::save_npy(folder / "x.npy", td::constant({true, false}));
  EXPECT_EQ(
      read_file(folder / "x.npy"),
      npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", bytes_of<char>({1, 0})));
  td::io::save_npy(folder / "x.npy", td::constant(7));
  EXPECT_EQ(read_file(folder / "x.npy"),
            npy("{'descr': '<i4', 'fortran_order': False, 'shape': (), }", bytes_of<int32_t>({7})));
}

TEST(SaveNpy, WritesAViewInRowOrder) {
  const Folder folder;
  const td::Tensor x = td::constant({{1, 2, 3}, {4, 5, 6}});
  td::io::save_npy(folder / "x.npy", td::transpose(x));
  EXPECT_EQ(read_file(folder / "x.npy"),
            npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }",
                bytes_of<int32_t>({1, 4, 2, 5, 3, 6})));
}

TEST(SaveNpy, TakesNoByteForADenseTensorAndOneCopyForAView) {
  const Folder folder;
  const td::Tensor x = td::ones({64, 1024});
  const td::Tensor view = td::transpose(x);
  const int64_t before = td::memory::current().count;
  td::memory::reset_peak();
  td::io::save_npy(folder / "x.npy", x);
  EXPECT_EQ(td::memory::peak().count, before);
  td::io::save_npy(folder / "x.npy", view);
  EXPECT_EQ(td::memory::peak().count, before + 64 * 1024 * 4);
  EXPECT_EQ(td::memory::current().count, before);
}

TEST(Npy, KeepsEveryDTypeBitForBit) {
  const Folder folder;
  for (const td::DType dtype : {td::f16, td::f32, td::f64, td::i8, td::i16, td::i32, td::i64,
                                td::u8, td::u16, td::u32, td::u64, td::boolean}) {
    for (const td::Shape& shape : {td::Shape{}, td::Shape{0}, td::Shape{3}, td::Shape{2, 0, 3},
                                   td::Shape{2, 3, 4}, td::Shape{1, 1, 1, 1, 7}}) {
      td::Tensor x = td::reshape(td::arange(shape.size()), shape);
      x = td::cast(dtype == td::boolean ? x % 2 : x, dtype);
      td::io::save_npy(folder / "x.npy", x);
      EXPECT_TRUE(td::identical(x, td::io::load_npy(folder / "x.npy"))) << dtype << shape;
      EXPECT_TRUE(td::identical(x, td::io::load_npy(folder / "x.npy", {.copy = true})))
          << dtype << shape;
    }
  }
}

TEST(SaveNpy, SavesAVariable) {
  const Folder folder;
  const td::Variable v(td::arange(5));
  td::io::save_npy(folder / "v.npy", v);
  EXPECT_TRUE(td::identical(v.value(), td::io::load_npy(folder / "v.npy")));
}

TEST(LoadNpy, ReadsVersions2And3) {
  const Folder folder;
  for (const int version : {2, 3}) {
    write_file(folder / "x.npy", npy("{'shape': (2,), 'fortran_order': False, 'descr': \"<f8\"}",
                                     bytes_of<double>({1.5, -2}), version));
    EXPECT_TRUE(
        td::identical(td::io::load_npy(folder / "x.npy"), td::constant({1.5, -2}, td::f64)));
  }
}

TEST(LoadNpy, ReadsBigEndianAndFortranOrder) {
  const Folder folder;
  write_file(folder / "x.npy",
             npy("{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3L), }",
                 std::string("\0\0\0\1\0\0\0\4\0\0\0\2\0\0\0\5\0\0\0\3\0\0\1\6", 24)));
  const td::Tensor x = td::io::load_npy(folder / "x.npy");
  EXPECT_TRUE(td::identical(x, td::constant({{1, 2, 3}, {4, 5, 262}})));
  write_file(folder / "y.npy", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }",
                                   bytes_of<float>({1, 3, 2, 4})));
  EXPECT_TRUE(
      td::identical(td::io::load_npy(folder / "y.npy"), td::constant({{1.f, 2.f}, {3.f, 4.f}})));
}

TEST(LoadNpy, ChargesNothingWhereTheFileIsMapped) {
  const Folder folder;
  td::io::save_npy(folder / "x.npy", td::ones({1024}));
  const int64_t before = td::memory::current().count, lent = td::memory::borrowed().count;
  td::memory::reset_peak();
  td::Tensor mapped = td::io::load_npy(folder / "x.npy");
  EXPECT_EQ(td::memory::peak().count, before);
  EXPECT_EQ(td::memory::borrowed().count, lent + 4096);
  const td::Tensor own = td::io::load_npy(folder / "x.npy", {.copy = true});
  EXPECT_EQ(td::memory::peak().count, before + 4096);
  // A write is never seen by the file, which is let go by the last who shows it.
  mapped += 1;
  EXPECT_EQ(td::memory::borrowed().count, lent);
  EXPECT_EQ(mapped[0].item<float>(), 2);
  EXPECT_EQ(td::io::load_npy(folder / "x.npy")[0].item<float>(), 1);
}

TEST(LoadNpy, KeepsAMappedFileThatIsReplacedOrDeleted) {
  const Folder folder;
  td::io::save_npy(folder / "x.npy", td::ones({3}));
  const td::Tensor x = td::io::load_npy(folder / "x.npy");
  td::io::save_npy(folder / "x.npy", td::zeros({3}));
  const td::Tensor y = td::io::load_npy(folder / "x.npy");
  std::filesystem::remove(folder / "x.npy");
  EXPECT_TRUE(td::identical(x, td::ones({3})));
  EXPECT_TRUE(td::identical(y, td::zeros({3})));
}

TEST(LoadNpy, CopiesElementsThatLieAskew) {
  const Folder folder;
  std::string head("\x93NUMPY\1\0", 8);
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  head += static_cast<char>(dict.size());
  write_file(folder / "x.npy", head + '\0' + dict + bytes_of<float>({2.5}));
  EXPECT_EQ(td::io::load_npy(folder / "x.npy").item<float>(), 2.5);
}

// What is said of a file with these bytes.
std::string said(const std::string& bytes) {
  const Folder folder;
  write_file(folder / "x.npy", bytes);
  const std::string mapped = error_of([&] { td::io::load_npy(folder / "x.npy"); });
  const std::string copied = error_of([&] { td::io::load_npy(folder / "x.npy", {.copy = true}); });
  EXPECT_EQ(mapped.substr(0, mapped.find('\n')), copied.substr(0, copied.find('\n')));
  std::string text = without(folder, mapped);
  const size_t line = text.find("\n  at npy_test.cc:");
  if (line != std::string::npos) text.erase(line, text.find('\n', line + 1) - line);
  return text;
}

std::string dict(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST(LoadNpyErrors, NameTheFileAndTheByte) {
  EXPECT_EQ(said(""),
            "load_npy: x.npy, byte 0: this is not a .npy file\n"
            "  give a file that np.save or td::io::save_npy wrote");
  EXPECT_EQ(said("PK\3\4"), said(""));
  EXPECT_EQ(said("\x93NUMPY\1"), "load_npy: x.npy, byte 7: the file ends inside its header");
  EXPECT_EQ(said(std::string("\x93NUMPY\2\0\1\0", 10)),
            "load_npy: x.npy, byte 10: the file ends inside its header");
  EXPECT_EQ(said(std::string("\x93NUMPY\4\0\1\0\0\0", 12)),
            "load_npy: x.npy, byte 6: version 4.0 of .npy is not supported\n"
            "  versions 1.0, 2.0 and 3.0 are");
  EXPECT_EQ(
      said(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)),
      "load_npy: x.npy, byte 8: the header says it has 4294967295 bytes, the file has 2 more");
  EXPECT_EQ(said(npy(dict("'<f4'", "(1000000,)"), "abc")),
            "load_npy: x.npy, byte 128: f32[1000000] takes 4000000 bytes, the file has 3 more");
}

TEST(LoadNpyErrors, SayWhatIsWrongInTheDict) {
  EXPECT_EQ(said(npy(dict("'<f4'", "(-1,)"), "")), "load_npy: x.npy, byte 61: a size is negative");
  EXPECT_EQ(said(npy(dict("'<f4'", "(99999999999999999999,)"), "")),
            "load_npy: x.npy, byte 61: a size does not fit 63 bits");
  EXPECT_EQ(said(npy(dict("'<f4'", "(4294967296, 4294967296, 0)"), "")),
            "load_npy: x.npy, byte 0: a shape of [4294967296, 4294967296, 0] has more bytes than "
            "fit 63 bits");
  EXPECT_EQ(said(npy(dict("'<c32'", "(1,)"), "12345678")),
            "load_npy: x.npy, byte 26: the elements are '<c32', which Tidemark does not support\n"
            "  convert them in NumPy: a.astype('float32')");
  EXPECT_EQ(said(npy(dict("[('a', '<f4')]", "(1,)"), "1234")),
            "load_npy: x.npy, byte 21: the elements are records\n"
            "  a tensor has elements of one dtype: save each field by itself, a['name']");
  EXPECT_EQ(said(npy("{'descr': '<f4', 'shape': (1,), }", "1234")),
            "load_npy: x.npy, byte 64: the header has no key 'fortran_order'");
  EXPECT_EQ(said(npy("{'descr': '<f4', 'descr': '<f4'}", "1234")),
            "load_npy: x.npy, byte 34: the header has the key 'descr' twice");
  EXPECT_EQ(said(npy("{'size': 4}", "1234")),
            "load_npy: x.npy, byte 17: the header has an unknown key 'size'");
  EXPECT_EQ(said(npy("[]", "")),
            "load_npy: x.npy, byte 10: the header is not a dict as NumPy writes it: expected '{'");
  EXPECT_EQ(said(npy("{'shape", "")), "load_npy: x.npy, byte 11: a string does not end");
  EXPECT_EQ(said(npy("{'fortran_order': 1}", "")),
            "load_npy: x.npy, byte 28: expected True or False");
  EXPECT_EQ(said(npy(dict("'<f4'", "(1 2)"), "")),
            "load_npy: x.npy, byte 63: the header is not a dict as NumPy writes it: expected ')'");
  EXPECT_EQ(said(npy(dict("'|b1'", "(3,)"), std::string("\0\1\2", 3))),
            "load_npy: x.npy, byte 130: a bool is 2, not 0 or 1\n"
            "  save it as u8, and compare: x != 0");
}

TEST(LoadNpyErrors, SayThatThereIsNoFile) {
  const Folder folder;
  const auto load = [&] { td::io::load_npy(folder / "none.npy"); };
  EXPECT_EQ(without(folder, error_of(load)).substr(0, 63),
            "load_npy: none.npy cannot be opened: No such file or directory\n");
  EXPECT_EQ(without(
                folder, error_of([&] {
                  td::io::load_npy(folder.path());
                })).find("is not a regular file\n  at npy_test.cc") != std::string::npos,
            true);
}

TEST(SaveNpyErrors, SayWhyAndKeepTheFile) {
  const Folder folder;
  td::io::save_npy(folder / "x.npy", td::ones({3}));
  const std::string before = read_file(folder / "x.npy");
  const std::string text = without(
      folder, error_of([&] { td::io::save_npy(folder / "x.npy", td::zeros({2}, td::bf16)); }));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "save_npy: x.npy cannot hold bf16: NumPy has no such dtype");
  EXPECT_EQ(text.substr(text.rfind('\n')),
            "\n  td::cast(x, td::f32) keeps every value; td::io::save_safetensors keeps the dtype");
  EXPECT_EQ(read_file(folder / "x.npy"), before);
  const std::string no_folder =
      without(folder, error_of([&] { td::io::save_npy(folder / "no/x.npy", td::ones({1})); }));
  EXPECT_EQ(no_folder.substr(0, no_folder.find('\n')),
            "save_npy: no/x.npy cannot be saved: no/x.npy.saving: No such file or directory");
}

}  // namespace
}  // namespace tidemark
