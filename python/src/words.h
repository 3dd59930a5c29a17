// Texts of the library in Python's words.
#pragma once

#include <string>
#include <string_view>

namespace tidemark::python {

// The text with the C++ in it written as Python: "td::cast(x, td::i32)" as "td.cast(x, td.i32)",
// "{.persistent = true}" as "persistent=True", "td::spec({64, 784})" as "td.spec((64, 784))".
std::string in_python(std::string_view text);

}  // namespace tidemark::python
