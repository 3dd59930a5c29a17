#include "tidemark/io/checkpoint.h"

#include <algorithm>
#include <cstring>
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
  items_.push_back(std::move(item));
}

void CheckpointItems::add(std::string name, Tensor& tensor) {
  if (!tensor.has_value()) {
    throw UserError(cat("Checkpoint: the Tensor \"", name, "\" is empty"), Source::none(),
                    "assign a value of the dtype it is to have");
  }
  add_place(
      std::move(name), tensor.dtype(), {}, [&tensor] { return tensor; },
      [&tensor](const Tensor& value) {
        return CheckpointChange{[&tensor, value] { tensor = value; }};
      });
}

void CheckpointItems::add_place(std::string name, DType dtype, std::optional<Shape> shape,
                                std::function<Tensor()> get,
                                std::function<CheckpointChange(const Tensor&)> prepare) {
  items_.push_back({.name = std::move(name),
                    .dtype = dtype,
                    .shape = std::move(shape),
                    .get = std::move(get),
                    .prepare = std::move(prepare)});
}

std::string joined(const std::string& name, const std::string& path) {
  return path.empty() ? name : name + "/" + path;
}

}  // namespace detail

namespace {

using detail::CheckpointChange;
using detail::CheckpointItem;
using detail::CheckpointItems;
using detail::NamedModel;
using tidemark::detail::VariablesTogether;

constexpr const char* kRandom = "random";
constexpr int64_t kPieceBytes = 4 << 20;
constexpr int64_t kReadBytes = 256 << 10;

// If functions draw random numbers, the generator's state is a Variable, and is saved and loaded
// with the others.
CheckpointItem random_item(const std::optional<Variable>& generator) {
  return {
      .name = kRandom, .dtype = DType::i64, .shape = Shape{3}, .variable = generator, .get = [] {
        return random::state();
      }};
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
                                    "\", which are both renamed to \"", name, "\""),
                                "change {.rename = ...}");
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

// Whether the file matches all entries, apart from those that declare state for others.
bool others_agree(const std::vector<CheckpointEntry>& entries, const Stored& stored, bool partial) {
  CheckpointItems items;
  for (const CheckpointEntry& entry : entries)
    if (!entry.build()) entry.list(items);
  return std::all_of(items.list().begin(), items.list().end(), [&](const CheckpointItem& item) {
    const auto found = stored.find(item.name);
    return found == stored.end() ? partial : agrees({&item, found->second});
  });
}

// Makes an optimizer declare state for each Variable for which the file has state. Variables
// without a shape first take that of the file.
void build_state(const std::vector<CheckpointEntry>& entries, const Stored& stored,
                 std::vector<Variable>& shaped) {
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
        if (!item.shape && found != stored.end() && found->second->dtype == item.dtype) {
          shaped.push_back(*item.variable);
          item.variable->set_shape(found->second->shape);
        }
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

// Reads the mapped bytes once before they are copied, so that an unreadable disk or an invalid bool
// is an error now.
void check_readable(const SafetensorsFile& file, const SafetensorsEntry& entry,
                    std::span<std::byte> buffer) {
  for (int64_t at = entry.begin; at < entry.end; at += std::ssize(buffer)) {
    const auto bytes = static_cast<size_t>(std::min<int64_t>(entry.end - at, std::ssize(buffer)));
    const std::span<std::byte> piece = buffer.first(bytes);
    const int64_t offset = file.head().bytes + at;
    file.file().read(offset, piece);
    if (entry.dtype == DType::boolean) check_bools(piece, offset, file.file().call());
  }
}

// Copies in pieces and drops each piece of the mapping before the next one, so that at most one is
// resident besides the Variable.
void copy_from_mapping(const SafetensorsFile& file, const SafetensorsEntry& entry,
                       std::span<std::byte> to) noexcept {
  const int64_t begin = file.head().bytes + entry.begin;
  for (int64_t at = 0; at < std::ssize(to); at += kPieceBytes) {
    const int64_t bytes = std::min<int64_t>(kPieceBytes, std::ssize(to) - at);
    std::memcpy(to.data() + at, file.mapping()->data() + begin + at, static_cast<size_t>(bytes));
    file.mapping()->forget(begin + at, begin + at + bytes);
  }
}

// The prepared assignment of an item: a value that is in memory, a change to install, or else the
// item's bytes in the mapping.
struct Assignment {
  const Match* match = nullptr;
  VariablesTogether::NextValue next = {};
  CheckpointChange change = {};
};

Assignment staged(const SafetensorsFile& file, const Match& match,
                  const VariablesTogether& variables, std::span<std::byte> buffer) {
  const CheckpointItem& item = *match.item;
  Assignment made{.match = &match};
  if (item.variable && variables.can_fill(*item.variable)) {
    check_readable(file, *match.entry, buffer);
    return made;
  }
  made.next = {read_into_own_bytes(file, *match.entry), match.entry->shape};
  if (!item.variable) made.change = item.prepare(made.next.value);
  return made;
}

// Runs the changes that may fail, all or none of them.
void put_undoable(const std::vector<Assignment>& all) {
  size_t done = 0;
  try {
    for (; done < all.size(); ++done)
      if (all[done].change.undo) all[done].change.put();
  } catch (...) {
    while (done-- > 0)
      if (all[done].change.undo) all[done].change.undo();
    throw;
  }
}

void put(const SafetensorsFile& file, Assignment& made,
         const VariablesTogether& variables) noexcept {
  const CheckpointItem& item = *made.match->item;
  if (made.change.put) {
    if (!made.change.undo) made.change.put();
  } else if (made.next.value.has_value()) {
    variables.put(*item.variable, made.next);
  } else {
    copy_from_mapping(file, *made.match->entry, variables.fill(*item.variable));
  }
}

void assign_all(const SafetensorsFile& file, const std::vector<Match>& matches) {
  std::vector<Variable> variables;
  for (const Match& match : matches)
    if (match.item->variable) variables.push_back(*match.item->variable);
  std::vector<Assignment> all;
  all.reserve(matches.size());
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(kReadBytes, file.file().bytes())));
  const VariablesTogether together(variables);
  for (const Match& match : matches) all.push_back(staged(file, match, together, buffer));
  file.file().check_size();
  put_undoable(all);
  // From here on nothing can fail.
  for (Assignment& each : all) put(file, each, together);
}

