// Where lines go that the library writes for people: what td::print says, and warnings.
#pragma once

#include <functional>
#include <string_view>

#include "tidemark/base/source.h"

namespace tidemark {

// Gets each line of td::print, with its newline, from whatever thread prints; never two at once.
// Nothing stands for std::cout, which is flushed after each line.
void set_print_sink(std::function<void(std::string_view line)> sink);

// Gets each warning and the line it is about; never two at once. Nothing stands for std::cerr.
void on_warning(std::function<void(std::string_view text, Source at)> callback);

namespace detail {
void write_line(std::string_view line);
void warn(std::string_view text, Source at);
}  // namespace detail

}  // namespace tidemark
