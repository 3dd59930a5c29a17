#include "tidemark/types/size.h"

#include <algorithm>
#include <atomic>
#include <ostream>
#include <string_view>

#include "tidemark/base/error.h"

namespace tidemark {
namespace {

using detail::SizeOp;

constexpr int64_t kFirstWord = INT64_MIN / 2;
constexpr int kNumberBits = 24;
constexpr int64_t kNumbers = int64_t{1} << kNumberBits;

std::atomic<int64_t> next_serial{0};
constinit thread_local SizeTable* current_sizes = nullptr;

// The user's line that last read a traced size from a shape.
struct NotedLine {
  SizeWord word = {};
  Source at = Source::none();
};
constinit thread_local NotedLine noted;

int64_t packed(Dim size) { return kFirstWord - static_cast<int64_t>(size.word()); }

// Overflow is not checked here: shapes that large are refused, with a message, when memory is
// allocated.
int64_t computed(SizeOp op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case SizeOp::add:
      return static_cast<int64_t>(x + y);
    case SizeOp::subtract:
      return static_cast<int64_t>(x - y);
    case SizeOp::multiply:
      return static_cast<int64_t>(x * y);
    case SizeOp::divide:
      return b == 0 ? 0 : a / b;  // A guard excludes 0.
    case SizeOp::minimum:
      return std::min(a, b);
    case SizeOp::maximum:
      return std::max(a, b);
  }
  return 0;
}

bool holds(SizeTable::Guard::Comparison comparison, int64_t a, int64_t b) {
  return comparison == SizeTable::Guard::Comparison::equal ? a == b : a < b;
}

// Source lines of the library mean nothing to users.
bool is_ours(std::string_view file) {
  constexpr std::string_view here = __FILE__;
  constexpr std::string_view folder =
      here.substr(0, here.size() - std::string_view("types/size.cc").size());
  return file.starts_with(folder);
}

}  // namespace

SizeTable::SizeTable() : serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

// ---- expressions --------------------------------------------------------------------------------

bool SizeTable::has(Dim size) const {
  return packed(size) / kNumbers == serial_ &&
         packed(size) % kNumbers < static_cast<int64_t>(exprs_.size());
}

size_t SizeTable::number(Dim size) const {
  if (!has(size)) {
    throw UserError("a size was used outside of the function it was traced in", Source::none(),
                    "return the tensor from the function and read its shape there");
  }
  return static_cast<size_t>(packed(size) % kNumbers);
}

Dim SizeTable::word_of(size_t number) const {
  return Dim(SizeWord{kFirstWord - (serial_ * kNumbers + static_cast<int64_t>(number))});
}

int64_t SizeTable::hint(Dim size) const {
  return size.is_traced() ? expr(size).hint : size.number();
}

std::vector<int64_t> SizeTable::hints() const {
  std::vector<int64_t> values;
  for (const Expr& e : exprs_) values.push_back(e.hint);
  return values;
}

Dim SizeTable::add_argument(int64_t hint, std::string name) {
  exprs_.push_back({.argument = static_cast<int32_t>(arguments_.size()), .hint = hint});
  arguments_.push_back(std::move(name));
  return word_of(exprs_.size() - 1);
}

Dim SizeTable::intern(SizeOp op, Dim a, Dim b) {
  const auto [found, is_new] = known_.try_emplace({op, a.word(), b.word()}, 0);
  if (is_new) {
    const auto which = static_cast<int64_t>(exprs_.size());
    TIDEMARK_CHECK(which < kNumbers, "a function with ", which, " sizes");
    exprs_.push_back(
        {.op = op, .a = a.word(), .b = b.word(), .hint = computed(op, hint(a), hint(b))});
    found->second = word_of(exprs_.size() - 1);
  }
  return found->second;
}

SizeTable::Sum SizeTable::sum_of(Dim size) const {
  if (!size.is_traced()) return {.terms = {}, .number = size.number()};
  const Expr& e = expr(size);
  Sum sum;
  if (e.argument < 0 && e.op == SizeOp::add) {
    sum = sum_of(Dim(e.a));
    const Sum other = sum_of(Dim(e.b));
    for (const auto& [term, factor] : other.terms) sum.terms[term] += factor;
    sum.number += other.number;
  } else if (e.argument < 0 && e.op == SizeOp::multiply && !Dim(e.b).is_traced()) {
    sum.terms[e.a] = Dim(e.b).number();
  } else {
    sum.terms[size.word()] = 1;
  }
  return sum;
}

Dim SizeTable::make(const Sum& sum) {
  Dim made;
  bool is_first = true;
  for (const auto& [term, factor] : sum.terms) {
    if (factor == 0) continue;
    const Dim part = factor == 1 ? Dim(term) : intern(SizeOp::multiply, Dim(term), factor);
    made = is_first ? part : intern(SizeOp::add, made, part);
    is_first = false;
  }
  if (is_first) return sum.number;
  return sum.number == 0 ? made : intern(SizeOp::add, made, sum.number);
}

