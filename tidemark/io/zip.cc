#include "tidemark/io/zip.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>

#include "tidemark/base/text.h"
#include "tidemark/io/crc32.h"

namespace tidemark::io {
namespace {

constexpr std::string_view kHead = "PK\3\4", kEntry = "PK\1\2", kEnd = "PK\5\6", kEnd64 = "PK\6\6",
                           kLocator64 = "PK\6\7";
constexpr int64_t kHeadBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                  kLocator64Bytes = 20;
constexpr int64_t kMostComment = 65535;
constexpr int64_t kMostDirectoryBytes = 64 << 20;
constexpr uint64_t kIn64 = 0xffffffff;  // The number is in the zip64 field.
constexpr uint64_t kCountIn64 = 0xffff;

// Reads little-endian numbers. The caller has checked the length.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, int64_t offset) : bytes_(bytes), offset_(offset) {}

  uint64_t at(size_t place, size_t width) const {
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;)
      value = value << 8 | std::to_integer<uint64_t>(bytes_[place + i]);
    return value;
  }
  bool begins(std::string_view mark) const {
    return std::memcmp(bytes_.data(), mark.data(), mark.size()) == 0;
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  int64_t offset() const { return offset_; }  // In the file.
  Fields from(int64_t begin) const {
    return {bytes_.subspan(static_cast<size_t>(begin)), offset_ + begin};
  }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

 private:
  std::span<const std::byte> bytes_;
  int64_t offset_;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The position of the directory.
struct Directory {
  int64_t begin = 0;
  int64_t bytes = 0;
  int64_t members = 0;
};

int64_t as_offset(uint64_t value, int64_t place, const FileCall& call) {
  if (value > static_cast<uint64_t>(INT64_MAX)) call.bad(place, "a size does not fit 63 bits");
  return static_cast<int64_t>(value);
}

// In a zip64 file the position of the directory is in a separate record before the end record.
Directory read_end64(const InputFile& file, int64_t end) {
  std::vector<std::byte> bytes(kLocator64Bytes);
  const int64_t locator = end - kLocator64Bytes;
  if (locator >= 0) file.read(locator, bytes);
  const Fields found(bytes, locator);
  if (locator < 0 || !found.begins(kLocator64))
    file.call().bad(end, "the zip file refers to a zip64 record that it does not have");
  const int64_t begin = as_offset(found.at(8, 8), locator, file.call());
  if (begin > locator - kEnd64Bytes)
    file.call().bad(locator, cat("the zip64 record cannot be at byte ", begin));
  bytes.resize(kEnd64Bytes);
  file.read(begin, bytes);
  const Fields record(bytes, begin);
  if (!record.begins(kEnd64)) file.call().bad(begin, "expected a zip64 record here");
  return {.begin = as_offset(record.at(48, 8), begin, file.call()),
          .bytes = as_offset(record.at(40, 8), begin, file.call()),
          .members = as_offset(record.at(32, 8), begin, file.call())};
}

// The end record is searched backwards: a comment of unknown length may follow it.
Directory read_end(const InputFile& file) {
  const int64_t most = std::min(file.bytes(), kEndBytes + kMostComment);
  std::vector<std::byte> bytes(static_cast<size_t>(most));
  const int64_t begin = file.bytes() - most;
  file.read(begin, bytes);
  for (int64_t place = most - kEndBytes; place >= 0; --place) {
    const Fields end = Fields(bytes, begin).from(place);
    if (!end.begins(kEnd) || static_cast<int64_t>(end.at(20, 2)) != end.size() - kEndBytes)
      continue;
    const bool large =
        end.at(10, 2) == kCountIn64 || end.at(12, 4) == kIn64 || end.at(16, 4) == kIn64;
    const Directory directory = large ? read_end64(file, end.offset())
                                      : Directory{.begin = static_cast<int64_t>(end.at(16, 4)),
                                                  .bytes = static_cast<int64_t>(end.at(12, 4)),
                                                  .members = static_cast<int64_t>(end.at(10, 2))};
    if (directory.begin > end.offset() || directory.bytes > end.offset() - directory.begin) {
      file.call().bad(end.offset(),
                      cat("a directory of ", directory.bytes, " bytes cannot be at byte ",
                          directory.begin, ", before this"));
    }
    if (directory.bytes > kMostDirectoryBytes || directory.members > directory.bytes / kEntryBytes)
      file.call().bad(end.offset(), cat("a directory of ", directory.bytes, " bytes cannot list ",
                                        directory.members, " members"));
    return directory;
  }
  file.call().bad(file.bytes(), "this is not a zip file: it has no end record",
                  "give a file that np.savez or td::io::save_npz wrote");
}

// The zip64 values of fields that overflowed, in the order of the fields.
void read_fields64(Fields extra, uint64_t* const (&wide)[3], const FileCall& call) {
  const bool wanted = std::any_of(std::begin(wide), std::end(wide),
                                  [](const uint64_t* value) { return *value == kIn64; });
  while (wanted && extra.size() >= 4) {
    const uint64_t kind = extra.at(0, 2);
    const auto size = static_cast<int64_t>(extra.at(2, 2));
    if (size > extra.size() - 4) break;
    size_t place = 4;
    for (uint64_t* const value : wide) {
      if (kind != 1 || *value != kIn64) continue;
      if (static_cast<int64_t>(place) + 8 > size + 4) break;
      *value = extra.at(place, 8);
      place += 8;
    }
    if (kind == 1) return;
    extra = extra.from(4 + size);
  }
  if (wanted) call.bad(extra.offset(), "a member refers to a zip64 field that it does not have");
}

// Reads one entry of the directory, except its name, and advances `at`.
ZipMember read_entry(Fields& at, const FileCall& call) {
  if (at.size() < kEntryBytes || !at.begins(kEntry))
    call.bad(at.offset(), "expected an entry of the directory here");
  const uint64_t name_bytes = at.at(28, 2), extra_bytes = at.at(30, 2),
                 comment_bytes = at.at(32, 2);
  const auto all = kEntryBytes + static_cast<int64_t>(name_bytes + extra_bytes + comment_bytes);
  if (all > at.size()) call.bad(at.offset(), "an entry reaches beyond the end of the directory");
  uint64_t begin = at.at(42, 4), stored = at.at(20, 4), bytes = at.at(24, 4);
  const auto extra_begin = kEntryBytes + static_cast<int64_t>(name_bytes);
  const Fields extra(at.bytes().subspan(static_cast<size_t>(extra_begin), extra_bytes),
                     at.offset() + extra_begin);
  read_fields64(extra, {&bytes, &stored, &begin}, call);
  ZipMember member{.name = text_of(at.bytes().subspan(kEntryBytes, name_bytes)),
                   .begin = as_offset(begin, at.offset(), call),
                   .stored_bytes = as_offset(stored, at.offset(), call),
                   .bytes = as_offset(bytes, at.offset(), call),
                   .crc = static_cast<uint32_t>(at.at(16, 4)),
                   .deflated = at.at(10, 2) == 8};
  if ((at.at(8, 2) & 1) != 0)
    call.bad(at.offset(), cat("member ", member.name, " is encrypted"),
             "save it without a password");
  if (at.at(10, 2) != 8 && at.at(10, 2) != 0) {
    call.bad(at.offset(), cat("member ", member.name, " is compressed by method ", at.at(10, 2)),
             "stored and deflated members are read: np.savez, np.savez_compressed");
  }
  at = at.from(all);
  return member;
}

void check_sizes(const ZipMember& member, int64_t offset, const FileCall& call) {
  if (!member.deflated && member.stored_bytes != member.bytes) {
    call.bad(offset, cat("member ", member.name, " is stored without compression and has ",
                         member.bytes, " bytes, in ", member.stored_bytes));
  }
  if (member.deflated && member.bytes / kMostInflated > member.stored_bytes) {
    call.bad(offset,
             cat("member ", member.name, " says that ", member.stored_bytes, " bytes inflate to ",
                 member.bytes, ", which is more than ", kMostInflated, " times as many"));
  }
}

// Locates the member's bytes after its header, which must agree with the directory.
void find_data(const InputFile& file, ZipMember& member, int64_t end) {
  const auto outside = [&] {
    file.call().bad(member.begin, cat("member ", member.name, " does not end before byte ", end,
                                      ", where the directory is"));
  };
  std::vector<std::byte> bytes(kHeadBytes);
  if (member.begin > end - kHeadBytes) outside();
  file.read(member.begin, bytes);
  const Fields head(bytes, member.begin);
  if (!head.begins(kHead))
    file.call().bad(member.begin, cat("member ", member.name, " has no header here"));
  const uint64_t name_bytes = head.at(26, 2);
  member.data = member.begin + kHeadBytes + static_cast<int64_t>(name_bytes + head.at(28, 2));
  if (member.data > end || member.stored_bytes > end - member.data) outside();
  bytes.resize(name_bytes);
  file.read(member.begin + kHeadBytes, bytes);
  if (text_of(bytes) != member.name) {
    file.call().bad(member.begin, cat("the directory calls a member ", member.name,
                                      ", its own header calls it ", text_of(bytes)));
  }
}

void check_apart(const std::vector<ZipMember>& by_place, const FileCall& call) {
  for (size_t i = 1; i < by_place.size(); ++i) {
    const ZipMember &before = by_place[i - 1], &member = by_place[i];
    if (before.data + before.stored_bytes > member.begin)
      call.bad(member.begin, cat("members ", before.name, " and ", member.name, " overlap"));
  }
}

void add(std::string& text, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
}

bool is_large(int64_t value) { return value >= static_cast<int64_t>(kIn64); }
uint64_t or_in64(int64_t value) { return is_large(value) ? kIn64 : static_cast<uint64_t>(value); }

// The fields that a header and a directory entry share: versions, flags, method, a fixed time (the
// earliest of the format, so that equal tensors give equal files), checksum and sizes.
void add_member(std::string& text, const ZipMember& member, bool large) {
  const bool ascii = std::all_of(member.name.begin(), member.name.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 128; });
  add(text, large ? 45 : 20, 2);
  add(text, ascii ? 0 : 0x800, 2);
  add(text, 0, 2);
  add(text, 0x00210000, 4);
  add(text, member.crc, 4);
  add(text, or_in64(member.stored_bytes), 4);
  add(text, or_in64(member.bytes), 4);
  add(text, member.name.size(), 2);
}

}  // namespace

