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

// The user's line that last took a traced size out of a shape.
struct NotedLine {
  int64_t word = 0;
  Source at = Source::none();
};
constinit thread_local NotedLine noted;

bool is_traced(int64_t word) { return Dim(word).is_traced(); }

// Sizes are far from overflow where memory is taken: there it is refused by name.
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

bool answered(SizeTable::Guard::Asked asked, int64_t a, int64_t b) {
  return asked == SizeTable::Guard::Asked::equal ? a == b : a < b;
}

// Lines of the library say nothing to users.
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
  const int64_t packed = kFirstWord - size.word();
  return packed / kNumbers == serial_ && packed % kNumbers < static_cast<int64_t>(exprs_.size());
}

size_t SizeTable::number(Dim size) const {
  if (!has(size)) {
    throw UserError("a size was used outside of the function it was traced in", Source::none(),
                    "sizes that are open have no value outside: give the tensor back and ask it");
  }
  return static_cast<size_t>((kFirstWord - size.word()) % kNumbers);
}

int64_t SizeTable::hint(Dim size) const {
  return size.is_traced() ? exprs_[number(size)].hint : size.word();
}

std::vector<int64_t> SizeTable::hints() const {
  std::vector<int64_t> values;
  for (const Expr& e : exprs_) values.push_back(e.hint);
  return values;
}

Dim SizeTable::add_argument(int64_t hint, std::string name) {
  const auto which = static_cast<int64_t>(exprs_.size());
  exprs_.push_back(
      {.is_argument = true, .a = static_cast<int64_t>(arguments_.size()), .hint = hint});
  arguments_.push_back(std::move(name));
  argument_words_.push_back(kFirstWord - (serial_ * kNumbers + which));
  return argument_words_.back();
}

int64_t SizeTable::intern(SizeOp op, int64_t a, int64_t b) {
  const auto [found, is_new] = known_.try_emplace({op, a, b}, 0);
  if (is_new) {
    const auto which = static_cast<int64_t>(exprs_.size());
    TIDEMARK_CHECK(which < kNumbers, "a function with ", which, " sizes");
    exprs_.push_back({.op = op, .a = a, .b = b, .hint = computed(op, hint(a), hint(b))});
    found->second = kFirstWord - (serial_ * kNumbers + which);
  }
  return found->second;
}

SizeTable::Sum SizeTable::sum_of(int64_t word) const {
  if (!is_traced(word)) return {.terms = {}, .number = word};
  const Expr& e = expr(word);
  Sum sum;
  if (!e.is_argument && e.op == SizeOp::add) {
    sum = sum_of(e.a);
    const Sum other = sum_of(e.b);
    for (const auto& [term, factor] : other.terms) sum.terms[term] += factor;
    sum.number += other.number;
  } else if (!e.is_argument && e.op == SizeOp::multiply && !is_traced(e.b)) {
    sum.terms[e.a] = e.b;
  } else {
    sum.terms[word] = 1;
  }
  return sum;
}

int64_t SizeTable::make(const Sum& sum) {
  int64_t made = 0;
  bool is_first = true;
  for (const auto& [term, factor] : sum.terms) {
    if (factor == 0) continue;
    const int64_t part = factor == 1 ? term : intern(SizeOp::multiply, term, factor);
    made = is_first ? part : intern(SizeOp::add, made, part);
    is_first = false;
  }
  if (is_first) return sum.number;
  return sum.number == 0 ? made : intern(SizeOp::add, made, sum.number);
}

void SizeTable::add_factors(int64_t word, std::vector<int64_t>& factors) const {
  const Expr& e = expr(word);
  if (e.is_argument || e.op != SizeOp::multiply) return factors.push_back(word);
  add_factors(e.a, factors);
  add_factors(e.b, factors);
}

int64_t SizeTable::product(std::vector<int64_t> factors) {
  std::sort(factors.begin(), factors.end());
  int64_t made = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) made = intern(SizeOp::multiply, made, factors[i]);
  return made;
}

// A number goes into the sum; products of sizes are kept in one order.
Dim SizeTable::multiply(int64_t a, int64_t b) {
  if (!is_traced(a)) std::swap(a, b);
  if (!is_traced(b)) {
    Sum sum = sum_of(a);
    for (auto& [term, factor] : sum.terms) factor *= b;
    sum.number *= b;
    return make(sum);
  }
  int64_t factor = 1;
  std::vector<int64_t> factors;
  for (const int64_t operand : {a, b}) {
    const Sum sum = sum_of(operand);
    if (sum.terms.size() == 1 && sum.number == 0) {
      factor *= sum.terms.begin()->second;
      add_factors(sum.terms.begin()->first, factors);
    } else {
      factors.push_back(operand);
    }
  }
  return make({.terms = {{product(std::move(factors)), factor}}, .number = 0});
}

// Exact divisions disappear.
Dim SizeTable::divide(int64_t a, int64_t b) {
  Sum sum = sum_of(a);
  if (!is_traced(b)) {
    const auto divides = [b](const auto& term) { return b != 0 && term.second % b == 0; };
    if (!std::all_of(sum.terms.begin(), sum.terms.end(), divides) || b == 0 || sum.number % b != 0)
      return intern(SizeOp::divide, a, b);
    for (auto& [term, factor] : sum.terms) factor /= b;
    sum.number /= b;
    return make(sum);
  }
  ask(Guard::Asked::equal, b, 0);
  if (a == b) return 1;
  const Sum by = sum_of(b);
  const bool plain = sum.terms.size() == 1 && sum.number == 0 && by.terms.size() == 1 &&
                     by.number == 0 && sum.terms.begin()->second % by.terms.begin()->second == 0;
  if (!plain) return intern(SizeOp::divide, a, b);
  std::vector<int64_t> above, below;
  add_factors(sum.terms.begin()->first, above);
  add_factors(by.terms.begin()->first, below);
  for (const int64_t factor : below) {
    const auto found = std::find(above.begin(), above.end(), factor);
    if (found == above.end()) return intern(SizeOp::divide, a, b);
    above.erase(found);
  }
  const int64_t factor = sum.terms.begin()->second / by.terms.begin()->second;
  if (above.empty()) return factor;
  return make({.terms = {{product(std::move(above)), factor}}, .number = 0});
}

