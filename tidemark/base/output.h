// The destinations of text that the library writes for people: lines of td::print, and warnings.
#pragma once

#include <functional>
#include <string_view>

#include "tidemark/base/source.h"

namespace tidemark {

// The sink receives each line of td::print, with its newline, on the thread that prints; calls
// never overlap. An empty function means std::cout, which is flushed after each line.
void set_print_sink(std::function<void(std::string_view line)> sink);

// The callback receives each warning and the source line it is about; calls never overlap. An empty
// function means std::cerr.
void on_warning(std::function<void(std::string_view text, Source at)> callback);

namespace detail {
void write_line(std::string_view line);
void warn(std::string_view text, Source at);
}  // namespace detail

}  // namespace tidemark
