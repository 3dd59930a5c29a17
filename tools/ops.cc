// `tidemark ops`: the catalogue.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "tidemark/base/json.h"
#include "tidemark/base/text.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/typing.h"
#include "tidemark/types/dtype.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark ops [WORD...] [--json]

Lists the ops: name, family, which dtypes they take, whether they have a gradient, and what they
give. With words, those that have every word in their name, family or description.

options:
  --json   the same for programs: a list of objects

exit code: 0 done; 1 no op has the words; 2 bad usage.
)";

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

std::vector<const OpDef*> ops_with(const std::vector<std::string>& words) {
  std::vector<const OpDef*> found;
  for (const OpDef& op : catalogue()) {
    const std::string text = lowered(cat(op.name, ' ', name_of(op.family), ' ', op.brief));
    if (std::all_of(words.begin(), words.end(), [&](const std::string& word) {
          return text.find(lowered(word)) != std::string::npos;
        }))
      found.push_back(&op);
  }
  return found;
}

void print_text(const std::vector<const OpDef*>& ops) {
  size_t width = 4;
  for (const OpDef* op : ops) width = std::max(width, op->name.size());
  const auto row = [&](std::string_view name, std::string_view family, std::string_view dtypes,
                       std::string_view gradient, std::string_view brief) {
    std::cout << std::left << std::setw(static_cast<int>(width) + 2) << name << std::setw(11)
              << family << std::setw(16) << dtypes << std::setw(10) << gradient << brief << '\n';
  };
  row("name", "family", "dtypes", "gradient", "gives");
  for (const OpDef* op : ops) {
    row(op->name, name_of(op->family), name_of(op->accepts), op->grad != nullptr ? "yes" : "no",
        op->brief);
  }
}

void print_json(const std::vector<const OpDef*>& ops) {
  std::cout << '[';
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpDef& op = *ops[i];
    std::cout << (i == 0 ? "" : ",\n ") << "{\"name\": " << json_quoted(op.name)
              << ", \"family\": " << json_quoted(name_of(op.family))
              << ", \"brief\": " << json_quoted(op.brief) << ", \"operands\": " << op.arity
              << ", \"dtypes\": [";
    bool first = true;
    for (int dtype = 0; dtype < kDTypes; ++dtype) {
      // Others are promoted to one of these, or refused.
      if (!computes_in(op, static_cast<DType>(dtype))) continue;
      std::cout << (first ? "" : ", ") << json_quoted(name(static_cast<DType>(dtype)));
      first = false;
    }
    std::cout << "], \"gradient\": " << (op.grad != nullptr ? "true" : "false");
    if (op.grad == nullptr) std::cout << ", \"why\": " << json_quoted(op.no_gradient);
    std::cout << '}';
  }
  std::cout << "]\n";
}

}  // namespace

int ops_command(Arguments arguments) {
  if (asked_for_help(arguments, kHelp)) return 0;
  bool json = false;
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    if (argument == "--json")
      json = true;
    else if (argument.starts_with("-"))
      unknown_option("ops", argument);
    else
      words.push_back(argument);
  }
  const std::vector<const OpDef*> found = ops_with(words);
  if (json)
    print_json(found);
  else if (!found.empty())
    print_text(found);
  else
    std::cerr << "tidemark: ops: none has all of these words; `tidemark ops` lists every op\n";
  return found.empty() ? 1 : 0;
}

}  // namespace tidemark::tools
