// Reading and writing .npz files: one .npy member for each tensor.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/io/crc32.h"
#include "tidemark/io/npy.h"
#include "tidemark/io/npy_format.h"
#include "tidemark/io/save.h"
#include "tidemark/io/tensor_bytes.h"
#include "tidemark/io/zip.h"

namespace tidemark::io {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr size_t kMostNameBytes = 65535;

// The first bytes of a member, at most `count`.
std::vector<std::byte> front_of(const InputFile& file, const ZipMember& member, int64_t count) {
  std::vector<std::byte> front;
  const auto wanted = static_cast<size_t>(std::min(count, member.bytes));
  read_member(file, member, [&](std::span<const std::byte> bytes) {
    const size_t more = std::min(bytes.size(), wanted - front.size());
    front.insert(front.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(more));
    return front.size() < wanted;
  });
  return front;
}

NpyHead read_head(const InputFile& file, const ZipMember& member, const FileCall& call) {
  const std::vector<std::byte> start = front_of(file, member, kNpyStartBytes);
  const int64_t bytes = npy_head_bytes(start, member.bytes, call);
  const NpyHead head = parse_npy_head(front_of(file, member, bytes), call);
  if (head.bytes + head.data_bytes != member.bytes) {
    call.bad(head.bytes, cat(head.dtype, head.shape, " takes ", head.data_bytes,
                             " bytes, the member has ", member.bytes - head.bytes, " more"));
  }
  return head;
}

// Inflates into the tensor's own memory. It is charged at once, but the system provides pages only
// as they are filled.
Tensor inflated(const InputFile& file, const ZipMember& member, const NpyHead& head,
                const FileCall& call) {
  const StoredTensor stored{
      .dtype = head.dtype, .shape = head.stored_shape(), .big_endian = head.big_endian};
  const auto write = [&](std::span<std::byte> to) {
    int64_t before = head.bytes;  // Bytes of the header that are still to come.
    size_t filled = 0;
    read_member(file, member, [&](std::span<const std::byte> bytes) {
      const auto passed = std::min<int64_t>(before, std::ssize(bytes));
      before -= passed;
      const auto data = bytes.subspan(static_cast<size_t>(passed));
      if (!data.empty()) std::memcpy(to.data() + filled, data.data(), data.size());
      filled += data.size();
      return true;
    });
    to_host_order(to, stored);
    if (head.dtype == boolean) check_bools(to, head.bytes, call);
  };
  return from_callback(stored.shape, stored.dtype, write, call.at);
}

Tensor stored(const InputFile& file, const std::shared_ptr<const Mapping>& mapping,
              const ZipMember& member, const NpyHead& head) {
  read_member(file, member, [](std::span<const std::byte>) { return true; });  // Its checksum.
  return stored_tensor(file, mapping,
                       {.dtype = head.dtype,
                        .shape = head.stored_shape(),
                        .offset = member.data + head.bytes,
                        .big_endian = head.big_endian});
}

}  // namespace

std::map<std::string, Tensor> load_npz(const std::string& path, LoadOptions options, Source at) {
  const SourceScope scope(at);
  const InputFile file({"load_npz", path, at});
  const std::vector<ZipMember> members = zip_members(file);
  const auto mapping = options.copy ? nullptr : file.map();
  std::map<std::string, Tensor> tensors;
  for (const ZipMember& member : members) {
    const FileCall call{"load_npz", cat(path, ", member ", member.name), at};
    if (!member.name.ends_with(kSuffix))
      call.refuse("is not a .npy file", "remove it from the .npz");
    const NpyHead head = read_head(file, member, call);
    const Tensor tensor =
        member.deflated ? inflated(file, member, head, call) : stored(file, mapping, member, head);
    tensors.emplace(member.name.substr(0, member.name.size() - kSuffix.size()),
                    head.fortran_order ? transpose(tensor, {}, at) : tensor);
  }
  file.check_size();
  return tensors;
}

void save_npz(const std::string& path, const std::map<std::string, Tensor>& tensors, Source at) {
  const SourceScope scope(at);
  const FileCall call{"save_npz", path, at};
  std::vector<ZipMember> members;
  SavedFile file(call);
  for (const auto& [name, tensor] : tensors) {
    if (name.size() + kSuffix.size() > kMostNameBytes) {
      call.refuse(cat("cannot hold a name of ", name.size(), " bytes"),
                  "names in a zip file have at most 65531 bytes");
    }
    const std::string head = npy_head(tensor.dtype(), tensor.shape(), call);
    const Tensor dense = in_row_order(tensor, at);
    const std::span<const std::byte> bytes = bytes_of(dense, at);
    const int64_t all = static_cast<int64_t>(head.size()) + std::ssize(bytes);
    members.push_back({.name = name + std::string(kSuffix),
                       .begin = file.bytes(),
                       .stored_bytes = all,
                       .bytes = all,
                       .crc = crc32(bytes, crc32(std::as_bytes(std::span(head))))});
    file.write(zip_head(members.back()));
    file.write(head);
    file.write(bytes);
  }
  file.write(zip_directory(members, file.bytes()));
  file.commit();
}

}  // namespace tidemark::io