void SizeTable::add_factors(Dim size, std::vector<SizeWord>& factors) const {
  const Expr& e = expr(size);
  if (e.argument >= 0 || e.op != SizeOp::multiply) return factors.push_back(size.word());
  add_factors(Dim(e.a), factors);
  add_factors(Dim(e.b), factors);
}

Dim SizeTable::product(std::vector<SizeWord> factors) {
  std::sort(factors.begin(), factors.end());
  Dim made(factors[0]);
  for (size_t i = 1; i < factors.size(); ++i)
    made = intern(SizeOp::multiply, made, Dim(factors[i]));
  return made;
}

// A number goes into the sum; products of sizes are kept in one order.
Dim SizeTable::multiply(Dim a, Dim b) {
  if (!a.is_traced()) std::swap(a, b);
  if (!b.is_traced()) {
    Sum sum = sum_of(a);
    for (auto& [term, factor] : sum.terms) factor *= b.number();
    sum.number *= b.number();
    return make(sum);
  }
  int64_t factor = 1;
  std::vector<SizeWord> factors;
  for (const Dim operand : {a, b}) {
    const Sum sum = sum_of(operand);
    if (sum.terms.size() == 1 && sum.number == 0) {
      factor *= sum.terms.begin()->second;
      add_factors(Dim(sum.terms.begin()->first), factors);
    } else {
      factors.push_back(operand.word());
    }
  }
  return make({.terms = {{product(std::move(factors)).word(), factor}}, .number = 0});
}

// Exact divisions disappear.
Dim SizeTable::divide(Dim a, Dim b) {
  Sum sum = sum_of(a);
  if (!b.is_traced()) {
    const int64_t by = b.number();
    const auto divides = [by](const auto& term) { return by != 0 && term.second % by == 0; };
    if (!std::all_of(sum.terms.begin(), sum.terms.end(), divides) || by == 0 ||
        sum.number % by != 0)
      return intern(SizeOp::divide, a, b);
    for (auto& [term, factor] : sum.terms) factor /= by;
    sum.number /= by;
    return make(sum);
  }
  compare(Guard::Comparison::equal, b, 0);
  if (a.word() == b.word()) return 1;
  const Sum by = sum_of(b);
  const bool plain = sum.terms.size() == 1 && sum.number == 0 && by.terms.size() == 1 &&
                     by.number == 0 && sum.terms.begin()->second % by.terms.begin()->second == 0;
  if (!plain) return intern(SizeOp::divide, a, b);
  std::vector<SizeWord> above, below;
  add_factors(Dim(sum.terms.begin()->first), above);
  add_factors(Dim(by.terms.begin()->first), below);
  for (const SizeWord factor : below) {
    const auto found = std::find(above.begin(), above.end(), factor);
    if (found == above.end()) return intern(SizeOp::divide, a, b);
    above.erase(found);
  }
  const int64_t factor = sum.terms.begin()->second / by.terms.begin()->second;
  if (above.empty()) return factor;
  return make({.terms = {{product(std::move(above)).word(), factor}}, .number = 0});
}

Dim SizeTable::combine(SizeOp op, Dim a, Dim b) {
  switch (op) {
    case SizeOp::add:
    case SizeOp::subtract: {
      const int64_t sign = op == SizeOp::add ? 1 : -1;
      Sum sum = sum_of(a);
      const Sum other = sum_of(b);
      for (const auto& [term, factor] : other.terms) sum.terms[term] += sign * factor;
      sum.number += sign * other.number;
      return make(sum);
    }
    case SizeOp::multiply:
      return multiply(a, b);
    case SizeOp::divide:
      return divide(a, b);
    case SizeOp::minimum:
    case SizeOp::maximum:
      if (a.word() == b.word()) return a;
      if (a.word() > b.word()) std::swap(a, b);
      return intern(op, a, b);
  }
  return a;
}

int64_t SizeTable::value_of(Dim size, std::span<const int64_t> values) const {
  return size.is_traced() ? values[number(size)] : size.number();
}

std::vector<int64_t> SizeTable::evaluate(std::span<const int64_t> arguments) const {
  std::vector<int64_t> values;
  values.reserve(exprs_.size());
  const auto value = [&](SizeWord word) { return value_of(Dim(word), values); };
  for (const Expr& e : exprs_) {
    values.push_back(e.argument >= 0 ? arguments[static_cast<size_t>(e.argument)]
                                     : computed(e.op, value(e.a), value(e.b)));
  }
  return values;
}

// ---- guards -------------------------------------------------------------------------------------

bool SizeTable::compare(Guard::Comparison comparison, Dim a, Dim b) {
  if (a.word() == b.word()) return comparison == Guard::Comparison::equal;
  if (comparison == Guard::Comparison::equal && a.word() > b.word()) std::swap(a, b);
  const bool answer = holds(comparison, hint(a), hint(b));
  if (!a.is_traced() && !b.is_traced()) return answer;
  if (answers_.try_emplace({comparison, a.word(), b.word()}, answer).second)
    guards_.push_back({comparison, answer, a, b});
  return answer;
}

