#include "tidemark/io/checkpoint.h"

#include <algorithm>
#include <set>

#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
#include "tidemark/io/safetensors_file.h"

namespace tidemark::io {
namespace detail {

void CheckpointItems::add(std::string name, const Variable& variable) {
  if (!once_.add(variable)) return;
  CheckpointItem item{.name = std::move(name), .dtype = variable.dtype(), .variable = variable};
  if (variable.has_shape()) item.shape = variable.shape();
  item.get = [variable] { return variable.value(); };
  items_.push_back(std::move(item));
}

void CheckpointItems::add(std::string name, Tensor& tensor) {
  if (!tensor.has_value()) {
    throw UserError(cat("Checkpoint: the Tensor \"", name, "\" holds nothing"), Source::none(),
                    "give it a value of the dtype it is to have");
  }
  add_place(
      std::move(name), tensor.dtype(), {}, [&tensor] { return tensor; },
      [&tensor](const Tensor& value) { tensor = value; });
}

void CheckpointItems::add_place(std::string name, DType dtype, std::optional<Shape> shape,
                                std::function<Tensor()> get,
                                std::function<void(const Tensor&)> set) {
  items_.push_back({.name = std::move(name),
                    .dtype = dtype,
                    .shape = std::move(shape),
                    .get = std::move(get),
                    .set = std::move(set)});
}

std::string joined(const std::string& name, const std::string& path) {
  return path.empty() ? name : name + "/" + path;
}

}  // namespace detail

namespace {

using detail::CheckpointItem;
using detail::CheckpointItems;
using detail::NamedModel;

constexpr const char* kRandom = "random";
constexpr int64_t kPieceBytes = 4 << 20;

CheckpointItem random_item() {
  return {.name = kRandom,
          .dtype = DType::i64,
          .shape = random::state().shape(),
          .get = [] { return random::state(); },
          .set = [](const Tensor& state) { random::set_state(state); }};
}

std::string type_text(DType dtype, const std::optional<Shape>& shape) {
  return shape ? cat(dtype, *shape) : cat(dtype, " of any shape");
}

// The first few of a list, and how many more there are.
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += cat(i == 0 ? "" : ", ", names[i]);
  return names.size() > kMost ? cat(text, ", and ", names.size() - kMost, " more") : text;
}

// ---- what is loaded from where ------------------------------------------------------------------

using Stored = std::map<std::string, const SafetensorsEntry*>;

std::string renamed(const std::string& name, const std::map<std::string, std::string>& rename) {
  for (size_t end = name.size(); end != std::string::npos && end > 0;) {
    const auto found = rename.find(name.substr(0, end));
    if (found != rename.end()) return found->second + name.substr(end);
    end = name.rfind('/', end - 1);
  }
  return name;
}

Stored stored_by_name(const SafetensorsFile& file, const RestoreOptions& options) {
  Stored stored;
  for (const SafetensorsEntry& entry : file.head().tensors) {
    const std::string name = renamed(entry.name, options.rename);
    if (name == kRandom && !options.random) continue;
    const auto [place, fresh] = stored.emplace(name, &entry);
    if (!fresh) {
      file.file().call().refuse(cat("has \"", place->second->name, "\" and \"", entry.name,
                                    "\", which are both called \"", name, "\" here"),
                                "mend {.rename = ...}");
    }
  }
  return stored;
}

struct Match {
  const CheckpointItem* item;
  const SafetensorsEntry* entry;
};

bool agrees(const Match& match) {
  return match.item->dtype == match.entry->dtype &&
         (!match.item->shape || *match.item->shape == match.entry->shape);
}

// Whether all but those who build is in the file as it is here.
bool others_agree(const std::vector<CheckpointEntry>& entries, const Stored& stored, bool partial) {
  CheckpointItems items;
  for (const CheckpointEntry& entry : entries)
    if (!entry.build()) entry.list(items);
  return std::all_of(items.list().begin(), items.list().end(), [&](const CheckpointItem& item) {
    const auto found = stored.find(item.name);
    return found == stored.end() ? partial : agrees({&item, found->second});
  });
}

// An optimizer has state for those Variables of the others that the file has state for: it declares
// it now. What has no shape yet first gets that of the file.
void build_state(const std::vector<CheckpointEntry>& entries, const Stored& stored) {
  for (const CheckpointEntry& builder : entries) {
    if (!builder.build()) continue;
    NamedModel model;
    std::set<std::string> wanted;  // "kernel", "up/kernel", ... of "optimizer/m/up/kernel".
    for (const auto& [name, entry] : stored) {
      if (!name.starts_with(builder.name() + "/")) continue;
      for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
        wanted.insert(name.substr(at + 1));
    }
    for (const CheckpointEntry& other : entries) {
      if (other.build()) continue;
      CheckpointItems items;
      other.list(items);
      for (const CheckpointItem& item : items.list()) {
        if (!item.variable || !item.name.starts_with(other.name() + "/")) continue;
        const std::string name = item.name.substr(other.name().size() + 1);
        if (wanted.erase(name) == 0) continue;
        const auto found = stored.find(item.name);
        if (!item.shape && found != stored.end() && found->second->dtype == item.dtype)
          item.variable->set_shape(found->second->shape);
        if (item.variable->has_shape()) model.variables.emplace_back(name, *item.variable);
      }
    }
    builder.build()(model);
  }
}

// ---- assigning ----------------------------------------------------------------------------------

Tensor read_into_own_bytes(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  return stored_tensor(
      file.file(), nullptr,
      {.dtype = entry.dtype, .shape = entry.shape, .offset = file.head().bytes + entry.begin});
}

// Piece by piece, and each piece of the file is let go before the next comes: no more than one is
// in memory beside the Variable.
void assign_in_place(const SafetensorsFile& file, const Match& match) {
  const Tensor value = file.tensor(*match.entry);
  const Variable& variable = *match.item->variable;
  const int64_t begin = file.head().bytes + match.entry->begin;
  const int64_t bytes = match.entry->end - match.entry->begin;
  const auto forget = [&](int64_t from, int64_t to) {
    file.mapping()->forget(begin + from, begin + to);
  };
  if (bytes <= kPieceBytes || value.shape()[0] == 1) {
    variable.assign(value);
    return forget(0, bytes);
  }
  const int64_t rows = value.shape()[0], row_bytes = bytes / rows;
  const int64_t step = std::max<int64_t>(1, kPieceBytes / row_bytes);
  for (int64_t row = 0; row < rows; row += step) {
    const Slice slice{.begin = row, .end = std::min(rows, row + step)};
    variable.assign_slice(slice, value[slice]);
    forget(row * row_bytes, *slice.end * row_bytes);
  }
}

void assign_all(const SafetensorsFile& file, const std::vector<Match>& matches) {
  // All that can fail comes first: bytes that are still to be had, and bools to be looked at.
  std::vector<Tensor> made(matches.size());
  for (size_t i = 0; i < matches.size(); ++i) {
    const CheckpointItem& item = *matches[i].item;
    const SafetensorsEntry& entry = *matches[i].entry;
    if (!item.variable || !tidemark::detail::assigns_in_place(*item.variable))
      made[i] = read_into_own_bytes(file, entry);
    else if (entry.dtype == DType::boolean)
      (void)file.tensor(entry);
  }
  file.file().check_size();
  for (size_t i = 0; i < matches.size(); ++i) {
    const CheckpointItem& item = *matches[i].item;
    if (!item.variable)
      item.set(made[i]);
    else if (made[i].has_value())
      item.variable->assign(std::move(made[i]));
    else
      assign_in_place(file, matches[i]);
  }
}

[[noreturn]] void refuse(const FileCall& call, const Restored& result,
                         const std::vector<std::string>& differing, bool partial) {
  std::string text = "is not of this checkpoint:";
  if (!result.missing.empty() && !partial)
    text += cat("\n  not in the file: ", listed(result.missing));
  if (!result.unexpected.empty() && !partial)
    text += cat("\n  only in the file: ", listed(result.unexpected));
  for (const std::string& line : differing) text += cat("\n  ", line);
  call.refuse(text, differing.empty()
                        ? "{.partial = true} takes what is in both, {.rename = {{\"old\", "
                          "\"new\"}}} what goes by another name"
                        : "make the model as it was when it was saved");
}

void check_names(const std::vector<CheckpointItem>& items, const FileCall& call) {
  std::set<std::string> names;
  for (const CheckpointItem& item : items) {
    if (names.insert(item.name).second) continue;
    call.refuse(cat("cannot hold two tensors called \"", item.name, "\""),
                "give each entry a name of its own; \"random\" is the random generator's");
  }
}

}  // namespace

