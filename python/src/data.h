// Datasets of Python structures.
//
// The library's stages see elements as lists of tensors (data/element.h). What else there is to a
// structure is a Tree: that of the dataset if all elements have the same by construction, else one
// that each element carries as its form.
#pragma once

#include <memory>
#include <optional>

#include "bindings.h"
#include "held.h"
#include "tidemark/data/pipeline.h"
#include "tree.h"

namespace tidemark::python {

class Dataset {
 public:
  // No tree: elements are single tensors. Needs no GIL. `holds` is a `_Holds` (holds.h) that nobody
  // else has this reference to: it knows the functions of this stage and of those before it, and
  // keeps the collector from them as long as anything holds a copy of this Dataset.
  Dataset(data::StagePtr stage, SharedTree tree, std::optional<data::Cap> cap = {},
          Held holds = {});
  // Threads of the library may wait for the GIL while the last stage ends; so it ends without it.
  ~Dataset();
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;

  const data::StagePtr& stage() const { return pipeline_->stage(); }
  const std::optional<data::Cap>& cap() const { return pipeline_->cap(); }
  const SharedTree& tree() const { return tree_; }
  data::Pipeline& pipeline() const { return *pipeline_; }
  // The functions of its stages, by a new reference. Needs the GIL.
  Held functions() const { return holds_ ? Held(holds_.get()) : Held(); }
  const Held& holds() const { return holds_; }

  // As a checkpoint sees it.
  data::Position position() const { return pipeline_->position(); }
  void restore(data::Position position) const { pipeline_->restore(position, Source::none()); }

 private:
  std::shared_ptr<data::Pipeline> pipeline_;
  SharedTree tree_;
  Held holds_;
};

}  // namespace tidemark::python
