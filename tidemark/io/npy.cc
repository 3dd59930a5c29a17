#include "tidemark/io/npy.h"

#include <algorithm>
#include <vector>

#include "tidemark/api/ops.h"
#include "tidemark/io/npy_format.h"
#include "tidemark/io/save.h"
#include "tidemark/io/tensor_bytes.h"

namespace tidemark::io {
namespace {

NpyHead read_head(const InputFile& file) {
  std::vector<std::byte> head(static_cast<size_t>(std::min(kNpyStartBytes, file.bytes())));
  file.read(0, head);
  head.resize(static_cast<size_t>(npy_head_bytes(head, file.bytes(), file.call())));
  file.read(0, head);
  const NpyHead result = parse_npy_head(head, file.call());
  const int64_t there = file.bytes() - result.bytes;
  if (result.data_bytes > there) {
    file.call().bad(result.bytes, cat(result.dtype, result.shape, " takes ", result.data_bytes,
                                      " bytes, the file has ", there, " more"));
  }
  return result;
}

}  // namespace

Tensor load_npy(const std::string& path, LoadOptions options, Source at) {
  const SourceScope scope(at);
  const InputFile file({"load_npy", path, at});
  const NpyHead head = read_head(file);
  const auto mapping = options.copy ? nullptr : file.map();
  file.check_size();
  const Tensor stored = stored_tensor(file, mapping,
                                      {.dtype = head.dtype,
                                       .shape = head.stored_shape(),
                                       .offset = head.bytes,
                                       .big_endian = head.big_endian});
  return head.fortran_order ? transpose(stored, {}, at) : stored;
}

void save_npy(const std::string& path, const Tensor& tensor, Source at) {
  const SourceScope scope(at);
  const FileCall call{"save_npy", path, at};
  const std::string head = npy_head(tensor.dtype(), tensor.shape(), call);
  const Tensor dense = in_row_order(tensor, at);
  SavedFile file(call);
  file.write(head);
  file.write(bytes_of(dense, at));
  file.commit();
}

}  // namespace tidemark::io
