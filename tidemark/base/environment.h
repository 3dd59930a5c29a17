// Settings in environment variables, TIDEMARK_THREADS=4. A value that is not understood is a
// UserError at its first use, never silently the default.
#pragma once

#include <span>
#include <string_view>

namespace tidemark {

// The variable's text; nullptr where it is not set or empty, which both mean the default.
const char* environment(const char* name);
// The variable as a whole number in [least, most], or `otherwise` where it is not set.
int environment_number(const char* name, int least, int most, int otherwise);
// The variable as one of these words: which of them, or -1 where it is not set.
int environment_choice(const char* name, std::span<const std::string_view> choices);
// The variable as 0 or 1, or `otherwise` where it is not set.
bool environment_switch(const char* name, bool otherwise);

}  // namespace tidemark
