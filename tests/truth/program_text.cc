#include "tests/truth/program_text.h"

#include <set>
#include <sstream>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"

namespace tidemark::truth {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// "[n,4]" without its brackets, in parts.
Words list_of(const std::string& text) {
  return text == "[]" ? Words() : split_text(text.substr(1, text.size() - 2), ',');
}

size_t block_count(const Statement& statement) {
  const std::string& op = statement.op;
  if (op == "switch_case") return std::stoul(statement.attrs.at("branches"));
  if (op == "cond" || op == "while_loop") return 2;
  static const std::set<std::string> with_body = {"scan",   "fori_loop",      "array_loop",
                                                  "map_fn", "vectorized_map", "recompute",
                                                  "call",   "custom_gradient"};
  return with_body.contains(op) ? 1 : 0;
}

// "t2 t3 = scan t1 carry=a2": outs, op, operands and attributes.
Statement statement_of(const Words& words) {
  Statement statement;
  size_t at = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "=") continue;
    statement.outs.assign(words.begin(), words.begin() + static_cast<int64_t>(i));
    at = i + 1;
  }
  statement.op = words[at++];
  for (; at < words.size(); ++at) {
    const size_t equals = words[at].find('=');
    if (equals == std::string::npos)
      statement.operands.push_back(words[at]);
    else
      statement.attrs[words[at].substr(0, equals)] = words[at].substr(equals + 1);
  }
  return statement;
}

class Reader {
 public:
  explicit Reader(std::istream& in) : in_(in) {}
  // The words of the next line that has some.
  bool next(Words& words) {
    for (std::string line; std::getline(in_, line);) {
      words = words_of(line);
      if (!words.empty()) return true;
    }
    return false;
  }
  Statement statement(const Words& words) {
    Statement statement = statement_of(words);
    for (size_t i = block_count(statement); i > 0; --i) statement.blocks.push_back(block());
    return statement;
  }

 private:
  // "body c x", statements, "give t".
  Block block() {
    Words words;
    if (!next(words)) throw UserError("a block is missing", Source::here());
    Block block;
    block.params.assign(words.begin() + 1, words.end());
    while (next(words)) {
      if (words[0] == "give") {
        block.gives.assign(words.begin() + 1, words.end());
        return block;
      }
      block.body.push_back(statement(words));
    }
    throw UserError("a block has no end", Source::here());
  }

  std::istream& in_;
};

Input input_of(const Words& words) {
  Input input{.name = words[1],
              .dtype = words[2],
              .shape = list_of(words[3]),
              .layout = words[4],
              .low = std::stod(words[5]),
              .high = std::stod(words[6])};
  input.differentiated = words.size() > 7 && words[7] == "diff";
  return input;
}

}  // namespace

std::vector<std::string> split_text(const std::string& text, char separator) {
  Words parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

bool read_program(std::istream& in, Program& program) {
  Reader reader(in);
  Words words;
  if (!reader.next(words)) return false;
  program = {};
  program.seed = std::stoull(words[1]);
  program.dtype = words[2];
  for (size_t i = 3; i < words.size(); ++i) {
    const Words parts = split_text(words[i], '=');
    for (const std::string& size : split_text(parts[1], ','))
      program.sizes[parts[0]].push_back(std::stoll(size));
  }
  while (reader.next(words)) {
    const Words rest(words.begin() + 1, words.end());
    if (words[0] == "size")
      program.size_sources.push_back({words[1], words[2], std::stoll(words[3])});
    else if (words[0] == "arg")
      program.arguments.push_back(input_of(words));
    else if (words[0] == "const")
      program.constants.push_back(input_of(words));
    else if (words[0] == "var")
      program.variables.push_back(input_of(words));
    else if (words[0] == "return")
      program.results = rest;
    else if (words[0] == "modes") {
      program.modes = rest;
      return true;
    } else {
      program.body.push_back(reader.statement(words));
    }
  }
  throw UserError("a program has no end", Source::here());
}

}  // namespace tidemark::truth
