// Sizes that are known only at the call: expressions in the sizes of the arguments.
//
// While a function is traced, a Dim that is open is the number of an expression in a table. Equal
// expressions have one number, so equal numbers mean provably equal sizes. Every expression also
// has a value in the call that is being traced, its hint. What was decided by hints is kept as
// guards: the trace serves every call for whose sizes they come out the same.
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
  // Something that was asked of two sizes, and the answer.
  struct Guard {
    enum class Asked : uint8_t { equal, less } asked = Asked::equal;
    bool answer = false;
    Dim a, b;
  };
  // An argument that the function read as a number.
  struct Closed {
    int32_t argument = 0;
    Source at = Source::none();
  };

  SizeTable();

  // `name` says which size it is: "argument 0, dimension 1".
  Dim add_argument(int64_t hint, std::string name);
  Dim combine(detail::SizeOp op, Dim a, Dim b);
  bool ask(Guard::Asked asked, Dim a, Dim b);
  int64_t read(Dim size, Source at);
  int64_t hint(Dim size) const;
  // Of every expression.
  std::vector<int64_t> hints() const;

  bool empty() const { return arguments_.empty(); }
  const std::vector<Closed>& closed() const { return closed_; }
  // The value of every expression, for these sizes of the arguments.
  std::vector<int64_t> evaluate(std::span<const int64_t> arguments) const;
  Dim at(Dim size, std::span<const int64_t> values) const {
    return size.is_traced() ? Dim(values[number(size)]) : size;
  }
  // As a number, which may be below 0 where it is a difference of sizes.
  int64_t value_of(Dim size, std::span<const int64_t> values) const;
  // The first guard that these values do not keep, or null.
  const Guard* broken(std::span<const int64_t> values) const;

  // "argument 0, dimension 1 * 4"
  std::string text(Dim size) const;
  // "argument 0, dimension 1 = 4"
  std::string text(const Guard& guard) const;
  // About what it takes in memory.
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
  // A sum of terms, each with a factor, and a number.
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

  int64_t serial_;  // Tells a size of another trace.
  std::vector<Expr> exprs_;
  std::map<std::tuple<detail::SizeOp, SizeWord, SizeWord>, Dim> known_;
  std::vector<std::string> arguments_;
  std::vector<Guard> guards_;
  std::map<std::tuple<Guard::Asked, SizeWord, SizeWord>, bool> asked_;
  std::vector<Closed> closed_;
};

// The table of what this thread is tracing, for its life.
class SizeScope {
 public:
  explicit SizeScope(SizeTable* table);
  ~SizeScope();
  SizeScope(const SizeScope&) = delete;
  SizeScope& operator=(const SizeScope&) = delete;

 private:
  SizeTable* previous_;
};

// Sizes that stay open where they are. The comparison is a guard, and closes nothing.
Dim smaller(Dim a, Dim b);
Dim larger(Dim a, Dim b);
bool is_less(Dim a, Dim b);

namespace detail {
std::ostream& print_size(std::ostream& out, Dim size);
}

}  // namespace tidemark