detail::CheckpointItems Checkpoint::items() const {
  CheckpointItems items;
  for (const CheckpointEntry& entry : entries_) entry.list(items);
  return items;
}

void Checkpoint::save(const std::string& path, const SaveOptions& options, Source at) const {
  const SourceScope scope(at);
  const FileCall call{"Checkpoint::save", path, at};
  for (const CheckpointEntry& entry : entries_) {
    CheckpointItems own;
    entry.list(own);
    if (own.list().empty()) {
      call.refuse(cat("would hold nothing of \"", entry.name(), "\": no Variable is found in it"),
                  "a closure cannot be looked into: give the layers that it uses");
    }
  }
  const CheckpointItems found = items();
  std::vector<CheckpointItem> all = found.list();
  if (options.random) all.push_back(random_item());
  check_names(all, call);
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, const CheckpointItem*> by_name;
  for (const CheckpointItem& item : all) {
    if (item.variable && !item.shape) {
      call.refuse(cat("cannot hold \"", item.name, "\", which has no shape yet"),
                  "call the model once, or td::nn::build(model, td::spec({...})), before it is "
                  "saved");
    }
    entries.push_back({.name = item.name,
                       .dtype = item.dtype,
                       .shape = item.shape ? *item.shape : item.get().shape()});
    by_name.emplace(item.name, &item);
  }
  write_safetensors(call, std::move(entries), options.metadata,
                    [&](const std::string& name) { return by_name.at(name)->get(); });
}