std::vector<ZipMember> zip_members(const InputFile& file) {
  const FileCall& call = file.call();
  const Directory directory = read_end(file);
  std::vector<std::byte> bytes(static_cast<size_t>(directory.bytes));
  file.read(directory.begin, bytes);
  Fields at(bytes, directory.begin);
  std::vector<ZipMember> members;
  std::set<std::string> names;
  for (int64_t i = 0; i < directory.members; ++i) {
    const int64_t offset = at.offset();
    members.push_back(read_entry(at, call));
    check_sizes(members.back(), offset, call);
    if (!names.insert(members.back().name).second)
      call.bad(offset, cat("two members are called ", members.back().name));
    find_data(file, members.back(), directory.begin);
  }
  std::sort(members.begin(), members.end(),
            [](const ZipMember& a, const ZipMember& b) { return a.begin < b.begin; });
  check_apart(members, call);
  return members;
}

void read_member(const InputFile& file, const ZipMember& member, const ByteSink& sink) {
  const FileCall& call = file.call();
  int64_t read = 0, given = 0;
  uint32_t crc = 0;
  bool enough = false;
  const ByteSource source = [&](std::span<std::byte> to) {
    const auto wanted = std::min<int64_t>(std::ssize(to), member.stored_bytes - read);
    file.read(member.data + read, to.first(static_cast<size_t>(wanted)));
    read += wanted;
    return static_cast<size_t>(wanted);
  };
  const ByteSink checked = [&](std::span<const std::byte> bytes) {
    if (std::ssize(bytes) > member.bytes - given)
      call.bad(member.data, cat("member ", member.name, " has more than the ", member.bytes,
                                " bytes that the directory gives"));
    given += std::ssize(bytes);
    crc = crc32(bytes, crc);
    enough = !sink(bytes);
    return !enough;
  };
  if (member.deflated) {
    (void)inflate(source, checked, member.data, call);
  } else {
    constexpr size_t kPieceBytes = 1 << 16;
    const auto piece = std::make_unique_for_overwrite<std::byte[]>(kPieceBytes);
    for (size_t got; !enough && (got = source({piece.get(), kPieceBytes})) > 0;)
      checked({piece.get(), got});
  }
  if (enough && given < member.bytes) return;
  if (given < member.bytes) {
    call.bad(member.data, cat("member ", member.name, " has ", given,
                              " bytes, the directory gives ", member.bytes));
  }
  if (crc != member.crc) {
    call.bad(member.data, cat("member ", member.name, " is damaged: its checksum is ", crc,
                              ", the directory gives ", member.crc));
  }
}

