// The bytes that a dataset holds during an iteration, stage by stage.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/base/text.h"

namespace tidemark::data {

struct StageBytes {
  std::string stage;  // "batch(64)"
  Source at = Source::none();
  Bytes bytes;        // If not fully known: the part that is.
  bool known = true;  // False before the first element of a generator, or of a filter's cache.
  std::string note;   // "1 batch of (f32[64, 784], i32[64])"
};

// The bytes of one iteration over a dataset, including the element that the user holds. The tensors
// that the dataset was made from are not counted. Prints as a table.
class DatasetPlan {
 public:
  explicit DatasetPlan(std::vector<StageBytes> stages) : stages_(std::move(stages)) {}

  // In the order of the pipeline.
  const std::vector<StageBytes>& stages() const { return stages_; }
  bool is_known() const;
  // The peak of the iteration; a UserError if it is not known yet.
  Bytes total(Source at = Source::here()) const;
  // The known part of it.
  Bytes known_bytes() const;
  std::string to_text() const;

 private:
  std::vector<StageBytes> stages_;
};
std::ostream& operator<<(std::ostream& out, const DatasetPlan& plan);

}  // namespace tidemark::data
