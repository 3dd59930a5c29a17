// Work done in a process of its own.
#pragma once

#include <functional>
#include <string>

namespace tidemark::testing {

// What `work` returns; whoever touches memory that is not its own ends there, and that is said.
std::string run_apart(const std::function<std::string()>& work);

}  // namespace tidemark::testing
