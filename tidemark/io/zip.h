// Zip files, the container of .npz: stored or deflated members and their directory. Internal to
// io/.
//
//   head "a.npy"  bytes of a.npy  head "b.npy"  bytes of b.npy  directory  end
//
// The reader goes by the directory, as NumPy does, and checks each member's header against it.
// Sizes from 4 GiB on, and large member counts, use the zip64 fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tidemark/io/file.h"
#include "tidemark/io/inflate.h"

namespace tidemark::io {

struct ZipMember {
  std::string name = {};
  int64_t begin = 0;  // The position of its header.
  int64_t data = 0;   // The position of its bytes.
  int64_t stored_bytes = 0;
  int64_t bytes = 0;  // Inflated.
  uint32_t crc = 0;
  bool deflated = false;
};

// All members in the order of the file. A UserError if two share a name or overlap, or if one lies
// outside the file, uses an unsupported method, or claims an impossible inflated size.
std::vector<ZipMember> zip_members(const InputFile& file);

// Passes the member's bytes to the sink until it returns false. If the member was read completely,
// its checksum is verified; a mismatch is a UserError.
void read_member(const InputFile& file, const ZipMember& member, const ByteSink& sink);

// The header before a stored member's bytes, padded such that they begin at a multiple of 64, and
// the directory at the end.
std::string zip_head(const ZipMember& member);
std::string zip_directory(std::span<const ZipMember> members, int64_t begin);

}  // namespace tidemark::io
