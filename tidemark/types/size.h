// Open sizes: expressions in the sizes of the arguments, known only at the call.
//
// While a function is traced, an open Dim is the number of an expression in a table. Equal
// expressions have the same number, so equal numbers mean provably equal sizes. Every expression
// also has a hint, its value in the call being traced. Decisions that were made by hints are
// recorded as guards: the trace serves every call whose sizes satisfy them.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/types/shape.h"

namespace tidemark {

class SizeTable {
 public:
  // A comparison of two sizes and its outcome.
  struct Guard {
    enum class Comparison : uint8_t { equal, less } comparison = Comparison::equal;
    bool answer = false;
    Dim a, b;
  };
  // A size of an argument that the function read as a number.
  struct Specialization {
    int32_t argument = 0;
    Source at = Source::none();
  };

  SizeTable();

  // `name` is for messages: "argument 0, dimension 1".
  Dim add_argument(int64_t hint, std::string name);
  Dim combine(detail::SizeOp op, Dim a, Dim b);
  bool compare(Guard::Comparison comparison, Dim a, Dim b);
  int64_t read(Dim size, Source at);
  int64_t hint(Dim size) const;
  // Of every expression.
  std::vector<int64_t> hints() const;

  bool empty() const { return arguments_.empty(); }
  const std::vector<Specialization>& closed() const { return closed_; }
  // The value of every expression for these argument sizes.
  std::vector<int64_t> evaluate(std::span<const int64_t> arguments) const;
  Dim at(Dim size, std::span<const int64_t> values) const {
    return size.is_traced() ? Dim(values[number(size)]) : size;
  }
  // The value of one size; negative if it is a difference below 0.
  int64_t value_of(Dim size, std::span<const int64_t> values) const;
  // The first guard that these values violate, or null.
  const Guard* broken(std::span<const int64_t> values) const;

  // "argument 0, dimension 1 * 4"
  std::string text(Dim size) const;
  // "argument 0, dimension 1 = 4"
  std::string text(const Guard& guard) const;
  // An estimate of its own memory.
  int64_t bytes() const;
  // Whether a size is one of this table's.
  bool has(Dim size) const;

 private:
  struct Expr {
    detail::SizeOp op = detail::SizeOp::add;
    SizeWord a = {}, b = {};
    int32_t argument = -1;  // Its number, of an argument.
    int64_t hint = 0;
  };
  // A constant plus a sum of terms, each with a factor.
  struct Sum {
    std::map<SizeWord, int64_t> terms;
    int64_t number = 0;
  };

  size_t number(Dim size) const;
  const Expr& expr(Dim size) const { return exprs_[number(size)]; }
  Dim word_of(size_t number) const;
  Dim intern(detail::SizeOp op, Dim a, Dim b);
  Sum sum_of(Dim size) const;
  Dim make(const Sum& sum);
  void add_factors(Dim size, std::vector<SizeWord>& factors) const;
  Dim product(std::vector<SizeWord> factors);
  Dim multiply(Dim a, Dim b);
  Dim divide(Dim a, Dim b);
  void close(Dim size, Source at);

  int64_t serial_;  // Distinguishes sizes of other traces.
  std::vector<Expr> exprs_;
  std::map<std::tuple<detail::SizeOp, SizeWord, SizeWord>, Dim> known_;
  std::vector<std::string> arguments_;
  std::vector<Guard> guards_;
  std::map<std::tuple<Guard::Comparison, SizeWord, SizeWord>, bool> answers_;
  std::vector<Specialization> closed_;
};

// Makes a table current on this thread while it traces.
class SizeScope {
 public:
  explicit SizeScope(SizeTable* table);
  ~SizeScope();
  SizeScope(const SizeScope&) = delete;
  SizeScope& operator=(const SizeScope&) = delete;

 private:
  SizeTable* previous_;
};

// The smaller and the larger of two sizes; they stay open. The comparison becomes a guard.
Dim smaller(Dim a, Dim b);
Dim larger(Dim a, Dim b);
bool is_less(Dim a, Dim b);

namespace detail {
std::ostream& print_size(std::ostream& out, Dim size);
}

}  // namespace tidemark
