// io::load: the weights of a model from a safetensors file that another program wrote, such as one
// exported from PyTorch.
//
//   td::io::RestoreReport report = td::io::load("model.safetensors", model, {.map = {
//       {"h.*.mlp.c_fc.weight", "blocks/*/up/kernel", {.transpose = true}},
//       {"h.*.attn.c_attn.weight",
//        {"blocks/*/attention/query/kernel", "blocks/*/attention/key/kernel",
//         "blocks/*/attention/value/kernel"},
//        {.split_axis = 1}},
//       {"*.bias", "*/bias"}}});
//
// or with a function of a stored name and its tensor that returns Variables' names and values.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/io/checkpoint.h"

namespace tidemark::io {

struct MapHow {
  bool transpose = false;  // The last two axes, before a split: PyTorch's Linear is [out, in].
  int64_t split_axis = 0;  // Where a tensor becomes several of equal size.
};

// A row of a table. Each `*` in `from` stands for any text, and the same text replaces the `*` of
// the same number in `to`.
struct MapRow {
  MapRow(std::string from, std::string to, MapHow how = {})
      : from(std::move(from)), to{std::move(to)}, how(how) {}
  MapRow(std::string from, std::initializer_list<std::string> to, MapHow how = {})
      : from(std::move(from)), to(to), how(how) {}
  MapRow(std::string from, std::vector<std::string> to, MapHow how = {})
      : from(std::move(from)), to(std::move(to)), how(how) {}
  // Left out on purpose.
  MapRow(std::string from) : from(std::move(from)), how() {}

  std::string from;
  std::vector<std::string> to;  // Several: the tensor is split. None: it is left out.
  MapHow how;
};

// Values for Variables by name. An empty list: the tensor is not used.
using MappedTensors = std::vector<std::pair<std::string, Tensor>>;

// A table, of which the first row that fits counts, or a function. Names that no row fits count as
// they are.
class WeightMap {
 public:
  WeightMap() = default;
  WeightMap(std::initializer_list<MapRow> rows) : WeightMap(std::vector<MapRow>(rows)) {}
  WeightMap(std::vector<MapRow> rows);
  template <class F>
    requires std::is_invocable_r_v<MappedTensors, const F&, const std::string&, const Tensor&>
  WeightMap(F function) : function_(std::move(function)) {}

  MappedTensors operator()(const std::string& name, const Tensor& tensor, Source at) const;
  // Whether leaving this name out was intended.
  bool ignores(const std::string& name) const;

 private:
  std::vector<MapRow> rows_;
  std::function<MappedTensors(const std::string&, const Tensor&)> function_;
};

struct WeightsOptions {
  WeightMap map = {};
  bool partial = false;  // What is left over on either side is no error.
};

// Reads the mapped file and assigns the model's Variables, each cast to its dtype; a Variable
// without a shape takes that of its tensor. Nothing is assigned unless all names and shapes fit.
// The report names what was left over on both sides.
RestoreReport load_variables(const std::string& path, const NamedVariables& variables,
                             const WeightsOptions& options, Source at = Source::here());

template <class Model>
RestoreReport load(const std::string& path, const Model& model, const WeightsOptions& options = {},
                   Source at = Source::here()) {
  NamedVariables found;
  tidemark::detail::VariablesOnce once;
  tidemark::detail::see_variables(
      model, [&](const tidemark::detail::VariablePath& place, const Variable& variable) {
        if (once.add(variable)) found.emplace_back(place.text(), variable);
      });
  return load_variables(path, found, options, at);
}

}  // namespace tidemark::io
