// What NumPy itself writes and reads is compared in other_programs.py; here are files that NumPy
// does not write.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/error_of.h"
#include "tests/unit/io/files.h"
#include "tidemark/io/crc32.h"
#include "tidemark/io/inflate.h"
#include "tidemark/io/zip.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace tidemark {
namespace {

using io::ZipMember;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The .npy of a tensor.
std::string npy(const td::Tensor& tensor) {
  const Folder folder;
  td::io::save_npy(folder / "x.npy", tensor);
  return read_file(folder / "x.npy");
}

// Bytes as deflate has them without compression, and the same with `extra` blocks of its choice.
std::string deflated_as_stored(const std::string& bytes) {
  std::string out;
  out += '\1';
  const auto size = static_cast<unsigned>(bytes.size());
  for (const unsigned value : {size, ~size})
    for (int i = 0; i < 2; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out + bytes;
}

struct Member {
  std::string name;
  std::string data;      // As it stands in the file.
  std::string inflated;  // What it is.
  bool deflated = false;
};

// A zip file of these, by the writer of save_npz; deflated members are marked by hand.
std::string zip(const std::vector<Member>& members) {
  std::string file;
  std::vector<ZipMember> entries;
  for (const Member& member : members) {
    entries.push_back({.name = member.name,
                       .begin = static_cast<int64_t>(file.size()),
                       .stored_bytes = static_cast<int64_t>(member.data.size()),
                       .bytes = static_cast<int64_t>(member.inflated.size()),
                       .crc = io::crc32(bytes_of(member.inflated)),
                       .deflated = member.deflated});
    file += io::zip_head(entries.back()) + member.data;
  }
  const size_t begin = file.size();
  file += io::zip_directory(entries, static_cast<int64_t>(begin));
  size_t at = begin;
  for (const Member& member : members) {
    if (member.deflated) file[at + 10] = 8;
    at += 46 + member.name.size();
  }
  return file;
}

// What is said of a file with these bytes, without the line.
std::string said(const std::string& bytes) {
  const Folder folder;
  write_file(folder / "x.npz", bytes);
  std::string text = without(folder, error_of([&] { td::io::load_npz(folder / "x.npz"); }));
  const size_t line = text.find("\n  at npz_test.cc:");
  if (line != std::string::npos) text.erase(line, text.find('\n', line + 1) - line);
  return text;
}

TEST(Crc32, IsThatOfTheStandard) {
  EXPECT_EQ(io::crc32(bytes_of("123456789")), 0xcbf43926U);
  const std::string long_text(1000, 'a');
  EXPECT_EQ(io::crc32(bytes_of(long_text)), io::crc32(bytes_of(long_text.substr(0, 600)),
                                                      io::crc32(bytes_of(long_text.substr(600)))));
}

TEST(Npz, KeepsTensorsByName) {
  const Folder folder;
  const td::Tensor a = td::arange(12), b = td::random::normal({3, 4}), c = td::constant(true);
  td::io::save_npz(folder / "x.npz",
                   {{"a", a}, {"deep/b", b}, {"c", td::Variable(c)}, {"", td::zeros({0})}});
  for (const bool copy : {false, true}) {
    const auto tensors = td::io::load_npz(folder / "x.npz", {.copy = copy});
    EXPECT_EQ(tensors.size(), 4U);
    EXPECT_TRUE(td::identical(tensors.at("a"), a));
    EXPECT_TRUE(td::identical(tensors.at("deep/b"), b));
    EXPECT_TRUE(td::identical(tensors.at("c"), c));
    EXPECT_TRUE(td::identical(tensors.at(""), td::zeros({0})));
  }
}

TEST(Npz, IsMappedWhereWeWroteIt) {
  const Folder folder;
  td::io::save_npz(folder / "x.npz", {{"a", td::ones({1000})}, {"b", td::ones({3000})}});
  const int64_t before = td::memory::current().count;
  td::memory::reset_peak();
  const auto tensors = td::io::load_npz(folder / "x.npz");
  EXPECT_EQ(td::memory::peak().count, before);
}

TEST(Npz, ReadsDeflatedMembers) {
  const std::string x = npy(td::arange(5));
  const Folder folder;
  write_file(folder / "x.npz", zip({{"x.npy", deflated_as_stored(x), x, true}}));
  EXPECT_TRUE(td::identical(td::io::load_npz(folder / "x.npz").at("x"), td::arange(5)));
}

// Sizes that need 64 bits, in a file of holes.
TEST(Zip64, IsReadAsItIsWritten) {
  const Folder folder;
  const int64_t gib = int64_t{1} << 30;
  ZipMember a{.name = "a.npy", .begin = 0, .stored_bytes = 5 * gib, .bytes = 5 * gib, .crc = 1};
  const std::string head_a = io::zip_head(a);
  const int64_t end_a = static_cast<int64_t>(head_a.size()) + a.bytes;
  ZipMember b{.name = "b.npy", .begin = end_a, .stored_bytes = 7, .bytes = 7, .crc = 2};
  const std::string head_b = io::zip_head(b);
  const std::vector<ZipMember> members = {a, b};
  const int64_t directory = end_a + static_cast<int64_t>(head_b.size()) + 7;
  std::ofstream out(folder / "x.npz", std::ios::binary);
  out << head_a;
  out.seekp(end_a);
  out << head_b << "1234567" << io::zip_directory(members, directory);
  out.close();
  const std::vector<ZipMember> found =
      io::zip_members(io::InputFile({"load_npz", folder / "x.npz", Source::here()}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].bytes, 5 * gib);
  EXPECT_EQ(found[0].data % 64, 0);
  EXPECT_EQ(found[1].name, "b.npy");
  EXPECT_EQ(found[1].begin, end_a);
  EXPECT_EQ(found[1].data, end_a + static_cast<int64_t>(head_b.size()));
  EXPECT_EQ(found[1].crc, 2U);
}

TEST(Zip64, HoldsManyMembers) {
  std::string file;
  std::vector<ZipMember> members;
  for (int i = 0; i < 70000; ++i) {
    members.push_back({.name = std::to_string(i), .begin = static_cast<int64_t>(file.size())});
    file += io::zip_head(members.back());
  }
  file += io::zip_directory(members, static_cast<int64_t>(file.size()));
  const Folder folder;
  write_file(folder / "x.npz", file);
  EXPECT_EQ(io::zip_members(io::InputFile({"load_npz", folder / "x.npz", Source::here()})).size(),
            70000U);
}

TEST(LoadNpzErrors, SayWhatIsWrongWithTheZip) {
  const std::string x = npy(td::arange(2));
  const std::string good = zip({{"x.npy", x, x, false}});
  EXPECT_EQ(said(good), "no error");
  EXPECT_EQ(said(""),
            "load_npz: x.npz, byte 0: this is not a zip file: it has no end record\n"
            "  give a file that np.savez or td::io::save_npz wrote");
  EXPECT_EQ(said(good.substr(0, good.size() - 1)).substr(0, 45),
            "load_npz: x.npz, byte 272: this is not a zip ");
  const auto patched = [&](size_t at, const std::string& bytes) {
    std::string file = good;
    return file.replace(at, bytes.size(), bytes);
  };
  const size_t entry = good.find("PK\1\2"), end = good.find("PK\5\6");
  EXPECT_EQ(said(patched(end + 16, "\xff\xff\xff\x7f")),
            "load_npz: x.npz, byte 251: a directory of 51 bytes cannot be at byte 2147483647, "
            "before this");
  EXPECT_EQ(
      said(patched(end + 16, "\xff\xff\xff\xff")),
      "load_npz: x.npz, byte 251: the zip file refers to a zip64 record that it does not have");
  EXPECT_EQ(said(patched(end + 10, "\x09")),
            "load_npz: x.npz, byte 251: a directory of 51 bytes cannot list 9 members");
  EXPECT_EQ(said(patched(entry, "XX")),
            "load_npz: x.npz, byte 200: expected an entry of the directory here");
  EXPECT_EQ(said(patched(entry + 28, "\xff")),
            "load_npz: x.npz, byte 200: an entry reaches beyond the end of the directory");
  EXPECT_EQ(said(patched(entry + 8, "\1")),
            "load_npz: x.npz, byte 200: member x.npy is encrypted\n  save it without a password");
  EXPECT_EQ(said(patched(entry + 10, "\x0e")),
            "load_npz: x.npz, byte 200: member x.npy is compressed by method 14\n"
            "  stored and deflated members are read: np.savez, np.savez_compressed");
  EXPECT_EQ(said(patched(entry + 42, std::string("\xc0\0", 2))),
            "load_npz: x.npz, byte 192: member x.npy does not end before byte 200, where the "
            "directory is");
  EXPECT_EQ(said(patched(0, "XX")), "load_npz: x.npz, byte 0: member x.npy has no header here");
  EXPECT_EQ(
      said(patched(30, "y")),
      "load_npz: x.npz, byte 0: the directory calls a member x.npy, its own header calls it y.npy");
  EXPECT_EQ(said(patched(entry + 20, "\1")),
            "load_npz: x.npz, byte 200: member x.npy is stored without compression and has 136 "
            "bytes, in 1");
  EXPECT_EQ(said(patched(entry - 1, "\7")).substr(0, 63),
            "load_npz: x.npz, byte 64: member x.npy is damaged: its checksum");
}

TEST(LoadNpzErrors, SayWhatIsWrongWithMembers) {
  const std::string x = npy(td::arange(2));
  EXPECT_EQ(said(zip({{"x.npy", x, x}, {"x.npy", x, x}})).substr(0, 60),
            "load_npz: x.npz, byte 443: two members are called x.npy");
  EXPECT_EQ(said(zip({{"x.txt", x, x}})),
            "load_npz: x.npz, member x.txt is not a .npy file\n"
            "  remove it from the .npz");
  EXPECT_EQ(said(zip({{"x.npy", "abc", "abc"}})).substr(0, 62),
            "load_npz: x.npz, member x.npy, byte 0: this is not a .npy file");
  const std::string longer = x + "123";
  EXPECT_EQ(
      said(zip({{"x.npy", longer, longer}})),
      "load_npz: x.npz, member x.npy, byte 128: i32[2] takes 8 bytes, the member has 11 more");
  // Two names for the same bytes.
  std::string file = zip({{"a.npy", x, x}, {"a.npz", x, x}});
  const size_t second = file.find("PK\1\2", file.find("PK\1\2") + 1);
  file.replace(second + 42, 4, std::string(4, '\0'));
  file.replace(second + 46, 5, "a.npy");
  EXPECT_EQ(said(file).substr(0, 54), "load_npz: x.npz, byte 443: two members are called a.np");
}

TEST(LoadNpzErrors, RefuseOverlappingMembers) {
  // The second member's head stands in the bytes of the first.
  const std::string x = npy(td::arange(2));
  const std::string inner =
      io::zip_head({.name = "b.npy", .begin = 64, .stored_bytes = 136, .bytes = 136});
  const std::string data = inner + x;
  const std::string file_bytes =
      io::zip_head({.name = "a.npy", .stored_bytes = 300, .bytes = 300}) + data;
  const std::vector<ZipMember> members = {
      {.name = "a.npy", .stored_bytes = std::ssize(data), .bytes = std::ssize(data)},
      {.name = "b.npy", .begin = 64, .stored_bytes = 136, .bytes = 136}};
  EXPECT_EQ(said(file_bytes + io::zip_directory(members, std::ssize(file_bytes))),
            "load_npz: x.npz, byte 64: members a.npy and b.npy overlap");
}

TEST(LoadNpzErrors, RefuseBombs) {
  const std::string x = npy(td::arange(2));
  // It says more than deflate can do.
  EXPECT_EQ(said(zip({{"x.npy", deflated_as_stored(x), std::string(1 << 20, 'x'), true}})),
            "load_npz: x.npz, byte 205: member x.npy says that 141 bytes inflate to 1048576, which "
            "is more than 1032 times as many");
  // It is more than it says.
  std::string more = x + "more";
  EXPECT_EQ(said(zip({{"x.npy", deflated_as_stored(more), x, true}})),
            "load_npz: x.npz, byte 64: member x.npy has more than the 136 bytes that the directory "
            "gives");
  // It is less.
  EXPECT_EQ(said(zip({{"x.npy", deflated_as_stored(x.substr(0, 130)), x, true}})),
            "load_npz: x.npz, byte 64: member x.npy has 130 bytes, the directory gives 136");
  // Its bytes are others.
  std::string other = x;
  other.back() ^= 1;
  EXPECT_EQ(said(zip({{"x.npy", deflated_as_stored(other), x, true}})).substr(0, 63),
            "load_npz: x.npz, byte 64: member x.npy is damaged: its checksum");
}

TEST(LoadNpzErrors, RefuseMoreThanTheMemoryLimit) {
  const Folder folder;
  td::io::save_npz(folder / "x.npz", {{"x", td::zeros({1000000})}});
  td::memory::release();
  const td::Bytes limit = td::memory::limit();
  td::memory::set_limit(td::memory::current() + 1000000);
  EXPECT_THROW(td::io::load_npz(folder / "x.npz", {.copy = true}), td::OutOfMemory);
  EXPECT_NO_THROW(td::io::load_npz(folder / "x.npz"));
  td::memory::set_limit(limit);
}

// What inflate says of these bytes.
std::string inflate_error(const std::string& bytes) {
  size_t at = 0;
  const auto inflate = [&] {
    io::inflate(
        [&](std::span<std::byte> to) {
          const size_t count = std::min(to.size(), bytes.size() - at);
          std::memcpy(to.data(), bytes.data() + at, count);
          at += count;
          return count;
        },
        [](std::span<const std::byte>) { return true; }, 100, {"load_npz", "x", Source::none()});
  };
  return error_of(inflate);
}

TEST(InflateErrors, SayWhatIsDamaged) {
  const std::string start = "load_npz: x, byte ", damaged = ": the deflated bytes are damaged: ";
  EXPECT_EQ(inflate_error(""), start + "100" + damaged + "they end inside a block");
  EXPECT_EQ(inflate_error("\x07"), start + "101" + damaged + "a block has an unknown type");
  EXPECT_EQ(inflate_error(std::string("\x01\x05\x00\x00\x00", 5)),
            start + "105" + damaged + "the length of a stored block and its complement differ");
  EXPECT_EQ(inflate_error(std::string("\x01\x05\x00\xfa\xff"
                                      "abc",
                                      8)),
            start + "108" + damaged + "they end inside a block");
  // Fixed codes, then a match (length 3, distance 1) with nothing before it.
  EXPECT_EQ(inflate_error(std::string("\x03\x02\x00\x00", 4)).substr(21),
            damaged + "a match reaches before the beginning of the data");
  // Codes of lengths that leave no room: all 19 of length 1.
  EXPECT_EQ(
      inflate_error(std::string("\x05\xe0\x93\x24\x49\x92\x24\x49\x92\x24\x49\x92", 12)).substr(21),
      damaged + "the codes of a block are not a prefix code");
}

}  // namespace
}  // namespace tidemark
