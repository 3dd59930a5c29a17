// The destinations of text that the library writes for people: lines of td::print, and warnings.
#pragma once

#include <functional>
#include <string_view>

#include "tidemark/base/source.h"

namespace tidemark {

// The sink receives each line of td::print, with its newline, on the thread that prints; calls
// never overlap. An empty function means std::cout, which is flushed after each line.
void set_print_sink(std::function<void(std::string_view line)> sink);

// The sink receives the text of a progress bar whenever it changes, and an empty text when the bar
// goes away; calls never overlap. An empty function means the terminal, if standard output is one.
void set_bar_sink(std::function<void(std::string_view text)> sink);

// The callback receives each warning and the source line it is about; calls never overlap. An empty
// function means std::cerr.
void on_warning(std::function<void(std::string_view text, Source at)> callback);

namespace detail {
void write_line(std::string_view line);
// False if there is no sink for bars; the text is not drawn then.
bool has_bar_sink();
bool draw_bar(std::string_view text);
void warn(std::string_view text, Source at);
}  // namespace detail

}  // namespace tidemark
