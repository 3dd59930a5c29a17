// The line of the user's program that asked for something.
//
// Every public function takes `Source at = Source::here()` last, and operators get theirs through
// `Operand`. Library code that calls other public functions holds a `SourceScope`, so that their
// memory is charged to the line that called it; library code that calls the user back holds a
// `UserCode`. The rule: memory is charged to the innermost line that is not Tidemark's.
//
// A source also carries the number of the layer (name_scope.h) it belongs to. The number fits into
// padding behind the line, so it costs no space.
#pragma once

#include <cstdint>
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

  // The line to charge: that of the outermost library call now running, if any, else this one. Its
  // layer is the innermost one known: this source's, that call's, or the NameScope now open.
  Source resolve() const;

  bool known() const { return line != 0; }
  // "train.cc:41": the file without its folders.
  std::string text() const;
  // "encoder/dense", or nothing.
  std::string layer_path() const;

  const char* file;
  unsigned line;
  uint32_t layer = 0;  // Of name_scope.h; 0: none.
  const char* function;

 private:
  // Not public, so that `f(x, {})` never converts to a Source.
  constexpr Source(const char* file, unsigned line, const char* function)
      : file(file), line(line), function(function) {}
};

namespace detail {

// The line and layer that this thread charges now; one object, so that a call reads it once.
struct ChargeTarget {
  const Source* source = nullptr;  // Of the outermost library call.
  uint32_t layer = 0;              // Of the innermost NameScope.
};
extern constinit thread_local ChargeTarget charged;

}  // namespace detail

// Held by library code (composites, layers): everything that runs inside is charged to `at`.
class SourceScope {
 public:
  explicit SourceScope(Source at) : at_(at), previous_(detail::charged.source) {
    if (previous_ == nullptr) detail::charged.source = &at_;
  }
  ~SourceScope() { detail::charged.source = previous_; }
  SourceScope(const SourceScope&) = delete;
  SourceScope& operator=(const SourceScope&) = delete;

  static const Source* current() { return detail::charged.source; }

 private:
  Source at_;
  const Source* previous_;
};

// Held while library code calls the user back: the user's own lines are charged again.
class UserCode {
 public:
  UserCode() : previous_(detail::charged.source) { detail::charged.source = nullptr; }
  ~UserCode() { detail::charged.source = previous_; }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

 private:
  const Source* previous_;
};

inline Source Source::resolve() const {
  const detail::ChargeTarget& now = detail::charged;
  Source found = now.source != nullptr ? *now.source : *this;
  if (layer != 0)
    found.layer = layer;
  else if (found.layer == 0)
    found.layer = now.layer;
  return found;
}

}  // namespace tidemark
