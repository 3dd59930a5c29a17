// `tidemark ops`: the functions on tensors, and the ops that programs consist of.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "tidemark/base/json.h"
#include "tidemark/base/text.h"
#include "tidemark/calls/callables.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/typing.h"
#include "tidemark/types/dtype.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark ops [WORD...] [--json | --markdown]

Lists the functions on tensors, which run one op or several ("composite"), and the ops that occur
only in programs: name, family, accepted dtypes, whether they have a gradient, and a description.
With words, lists those that have every word in their name, family or description, with their
signatures.

options:
  --json       print a list of JSON objects, with arguments, their kinds and defaults
  --markdown   print signatures and descriptions as a page: docs/ops.md

exit code: 0 done; 1 no op has the words; 2 bad usage.
)";

// A call, an op, or both.
struct Entry {
  std::string_view name, brief;
  const OpDef* op = nullptr;
  const Callable* call = nullptr;
};

const char* name_of(Family family) {
  switch (family) {
    case Family::pointwise:
      return "pointwise";
    case Family::reduce:
      return "reduce";
    case Family::row:
      return "row";
    case Family::view:
      return "view";
    case Family::piece:
      return "piece";
    case Family::index:
      return "index";
    case Family::scan:
      return "scan";
    case Family::contract:
      return "contract";
    case Family::linalg:
      return "linalg";
    case Family::random:
      return "random";
    case Family::source:
      return "source";
    case Family::control:
      return "control";
    case Family::effect:
      break;
  }
  return "effect";
}

const char* name_of(TypeSet set) {
  switch (set) {
    case TypeSet::any:
      return "any";
    case TypeSet::numbers:
      return "numbers";
    case TypeSet::floats:
      return "floats";
    case TypeSet::integers:
      return "integers";
    case TypeSet::bits:
      return "integers, bool";
    case TypeSet::booleans:
      break;
  }
  return "bool";
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view family_of(const Entry& entry) {
  return entry.op != nullptr ? name_of(entry.op->family) : "composite";
}

// Functions, then the ops that have none.
std::vector<Entry> all_entries() {
  std::vector<Entry> list;
  for (const Callable& call : callables()) list.push_back({call.name, call.brief, call.op, &call});
  for (const OpDef& op : catalogue()) {
    const bool is_called = std::any_of(callables().begin(), callables().end(),
                                       [&](const Callable& call) { return call.op == &op; });
    if (!is_called) list.push_back({op.name, op.brief, &op, nullptr});
  }
  return list;
}

std::vector<Entry> entries_with(const std::vector<std::string>& words) {
  std::vector<Entry> found = all_entries();
  std::erase_if(found, [&](const Entry& entry) {
    const std::string text = lowered(cat(entry.name, ' ', family_of(entry), ' ', entry.brief));
    return !std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return text.find(lowered(word)) != std::string::npos;
    });
  });
  return found;
}

// "td::softmax(x: tensor, axis: int = -1) -> tensor"
std::string written(const Callable& call) {
  return cat("td::", call.name, '(', call.arguments, ')', call.results.empty() ? "" : " -> ",
             call.results);
}

void print_text(const std::vector<Entry>& entries, bool with_calls) {
  size_t width = 4;
  for (const Entry& entry : entries) width = std::max(width, entry.name.size());
  const auto row = [&](std::string_view name, std::string_view family, std::string_view dtypes,
                       std::string_view gradient, std::string_view brief) {
    std::cout << std::left << std::setw(static_cast<int>(width) + 2) << name << std::setw(11)
              << family << std::setw(16) << dtypes << std::setw(10) << gradient << brief << '\n';
  };
  row("name", "family", "dtypes", "gradient", "gives");
  for (const Entry& entry : entries) {
    const OpDef* op = entry.op;
    row(entry.name, family_of(entry), op != nullptr ? name_of(op->accepts) : "-",
        op == nullptr         ? "-"
        : op->grad != nullptr ? "yes"
                              : "no",
        entry.brief);
    if (with_calls && entry.call != nullptr) std::cout << "  " << written(*entry.call) << '\n';
  }
}

void print_call(const Callable& call) {
  std::cout << ", \"arguments\": [";
  bool first = true;
  for (const Argument& argument : call.argument_list()) {
    std::cout << (first ? "" : ", ") << "{\"name\": " << json_quoted(argument.name)
              << ", \"kind\": " << json_quoted(argument.kind);
    if (!argument.fallback.empty())
      std::cout << ", \"default\": " << json_quoted(argument.fallback);
    std::cout << '}';
    first = false;
  }
  std::cout << "], \"results\": " << json_quoted(call.results);
}

void print_op(const OpDef& op) {
  std::cout << ", \"operands\": " << op.arity << ", \"dtypes\": [";
  bool first = true;
  for (int dtype = 0; dtype < kDTypes; ++dtype) {
    // Others are promoted to one of these, or refused.
    if (!computes_in(op, static_cast<DType>(dtype))) continue;
    std::cout << (first ? "" : ", ") << json_quoted(name(static_cast<DType>(dtype)));
    first = false;
  }
  std::cout << "], \"gradient\": " << (op.grad != nullptr ? "true" : "false");
  if (op.grad == nullptr) std::cout << ", \"why\": " << json_quoted(op.no_gradient);
}

void print_json(const std::vector<Entry>& entries) {
  std::cout << '[';
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    std::cout << (i == 0 ? "" : ",\n ") << "{\"name\": " << json_quoted(entry.name)
              << ", \"family\": " << json_quoted(family_of(entry))
              << ", \"brief\": " << json_quoted(entry.brief);
    if (entry.call != nullptr) print_call(*entry.call);
    if (entry.op != nullptr) print_op(*entry.op);
    std::cout << '}';
  }
  std::cout << "]\n";
}

// Escapes |, which would end a cell of the table.
std::string as_cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, 1, '\\');
  return text;
}

void print_markdown(const std::vector<Entry>& entries) {
  std::cout << R"(# Functions on tensors

Generated by `tidemark ops --markdown > docs/ops.md`; a test compares the page, the catalogue and the headers. An argument with a default may be left out; fields of options, as in `td::sort(x, -1, {.descending = true})`, are listed as arguments.

| function | result |
|---|---|
)";
  for (const Entry& entry : entries)
    if (entry.call != nullptr)
      std::cout << "| `" << as_cell(written(*entry.call)) << "` | "
                << as_cell(std::string(entry.brief)) << " |\n";
}

}  // namespace

int ops_command(Arguments arguments) {
  if (asked_for_help(arguments, kHelp)) return 0;
  bool json = false, markdown = false;
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    if (argument == "--json")
      json = true;
    else if (argument == "--markdown")
      markdown = true;
    else if (argument.starts_with("-"))
      unknown_option("ops", argument);
    else
      words.push_back(argument);
  }
  const std::vector<Entry> found = entries_with(words);
  if (json)
    print_json(found);
  else if (markdown)
    print_markdown(found);
  else if (!found.empty())
    print_text(found, !words.empty());
  else
    std::cerr << "tidemark: ops: no op has all of these words; `tidemark ops` lists every op\n";
  return found.empty() ? 1 : 0;
}

}  // namespace tidemark::tools