std::string zip_head(const ZipMember& member) {
  const bool large = is_large(member.bytes);
  std::string text(kHead);
  add_member(text, member, large);
  std::string extra;
  if (large) {
    add(extra, 1, 2);
    add(extra, 16, 2);
    add(extra, static_cast<uint64_t>(member.bytes), 8);
    add(extra, static_cast<uint64_t>(member.stored_bytes), 8);
  }
  // A padding field, with the identifier that other writers use too.
  const auto before =
      member.begin + kHeadBytes + static_cast<int64_t>(member.name.size() + extra.size()) + 4;
  const int64_t blanks = granted_bytes(before) - before;
  add(extra, 0xd935, 2);
  add(extra, static_cast<uint64_t>(blanks), 2);
  extra.append(static_cast<size_t>(blanks), '\0');
  add(text, extra.size(), 2);
  return text + member.name + extra;
}

std::string zip_directory(std::span<const ZipMember> members, int64_t begin) {
  std::string text;
  for (const ZipMember& member : members) {
    std::string extra;
    for (const int64_t value : {member.bytes, member.stored_bytes, member.begin})
      if (is_large(value)) add(extra, static_cast<uint64_t>(value), 8);
    text += kEntry;
    add(text, 3 << 8 | 45, 2);
    add_member(text, member, !extra.empty());
    add(text, extra.empty() ? 0 : extra.size() + 4, 2);
    add(text, 0, 6);                        // Comment, disk, kind.
    add(text, uint64_t{0100644} << 16, 4);  // A file that others may read.
    add(text, or_in64(member.begin), 4);
    text += member.name;
    if (extra.empty()) continue;
    add(text, 1, 2);
    add(text, extra.size(), 2);
    text += extra;
  }
  const auto bytes = static_cast<int64_t>(text.size());
  const bool many = members.size() >= kCountIn64;
  if (many || is_large(begin) || is_large(bytes)) {
    text += kEnd64;
    add(text, kEnd64Bytes - 12, 8);
    add(text, 3 << 8 | 45, 2);
    add(text, 45, 2);
    add(text, 0, 8);
    add(text, members.size(), 8);
    add(text, members.size(), 8);
    add(text, static_cast<uint64_t>(bytes), 8);
    add(text, static_cast<uint64_t>(begin), 8);
    text += kLocator64;
    add(text, 0, 4);
    add(text, static_cast<uint64_t>(begin + bytes), 8);
    add(text, 1, 4);
  }
  text += kEnd;
  add(text, 0, 4);
  add(text, many ? kCountIn64 : members.size(), 2);
  add(text, many ? kCountIn64 : members.size(), 2);
  add(text, or_in64(bytes), 4);
  add(text, or_in64(begin), 4);
  add(text, 0, 2);
  return text;
}

}  // namespace tidemark::io