// Declares and shapes Variables for which the file has state; undone unless keep() is called.
class BuiltState {
 public:
  BuiltState(const std::vector<CheckpointEntry>& entries, const Stored& stored) {
    for (const CheckpointEntry& entry : entries)
      if (std::function<void()> undo = entry.build_undo()) undos_.push_back(std::move(undo));
    try {
      build_state(entries, stored, shaped_);
    } catch (...) {
      take_back();
      throw;
    }
  }
  ~BuiltState() {
    if (!kept_) take_back();
  }
  BuiltState(const BuiltState&) = delete;
  BuiltState& operator=(const BuiltState&) = delete;
  void keep() { kept_ = true; }

 private:
  void take_back() noexcept {
    for (const auto& undo : undos_) undo();
    for (const Variable& variable : shaped_) tidemark::detail::forget_shape(variable);
  }
  std::vector<std::function<void()>> undos_;
  std::vector<Variable> shaped_;
  bool kept_ = false;
};

[[noreturn]] void refuse(const FileCall& call, const RestoreReport& result,
                         const std::vector<std::string>& differing, bool partial) {
  std::string text = "does not match this checkpoint:";
  if (!result.missing.empty() && !partial)
    text += cat("\n  not in the file: ", listed(result.missing));
  if (!result.unexpected.empty() && !partial)
    text += cat("\n  only in the file: ", listed(result.unexpected));
  for (const std::string& line : differing) text += cat("\n  ", line);
  call.refuse(text, differing.empty() ? "{.partial = true} restores only what is in both; {.rename "
                                        "= {{\"old\", \"new\"}}} maps names of the file"
                                      : "build the model as it was when it was saved");
}

void check_names(const std::vector<CheckpointItem>& items, const FileCall& call) {
  std::set<std::string> names;
  for (const CheckpointItem& item : items) {
    if (names.insert(item.name).second) continue;
    call.refuse(cat("cannot hold two tensors called \"", item.name, "\""),
                "give each entry a name of its own; \"random\" is the random generator's");
  }
}

// A consistent snapshot of all items. Items that change under the locks of Variables, as the random
// generator does, are read under these locks too.
std::map<std::string, Tensor> values_of(const std::vector<CheckpointItem>& items, Source at) {
  std::vector<Variable> variables;
  for (const CheckpointItem& item : items)
    if (item.variable) variables.push_back(*item.variable);
  std::map<std::string, Tensor> values;
  const auto read_rest = [&] {
    for (const CheckpointItem& item : items)
      if (!item.variable) values.emplace(item.name, item.get());
  };
  std::vector<Tensor> read = tidemark::detail::values_together(variables, read_rest, at);
  auto next = read.begin();
  for (const CheckpointItem& item : items)
    if (item.variable) values.emplace(item.name, std::move(*next++));
  return values;
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
      call.refuse(cat("would contain nothing of \"", entry.name(), "\": it has no Variables"),
                  "Variables captured by a closure are not found: give the layers that it uses");
    }
  }
  const CheckpointItems found = items();
  std::vector<CheckpointItem> all = found.list();
  if (options.random) all.push_back(random_item(tidemark::detail::generator_if_variable()));
  check_names(all, call);
  for (const CheckpointItem& item : all) {
    if (item.variable && !item.shape) {
      call.refuse(cat("cannot hold \"", item.name, "\", which has no shape yet"),
                  "call the model once, or td::nn::build(model, td::spec({...})), before it is "
                  "saved");
    }
  }
  std::map<std::string, Tensor> values = values_of(all, at);
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, value] : values)
    entries.push_back({.name = name, .dtype = value.dtype(), .shape = value.shape()});
  // Each value is released once it is written, so that assignments meanwhile need fewer copies.
  write_safetensors(call, std::move(entries), options.metadata,
                    [&](const std::string& name) { return std::move(values.at(name)); });
}

RestoreReport Checkpoint::load(const std::string& path, const RestoreOptions& options,
                               Source at) const {
  const SourceScope scope(at);
  const SafetensorsFile file({"Checkpoint::load", path, at}, false);
  Stored stored = stored_by_name(file, options);
  std::optional<BuiltState> built;
  if (others_agree(entries_, stored, options.partial)) built.emplace(entries_, stored);
  const CheckpointItems found = items();
  std::vector<CheckpointItem> all = found.list();
  if (stored.contains(kRandom))
    all.push_back(random_item(tidemark::detail::generator_as_variable()));
  check_names(all, file.file().call());

  RestoreReport result;
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
  if (built) built->keep();
  return result;
}

}  // namespace tidemark::io
