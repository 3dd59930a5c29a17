// What a dataset holds while it is walked, stage by stage.
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
  Bytes bytes;        // Where it is not known: what is known of it now.
  bool known = true;  // False before the first element of a generator, or of a filter's cache.
  std::string note;   // "1 batch of (f32[64, 784], i32[64])"
};

// Bytes of one walk over a dataset, the element in the user's hands included. What the tensors hold
// that the dataset was made of is not in it: they are there anyway. Prints as a table.
class DatasetPlan {
 public:
  explicit DatasetPlan(std::vector<StageBytes> stages) : stages_(std::move(stages)) {}

  // In the order in which elements pass.
  const std::vector<StageBytes>& stages() const { return stages_; }
  bool is_known() const;
  // The most that the walk holds at once; a UserError where it is not known yet.
  Bytes total(Source at = Source::here()) const;
  // What is known of it.
  Bytes known_bytes() const;
  std::string to_text() const;

 private:
  std::vector<StageBytes> stages_;
};
std::ostream& operator<<(std::ostream& out, const DatasetPlan& plan);

}  // namespace tidemark::data
