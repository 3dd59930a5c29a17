// NumPy's files: one tensor in .npy, several by name in .npz. See docs/files.md.
#pragma once

#include <map>
#include <string>

#include "tidemark/api/tensor.h"
#include "tidemark/base/source.h"

namespace tidemark::io {

struct LoadOptions {
  // False: the file is mapped, and tensors refer to its bytes if they are aligned; they are not
  // charged, and the system loads pages on use. If another process truncates the file, this one is
  // killed. True: the file is read into the tensors' own memory.
  bool copy = false;
};

// Reads versions 1 to 3, in either byte order. An array in Fortran order becomes a transposed view.
Tensor load_npy(const std::string& path, LoadOptions options = {}, Source at = Source::here());
// The save is atomic: if it fails or is killed, the file is unchanged.
void save_npy(const std::string& path, const Tensor& tensor, Source at = Source::here());

// The tensors of an .npz by name, as np.savez and np.savez_compressed write them. Uncompressed ones
// are mapped as above if they are aligned, which save_npz ensures and NumPy does not.
std::map<std::string, Tensor> load_npz(const std::string& path, LoadOptions options = {},
                                       Source at = Source::here());
// Writes one tensor after another, uncompressed and without a copy, except of views that are not
// dense.
void save_npz(const std::string& path, const std::map<std::string, Tensor>& tensors,
              Source at = Source::here());

}  // namespace tidemark::io
