#include "tidemark/io/load.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/io/safetensors.h"

namespace tidemark::io {
namespace {

// The texts that the stars of a pattern stand for, or nothing if the name does not fit. The first
// stars take as little as they can.
std::optional<std::vector<std::string>> fit(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return pattern == name ? std::optional<std::vector<std::string>>(std::in_place) : std::nullopt;
  if (!name.starts_with(pattern.substr(0, star))) return std::nullopt;
  const std::string_view rest = name.substr(star);
  for (size_t length = 0; length <= rest.size(); ++length) {
    auto others = fit(pattern.substr(star + 1), rest.substr(length));
    if (!others) continue;
    others->insert(others->begin(), std::string(rest.substr(0, length)));
    return others;
  }
  return std::nullopt;
}

std::string filled(const std::string& pattern, const std::vector<std::string>& texts) {
  std::string name;
  size_t next = 0;
  for (const char letter : pattern)
    name += letter == '*' && next < texts.size() ? texts[next++] : std::string(1, letter);
  return name;
}

Tensor turned(const Tensor& x, const std::string& name, Source at) {
  if (x.rank() < 2)
    throw UserError(
        cat("io::load: \"", name, "\" is ", x.dtype(), x.shape(), " and cannot be transposed"), at,
        "leave .transpose out of its row");
  std::vector<int64_t> order;
  for (int64_t axis = 0; axis < x.rank(); ++axis) order.push_back(axis);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

std::vector<Tensor> parts_of(const Tensor& x, const std::string& name, const MapRow& row,
                             Source at) {
  const Tensor whole = row.how.transpose ? turned(x, name, at) : x;
  const auto parts = static_cast<int64_t>(row.to.size());
  if (parts == 1) return {whole};
  const int64_t axis = row.how.split_axis;
  if (axis < 0 || axis >= whole.rank() || int64_t{whole.shape()[axis]} % parts != 0)
    throw UserError(cat("io::load: \"", name, "\", ", whole.dtype(), whole.shape(),
                        ", cannot be split into ", parts, " equal parts along axis ", axis),
                    at, "name another .split_axis, or split it in a function");
  return split(whole, parts, axis);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 8; ++i) text += cat(i == 0 ? "" : ", ", names[i]);
  if (names.size() > 8) text += cat(" and ", names.size() - 8, " more");
  return text;
}

struct Given {
  Tensor value;
  std::string stored;  // The name in the file.
};

// Throws unless everything fits.
void check(const std::string& path, const RestoreReport& report,
           const std::vector<std::string>& differing, bool partial, Source at) {
  const bool whole = report.missing.empty() && report.unexpected.empty();
  if (differing.empty() && (whole || partial)) return;
  std::string text = cat("io::load: ", path, " does not fit the model:");
  if (!report.missing.empty() && !partial)
    text += cat("\n  the file has nothing for: ", listed(report.missing));
  if (!report.unexpected.empty() && !partial)
    text += cat("\n  the model has no place for: ", listed(report.unexpected));
  for (const std::string& line : differing) text += cat("\n  ", line);
  throw UserError(
      text, at,
      differing.empty()
          ? "add rows to .map, of a name alone for what is not needed; {.partial = true} "
            "loads what fits"
          : "transpose or split them in .map");
}

}  // namespace

WeightMap::WeightMap(std::vector<MapRow> rows) : rows_(std::move(rows)) {}

bool WeightMap::ignores(const std::string& name) const {
  if (function_) return true;  // It has seen the name.
  for (const MapRow& row : rows_)
    if (fit(row.from, name)) return row.to.empty();
  return false;
}

MappedTensors WeightMap::operator()(const std::string& name, const Tensor& tensor,
                                    Source at) const {
  if (function_) {
    const UserCode user;
    return function_(name, tensor);
  }
  for (const MapRow& row : rows_) {
    const auto texts = fit(row.from, name);
    if (!texts) continue;
    if (row.to.empty()) return {};
    MappedTensors mapped;
    const std::vector<Tensor> parts = parts_of(tensor, name, row, at);
    for (size_t i = 0; i < parts.size(); ++i)
      mapped.emplace_back(filled(row.to[i], *texts), parts[i]);
    return mapped;
  }
  return {{name, tensor}};
}

RestoreReport load_variables(const std::string& path, const NamedVariables& variables,
                             const WeightsOptions& options, Source at) {
  const SourceScope scope(at);
  std::map<std::string, Given> given;
  std::set<std::string> names, left_over;
  for (const auto& [name, variable] : variables) names.insert(name);
  for (const auto& [name, tensor] : load_safetensors(path, {}, at)) {
    const MappedTensors mapped = options.map(name, tensor, at);
    if (mapped.empty() && !options.map.ignores(name)) left_over.insert(name);
    for (const auto& [to, value] : mapped) {
      if (!names.contains(to)) left_over.insert(name);
      const auto [place, is_new] = given.emplace(to, Given{value, name});
      if (!is_new)
        throw UserError(cat("io::load: \"", place->second.stored, "\" and \"", name,
                            "\" are both mapped to \"", to, "\""),
                        at, "map each to a name of its own");
    }
  }
  RestoreReport report;
  std::vector<std::string> differing;
  for (const auto& [name, variable] : variables) {
    const auto found = given.find(name);
    if (found == given.end()) {
      report.missing.push_back(name);
      continue;
    }
    report.loaded.push_back(name);
    const Tensor& value = found->second.value;
    if (variable.has_shape() && variable.shape() != value.shape())
      differing.push_back(cat(name, " is ", variable.shape(), ", \"", found->second.stored,
                              "\" gives ", value.shape()));
  }
  report.unexpected.assign(left_over.begin(), left_over.end());
  check(path, report, differing, options.partial, at);
  for (const auto& [name, variable] : variables) {
    const auto found = given.find(name);
    if (found != given.end()) variable.assign(cast(found->second.value, variable.dtype()));
  }
  return report;
}

}  // namespace tidemark::io