Dim SizeTable::combine(SizeOp op, Dim first, Dim second) {
  int64_t a = first.word(), b = second.word();
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
      if (a == b) return first;
      if (a > b) std::swap(a, b);
      return intern(op, a, b);
  }
  return first;
}

std::vector<int64_t> SizeTable::evaluate(std::span<const int64_t> arguments) const {
  std::vector<int64_t> values;
  values.reserve(exprs_.size());
  const auto value = [&](int64_t word) { return is_traced(word) ? values[number(word)] : word; };
  for (const Expr& e : exprs_) {
    values.push_back(e.is_argument ? arguments[static_cast<size_t>(e.a)]
                                   : computed(e.op, value(e.a), value(e.b)));
  }
  return values;
}

// ---- guards -------------------------------------------------------------------------------------

bool SizeTable::ask(Guard::Asked asked, Dim a, Dim b) {
  if (a.word() == b.word()) return asked == Guard::Asked::equal;
  if (asked == Guard::Asked::equal && a.word() > b.word()) std::swap(a, b);
  const bool answer = answered(asked, hint(a), hint(b));
  if (!a.is_traced() && !b.is_traced()) return answer;
  if (asked_.try_emplace({asked, a.word(), b.word()}, answer).second)
    guards_.push_back({asked, answer, a, b});
  return answer;
}

void SizeTable::close(int64_t word, Source at) {
  if (!is_traced(word)) return;
  const Expr& e = expr(word);
  if (!e.is_argument) {
    close(e.a, at);
    close(e.b, at);
    return;
  }
  const auto which = static_cast<int32_t>(e.a);
  const bool is_known = std::any_of(closed_.begin(), closed_.end(),
                                    [which](const Closed& c) { return c.argument == which; });
  if (!is_known) closed_.push_back({which, at});
}

int64_t SizeTable::read(Dim size, Source at) {
  const int64_t value = hint(size);
  ask(Guard::Asked::equal, size, value);
  close(size.word(), at);
  return value;
}

const SizeTable::Guard* SizeTable::broken(std::span<const int64_t> values) const {
  const auto value = [&](Dim size) { return at(size, values).word(); };
  for (const Guard& guard : guards_) {
    if (answered(guard.asked, value(guard.a), value(guard.b)) != guard.answer) return &guard;
  }
  return nullptr;
}

// ---- text ---------------------------------------------------------------------------------------

std::string SizeTable::text(Dim size) const {
  if (!size.is_traced()) return cat(size.word());
  const Expr& e = expr(size.word());
  if (e.is_argument) return arguments_[static_cast<size_t>(e.a)];
  const std::string a = text(e.a), b = text(e.b);
  if (e.op == SizeOp::minimum || e.op == SizeOp::maximum)
    return cat(e.op == SizeOp::minimum ? "min(" : "max(", a, "; ", b, ")");
  if (e.op == SizeOp::add && !is_traced(e.b) && e.b < 0) return cat("(", a, ") - ", -e.b);
  constexpr const char* signs[] = {" + ", " - ", " * ", " / "};
  return cat("(", a, ")", signs[static_cast<int>(e.op)], is_traced(e.b) ? cat("(", b, ")") : b);
}

std::string SizeTable::text(const Guard& guard) const {
  const bool equal = guard.asked == Guard::Asked::equal;
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
  static SizeTable none;  // Has no sizes, so that asking it for one is the error of a foreign one.
  return current_sizes != nullptr ? *current_sizes : none;
}

}  // namespace

Dim smaller(Dim a, Dim b) {
  if (a.is_traced() || b.is_traced()) return table_of_trace().combine(SizeOp::minimum, a, b);
  return std::min(a.word(), b.word());
}

Dim larger(Dim a, Dim b) {
  if (a.is_traced() || b.is_traced()) return table_of_trace().combine(SizeOp::maximum, a, b);
  return std::max(a.word(), b.word());
}

bool is_less(Dim a, Dim b) {
  if (!a.is_traced() && !b.is_traced()) return a.word() < b.word();
  return table_of_trace().ask(SizeTable::Guard::Asked::less, a, b);
}

namespace detail {

int64_t read_size(int64_t word) {
  if (!is_traced(word)) {
    throw UserError("the value of an open size was asked for, but it is known only at the call",
                    Source::none(), "compute with it as a Dim, or fix the size in the signature");
  }
  const Source* const scope = SourceScope::current();
  const Source at = scope != nullptr ? *scope : noted.word == word ? noted.at : Source::none();
  return table_of_trace().read(word, at);
}

// Outside of a trace sizes are equal where that is proven: passes may not decide for one call.
bool equal_sizes(int64_t a, int64_t b) {
  return current_sizes != nullptr && current_sizes->ask(SizeTable::Guard::Asked::equal, a, b);
}

Dim combine_sizes(SizeOp op, Dim a, Dim b) { return table_of_trace().combine(op, a, b); }

void note_size_line(int64_t word, Source at) {
  if (SourceScope::current() == nullptr && !is_ours(at.file)) noted = {word, at};
}

std::ostream& print_size(std::ostream& out, Dim size) {
  if (current_sizes != nullptr && current_sizes->has(size)) out << current_sizes->hint(size);
  return out << '?';
}

}  // namespace detail
}  // namespace tidemark
