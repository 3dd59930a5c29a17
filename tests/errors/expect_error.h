// Asks for an error with its exact text. "@" stands for the user's line.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "tidemark/base/error.h"

// The calls that are checked are not longer than this many lines.
inline constexpr int kLines = 8;

inline void check(const tidemark::Error& error, std::string text, tidemark::Source call) {
  const tidemark::Source at = error.source();
  const size_t mark = text.find('@');
  if (mark != std::string::npos) {
    text.replace(mark, 1, tidemark::Source::here(call.file, at.line, "").text());
    const int apart = static_cast<int>(at.line) - static_cast<int>(call.line);
    EXPECT_LE(std::abs(apart), kLines) << "charged to line " << at.line << ", not the user's";
  }
  EXPECT_EQ(error.what(), text) << "at line " << call.line;
}

// What `call` throws is a UserError with this text.
inline void expect_error(const std::function<void()>& call, const std::string& text,
                         tidemark::Source at = tidemark::Source::here()) {
  try {
    call();
    ADD_FAILURE() << "no error at line " << at.line << ", wanted: " << text;
  } catch (const tidemark::UserError& error) {
    check(error, text, at);
  }
}
