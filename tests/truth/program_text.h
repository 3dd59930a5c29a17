// Programs as programs.py writes them: arguments, Variables, and statements whose operands are
// names.
//
//   program 17 f64 n=3,5
//   size n a0 0
//   arg a0 float [n,4] turned -2 2 diff
//   arg a1 i32 [3] plain 0 2
//   const q0 float [4] plain -1 1
//   var v0 float [4] -1 1
//   t1 = tanh a0
//   t2 t3 = scan carry=a2 xs=t1 reverse=1
//     body c4 x5
//     t6 = add c4 x5
//     give t6 t6
//   return t2 t3
//   modes eager function
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

namespace tidemark::truth {

struct Statement;

struct Block {
  std::vector<std::string> params;
  std::vector<Statement> body;
  std::vector<std::string> gives;
};

struct Statement {
  std::vector<std::string> outs;
  std::string op;
  std::vector<std::string> operands;  // Names, or numbers; "t3!" gives the value away.
  std::map<std::string, std::string> attrs;
  std::vector<Block> blocks;
};

// An argument, a Variable or a captured tensor.
struct Input {
  std::string name;
  std::string dtype;               // "float" is the program's own.
  std::vector<std::string> shape;  // Sizes: "3", "n", "2*n+1".
  std::string layout = "plain";
  double low = 0, high = 0;
  bool differentiated = false;
};

struct SizeSource {
  std::string name, argument;
  int64_t axis = 0;
};

struct Program {
  uint64_t seed = 0;
  std::string dtype;
  std::map<std::string, std::vector<int64_t>> sizes;  // What each open size is, call by call.
  std::vector<SizeSource> size_sources;
  std::vector<Input> arguments, variables;
  std::vector<Input> constants;  // Tensors made before a function is, which it captures.
  std::vector<Statement> body;
  std::vector<std::string> results;
  std::vector<std::string> modes;
};

// The next program of a file; false at its end.
bool read_program(std::istream& in, Program& program);

std::vector<std::string> split_text(const std::string& text, char separator);

}  // namespace tidemark::truth
