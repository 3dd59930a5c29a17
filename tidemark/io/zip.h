// The zip files that .npz are: members stored or deflated, and their directory; internal to io/.
//
//   head "a.npy"  bytes of a.npy  head "b.npy"  bytes of b.npy  directory  end
//
// A reader trusts the directory, as NumPy does, and looks at each head too. Sizes from 4 GiB on,
// and many members, stand in fields of their own (zip64).
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
  int64_t begin = 0;  // Of its head.
  int64_t data = 0;   // Of its bytes in the file.
  int64_t stored_bytes = 0;
  int64_t bytes = 0;  // Inflated.
  uint32_t crc = 0;
  bool deflated = false;
};

// All members, by place. A UserError where two share a name or a byte, where one lies outside of
// the file, is of a kind we do not read, or says it inflates to more than can be.
std::vector<ZipMember> zip_members(const InputFile& file);

// Gives the member's bytes to the sink, until that has enough. Those of a member that was given
// whole had the checksum that the directory says; else a UserError.
void read_member(const InputFile& file, const ZipMember& member, const ByteSink& sink);

// What stands before a stored member's bytes, which then begin at a multiple of 64, and behind all.
std::string zip_head(const ZipMember& member);
std::string zip_directory(std::span<const ZipMember> members, int64_t begin);

}  // namespace tidemark::io
