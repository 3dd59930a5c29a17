#include "tidemark/account/accounts.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"

namespace tidemark::detail {
namespace {

// An address that no other thread has.
const void* this_thread() {
  static constinit thread_local char mark = 0;
  return &mark;
}

// Names are copies: the library that made a function may be unloaded.
struct LineKey {
  std::string file, function;
  unsigned line = 0;
};

// Numbers the lines of one kind in order of first use.
struct Lines {
  std::vector<std::unique_ptr<LineKey>> keys;

  size_t number(Source at) {
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i]->line == at.line && keys[i]->file == (at.known() ? at.file : "")) return i;
    auto key = std::make_unique<LineKey>();
    if (at.known()) *key = {at.file, at.function, at.line};
    keys.push_back(std::move(key));
    return keys.size() - 1;
  }
  Source at(size_t number) const {
    const LineKey& key = *keys[number];
    if (key.file.empty()) return Source::none();
    return Source::here(key.file.c_str(), key.line, key.function.c_str());
  }
};

}  // namespace

// Never destroyed: functions and tapes in static storage are destroyed after main.
struct AllFunctions {
  Mutex lock;
  Lines lines;
  std::vector<FunctionLine> accounts;  // As many as lines, always.

  // The first function made there gives the name; those of an optimizer called in it come later.
  size_t line_of(Source at, const std::string& name) {
    // Before the line gets a number; nothing can fail after that.
    if (accounts.size() == accounts.capacity()) accounts.reserve(2 * accounts.size() + 16);
    FunctionLine line;
    line.name = name;
    const size_t number = lines.number(at);
    if (number < accounts.size()) return number;
    line.at = lines.at(number);
    accounts.push_back(std::move(line));
    return number;
  }

  static AllFunctions& get() {
    static constinit MadeOnce<AllFunctions> made;
    return made.get();
  }
};

struct AllTapes {
  Mutex lock;
  Lines lines;
  TapeAccount* first = nullptr;

  static AllTapes& get() {
    static constinit MadeOnce<AllTapes> made;
    return made.get();
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const TapeAccount* tape = first; tape != nullptr; tape = tape->next_) visit(*tape);
  }
};

// ---- functions ----------------------------------------------------------------------------------

std::vector<FunctionLine> function_lines() {
  AllFunctions& all = AllFunctions::get();
  const std::lock_guard guard(all.lock);
  return all.accounts;
}

void read_function_lines(std::vector<FunctionSums>& by_number) {
  AllFunctions& all = AllFunctions::get();
  const std::lock_guard guard(all.lock);
  by_number.resize(all.accounts.size());
  for (size_t i = 0; i < by_number.size(); ++i) by_number[i] = all.accounts[i].sums;
}

FunctionAccount::FunctionAccount(const std::string& name, Source at, Bytes limit) {
  AllFunctions& all = AllFunctions::get();
  const std::lock_guard guard(all.lock);
  line_ = all.line_of(at.resolve(), name);
  now_.functions = 1;
  now_.limit_bytes = limit.count;
  add(now_, 1);
}

FunctionAccount::~FunctionAccount() {
  const std::lock_guard guard(AllFunctions::get().lock);
  add(now_, -1);
}

// Totals since the start never decrease.
void FunctionAccount::add(const FunctionSums& sums, int64_t sign) {
  FunctionSums& line = AllFunctions::get().accounts[line_].sums;
  line.functions += sign * sums.functions;
  line.traces += sign * sums.traces;
  line.bytes += sign * sums.bytes;
  line.limit_bytes += sign * sums.limit_bytes;
  line.captured += sign * sums.captured;
  line.captured_bytes += sign * sums.captured_bytes;
}

void FunctionAccount::set(const FunctionSums& now) {
  AllFunctions& all = AllFunctions::get();
  const std::lock_guard guard(all.lock);
  add(now_, -1);
  const FunctionSums before = now_;
  now_ = now;
  now_.functions = before.functions;
  now_.limit_bytes = before.limit_bytes;
  add(now_, 1);
  all.accounts[line_].sums.traced += now.traced - before.traced;
  all.accounts[line_].sums.code_bytes += now.code_bytes - before.code_bytes;
}

void FunctionAccount::set_reason(const std::string& reason) {
  AllFunctions& all = AllFunctions::get();
  const std::lock_guard guard(all.lock);
  all.accounts[line_].reason = reason;
}

// ---- tapes --------------------------------------------------------------------------------------

std::vector<TapeLine> tape_lines() {
  AllTapes& all = AllTapes::get();
  const std::lock_guard guard(all.lock);
  std::vector<TapeLine> lines(all.lines.keys.size());
  for (size_t i = 0; i < lines.size(); ++i) lines[i].at = all.lines.at(i);
  all.for_each([&](const TapeAccount& tape) {
    TapeLine& line = lines[tape.line()];
    ++line.sums.tapes;
    line.sums.records += tape.records();
    const int64_t saved = tape.saved_bytes();
    line.saved_bytes = saved < 0 || line.saved_bytes < 0 ? -1 : line.saved_bytes + saved;
  });
  return lines;
}

void read_tape_lines(std::vector<TapeSums>& by_number) {
  AllTapes& all = AllTapes::get();
  const std::lock_guard guard(all.lock);
  by_number.assign(all.lines.keys.size(), {});
  all.for_each([&](const TapeAccount& tape) {
    TapeSums& sums = by_number[tape.line()];
    ++sums.tapes;
    sums.records += tape.records();
  });
}

TapeAccount::TapeAccount(const HoldsBytes& tape, Source at) : tape_(tape), thread_(this_thread()) {
  AllTapes& all = AllTapes::get();
  const std::lock_guard guard(all.lock);
  line_ = all.lines.number(at.resolve());
  next_ = all.first;
  if (next_ != nullptr) next_->previous_ = this;
  all.first = this;
}

TapeAccount::~TapeAccount() {
  AllTapes& all = AllTapes::get();
  const std::lock_guard guard(all.lock);
  (previous_ == nullptr ? all.first : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

int64_t TapeAccount::saved_bytes() const {
  return thread_ == this_thread() ? tape_.saved_bytes() : -1;
}

}  // namespace tidemark::detail