void SizeTable::close(Dim size, Source at) {
  if (!size.is_traced()) return;
  const Expr& e = expr(size);
  if (e.argument < 0) {
    close(Dim(e.a), at);
    close(Dim(e.b), at);
    return;
  }
  const bool is_known = std::any_of(closed_.begin(), closed_.end(), [&e](const Specialization& c) {
    return c.argument == e.argument;
  });
  if (!is_known) closed_.push_back({e.argument, at});
}

int64_t SizeTable::read(Dim size, Source at) {
  const int64_t value = hint(size);
  compare(Guard::Comparison::equal, size, value);
  close(size, at);
  return value;
}

const SizeTable::Guard* SizeTable::broken(std::span<const int64_t> values) const {
  const auto value = [&](Dim size) { return value_of(size, values); };
  for (const Guard& guard : guards_) {
    if (holds(guard.comparison, value(guard.a), value(guard.b)) != guard.answer) return &guard;
  }
  return nullptr;
}

// ---- text ---------------------------------------------------------------------------------------

std::string SizeTable::text(Dim size) const {
  if (!size.is_traced()) return cat(size.number());
  const Expr& e = expr(size);
  if (e.argument >= 0) return arguments_[static_cast<size_t>(e.argument)];
  const std::string a = text(Dim(e.a)), b = text(Dim(e.b));
  const bool is_open = Dim(e.b).is_traced();
  if (e.op == SizeOp::minimum || e.op == SizeOp::maximum)
    return cat(e.op == SizeOp::minimum ? "min(" : "max(", a, "; ", b, ")");
  if (e.op == SizeOp::add && !is_open && Dim(e.b).number() < 0)
    return cat("(", a, ") - ", -Dim(e.b).number());
  constexpr const char* signs[] = {" + ", " - ", " * ", " / "};
  return cat("(", a, ")", signs[static_cast<int>(e.op)], is_open ? cat("(", b, ")") : b);
}

std::string SizeTable::text(const Guard& guard) const {
  const bool equal = guard.comparison == Guard::Comparison::equal;
  const char* const sign =
      equal ? (guard.answer ? " = " : " is not ") : (guard.answer ? " < " : " >= ");
  return cat(text(guard.a), sign, text(guard.b));
}

int64_t SizeTable::bytes() const {
  constexpr size_t node = 64;  // Of a map.
  return static_cast<int64_t>(exprs_.size() * (sizeof(Expr) + node) +
                              guards_.size() * (sizeof(Guard) + node) +
                              arguments_.size() * sizeof(std::string));
}

// ---- the table of the trace ---------------------------------------------------------------------

SizeScope::SizeScope(SizeTable* table) : previous_(current_sizes) { current_sizes = table; }
SizeScope::~SizeScope() { current_sizes = previous_; }

namespace {

SizeTable& table_of_trace() {
  static SizeTable none;  // An empty table: any lookup is the error for a size of another trace.
  return current_sizes != nullptr ? *current_sizes : none;
}

}  // namespace

Dim smaller(Dim a, Dim b) {
  if (a.is_traced() || b.is_traced()) return table_of_trace().combine(SizeOp::minimum, a, b);
  return std::min(a.number(), b.number());
}

Dim larger(Dim a, Dim b) {
  if (a.is_traced() || b.is_traced()) return table_of_trace().combine(SizeOp::maximum, a, b);
  return std::max(a.number(), b.number());
}

bool is_less(Dim a, Dim b) {
  if (!a.is_traced() && !b.is_traced()) return a.word() < b.word();
  return table_of_trace().compare(SizeTable::Guard::Comparison::less, a, b);
}

namespace detail {

int64_t read_size(Dim size) {
  if (!size.is_traced()) {
    throw UserError("the value of an open size was read, but it is known only at the call",
                    Source::none(), "compute with it as a Dim, or write a number in the signature");
  }
  const Source* const scope = SourceScope::current();
  const Source at = scope != nullptr            ? *scope
                    : noted.word == size.word() ? noted.at
                                                : Source::none();
  return table_of_trace().read(size, at);
}

// Outside a trace only provably equal sizes are equal: passes must not specialise to one call.
bool equal_sizes(Dim a, Dim b) {
  return current_sizes != nullptr &&
         current_sizes->compare(SizeTable::Guard::Comparison::equal, a, b);
}

Dim combine_sizes(SizeOp op, Dim a, Dim b) { return table_of_trace().combine(op, a, b); }

void note_size_line(Dim size, Source at) {
  if (SourceScope::current() == nullptr && !is_ours(at.file)) noted = {size.word(), at};
}

void not_a_size(int64_t number) {
  throw UserError(cat(number, " is not a size"), Source::none(),
                  "sizes are at least 0, and their product must fit in 63 bits");
}

std::ostream& print_size(std::ostream& out, Dim size) {
  if (current_sizes != nullptr && current_sizes->has(size)) out << current_sizes->hint(size);
  return out << '?';
}

}  // namespace detail
std::ostream& operator<<(std::ostream& out, Dim dim) {
  if (dim.is_traced()) return detail::print_size(out, dim);
  if (dim.is_open()) return out << '?';
  return out << int64_t{dim};
}

}  // namespace tidemark
