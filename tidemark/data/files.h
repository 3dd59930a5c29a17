// Files of datasets as tensors: CSV tables, and the binary files of MNIST and CIFAR. A file that is
// compressed by gzip is recognised by its first bytes.
//
//   td::data::Table table = td::data::load_csv("houses.csv.gz", {.dtypes = {{"rooms", td::i32}}});
//   auto rows = td::data::from_tensor_slices(std::pair{table["area"], table["price"]});
//   td::Tensor images = td::data::load_idx("train-images-idx3-ubyte.gz");  // u8[60000, 28, 28]
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tidemark/api/tensor.h"

namespace tidemark::data {

// The columns of a table by name.
struct Table : std::map<std::string, Tensor> {
  using std::map<std::string, Tensor>::operator[];
  std::vector<std::string> names = {};  // In the order of the file.
};

struct CSVOptions {
  bool header = true;  // Else columns are called "0", "1", ...
  char separator = ',';
  std::vector<std::string> columns = {};     // Those that are read; default all.
  std::map<std::string, DType> dtypes = {};  // Default: i64 if all are whole numbers, else f32.
  // The value of empty fields, by column. Default: NaN, and an error in a column whose dtype is
  // named and has no NaN.
  std::map<std::string, double> missing = {};
  std::string na = {};  // A word that counts as empty, such as "NA".
};

// Numbers and the words true and false. Fields may be in double quotes. A column whose dtype is
// named holds only its values: 3.5 in a column of i32 is an error, which names the line.
Table load_csv(const std::string& path, const CSVOptions& options = {}, Source at = Source::here());

// An IDX file, as MNIST's: u8, i8, i16, i32, f32 or f64, of any rank.
Tensor load_idx(const std::string& path, Source at = Source::here());

// A batch of CIFAR-10 or, with two labels, CIFAR-100.
struct CifarBatch {
  Tensor images;  // u8[n, 32, 32, 3]
  Tensor labels;  // u8[n]
};
CifarBatch load_cifar(const std::string& path, int64_t labels = 1, Source at = Source::here());

}  // namespace tidemark::data
