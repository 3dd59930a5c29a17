#include "tidemark/base/output.h"

#include <iostream>
#include <mutex>
#include <utility>

#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"

namespace tidemark {
namespace {

// A user's callback and the lock under which it is called. The lock is recursive, since the
// callback may itself print or warn. Never destroyed, so that static destructors may print.
template <class Function>
struct Sink {
  RecursiveMutex lock;
  std::function<Function> callback;

  void set(std::function<Function> next) {
    const std::lock_guard guard(lock);
    std::swap(callback, next);
  }
};

Sink<void(std::string_view)>& print_sink() {
  static constinit MadeOnce<Sink<void(std::string_view)>> sink;
  return sink.get();
}

Sink<void(std::string_view)>& bar_sink() {
  static constinit MadeOnce<Sink<void(std::string_view)>> sink;
  return sink.get();
}

Sink<void(std::string_view, Source)>& warning_sink() {
  static constinit MadeOnce<Sink<void(std::string_view, Source)>> sink;
  return sink.get();
}

}  // namespace

void set_print_sink(std::function<void(std::string_view line)> sink) {
  print_sink().set(std::move(sink));
}

void set_bar_sink(std::function<void(std::string_view text)> sink) {
  bar_sink().set(std::move(sink));
}

void on_warning(std::function<void(std::string_view text, Source at)> callback) {
  warning_sink().set(std::move(callback));
}

namespace detail {

void write_line(std::string_view line) {
  const std::lock_guard guard(print_sink().lock);
  // A copy, since the callback may install another one.
  if (const auto callback = print_sink().callback) {
    const UserCode user;
    callback(line);
  } else {
    std::cout << line << std::flush;
  }
}

bool has_bar_sink() {
  const std::lock_guard guard(bar_sink().lock);
  return bar_sink().callback != nullptr;
}

bool draw_bar(std::string_view text) {
  const std::lock_guard guard(bar_sink().lock);
  const auto callback = bar_sink().callback;
  if (!callback) return false;
  const UserCode user;
  callback(text);
  return true;
}

void warn(std::string_view text, Source at) {
  const Source line = at.resolve();
  const std::lock_guard guard(warning_sink().lock);
  if (const auto callback = warning_sink().callback) {
    const UserCode user;
    callback(text, line);
    return;
  }
  std::cerr << "tidemark: " << text << '\n';
  if (line.known()) std::cerr << "  at " << line.text() << '\n';
}

}  // namespace detail
}  // namespace tidemark
