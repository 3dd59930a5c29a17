// Settings from environment variables, such as TIDEMARK_THREADS=4. A value that cannot be parsed is
// a UserError when it is first used; it never silently becomes the default.
#pragma once

#include <span>
#include <string_view>

namespace tidemark {

// The variable's text; nullptr if it is unset or empty, which both mean the default.
const char* environment(const char* name);
// The variable as a whole number in [least, most], or `otherwise` if it is unset.
int environment_number(const char* name, int least, int most, int otherwise);
// The index of the variable's value among the choices, or -1 if it is unset.
int environment_choice(const char* name, std::span<const std::string_view> choices);
// The variable as 0 or 1, or `otherwise` if it is unset.
bool environment_switch(const char* name, bool otherwise);

}  // namespace tidemark
