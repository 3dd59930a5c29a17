// The line of the user's program that asked for something.
//
// Every public function takes `Source at = Source::here()` last, and operators get theirs through
// `Operand`. Library code that calls other public functions holds a `SourceScope`, so that what it
// does is charged to the line that called it; what calls the user back holds `UserCode`. The rule:
// the innermost line that is not Tidemark's.
#pragma once

#include <string>

namespace tidemark {

class Source {
 public:
  // Builtins rather than std::source_location, which clang 14 does not have.
  static constexpr Source here(const char* file = __builtin_FILE(),
                               unsigned line = __builtin_LINE(),
                               const char* function = __builtin_FUNCTION()) {
    return Source(file, line, function);
  }
  static constexpr Source none() { return Source("", 0, ""); }

  // The line to charge: that of the outermost library call now running, if any, else this one.
  Source resolve() const;

  bool known() const { return line != 0; }
  // "train.cc:41": the file without its folders.
  std::string text() const;

  const char* file;
  unsigned line;
  const char* function;

 private:
  // No public constructor: `f(x, {})` never means a line.
  constexpr Source(const char* file, unsigned line, const char* function)
      : file(file), line(line), function(function) {}
};

// Held by library code (composites, layers): what runs inside is charged to `at`.
class SourceScope {
 public:
  explicit SourceScope(Source at) : at_(at), previous_(current_) {
    if (current_ == nullptr) current_ = &at_;
  }
  ~SourceScope() { current_ = previous_; }
  SourceScope(const SourceScope&) = delete;
  SourceScope& operator=(const SourceScope&) = delete;

  static const Source* current() { return current_; }

 private:
  friend class UserCode;
  static thread_local const Source* current_;
  Source at_;
  const Source* previous_;
};

// Held while library code calls the user back: lines are the user's own again.
class UserCode {
 public:
  UserCode() : previous_(SourceScope::current_) { SourceScope::current_ = nullptr; }
  ~UserCode() { SourceScope::current_ = previous_; }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

 private:
  const Source* previous_;
};

inline Source Source::resolve() const {
  const Source* scope = SourceScope::current();
  return scope != nullptr ? *scope : *this;
}

}  // namespace tidemark
