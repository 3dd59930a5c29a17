// NumPy's files: one tensor in .npy, several by name in .npz. docs/files.md tells more.
#pragma once

#include <map>
#include <string>

#include "tidemark/api/tensor.h"
#include "tidemark/base/source.h"

namespace tidemark::io {

struct LoadOptions {
  // False: the file is mapped, and tensors show its bytes where they lie as elements need it; they
  // are not charged, and the system reads what is used. Another process that truncates the file
  // meanwhile ends this one. True: read into bytes of the tensors' own.
  bool copy = false;
};

// Versions 1 to 3, of either byte order. What NumPy wrote in Fortran's order is a transposed view.
Tensor load_npy(const std::string& path, LoadOptions options = {}, Source at = Source::here());
// Whole or not at all: a save that fails, or is killed, leaves the file as it was.
void save_npy(const std::string& path, const Tensor& tensor, Source at = Source::here());

// The tensors of an .npz by name, as np.savez and np.savez_compressed write them. Those that are
// not compressed are mapped as above; NumPy seldom puts them where elements need it, save_npz does.
std::map<std::string, Tensor> load_npz(const std::string& path, LoadOptions options = {},
                                       Source at = Source::here());
// Not compressed, one tensor after another: takes no bytes but for a view that is not dense.
void save_npz(const std::string& path, const std::map<std::string, Tensor>& tensors,
              Source at = Source::here());

}  // namespace tidemark::io