Restored Checkpoint::load(const std::string& path, const RestoreOptions& options, Source at) const {
  const SourceScope scope(at);
  const SafetensorsFile file({"Checkpoint::load", path, at}, false);
  Stored stored = stored_by_name(file, options);
  if (others_agree(entries_, stored, options.partial)) build_state(entries_, stored);
  const CheckpointItems found = items();
  std::vector<CheckpointItem> all = found.list();
  if (stored.contains(kRandom)) all.push_back(random_item());
  check_names(all, file.file().call());

  Restored result;
  std::vector<Match> matches;
  std::vector<std::string> differing;
  for (const CheckpointItem& item : all) {
    const auto place = stored.find(item.name);
    if (place == stored.end()) {
      result.missing.push_back(item.name);
      continue;
    }
    matches.push_back({&item, place->second});
    result.loaded.push_back(item.name);
    if (!agrees(matches.back())) {
      differing.push_back(cat(item.name, " is ", type_text(item.dtype, item.shape),
                              ", the file has ", place->second->dtype, place->second->shape));
    }
    stored.erase(place);
  }
  for (const auto& [name, entry] : stored) result.unexpected.push_back(name);
  const bool whole = result.missing.empty() && result.unexpected.empty();
  if (!differing.empty() || (!whole && !options.partial))
    refuse(file.file().call(), result, differing, options.partial);
  assign_all(file, matches);
  return result;
}

}  // namespace tidemark::io
