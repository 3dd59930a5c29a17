// Building messages, and printing byte counts for people.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <sstream>
#include <string>

namespace tidemark {

// A stream into a string. It throws std::bad_alloc if the heap is full; a std::ostringstream would
// swallow that and return part of the text.
class TextStream : public std::ostringstream {
 public:
  TextStream() { exceptions(std::ios_base::badbit); }
};

// Everything streamed into one string: cat("axis ", axis, " of ", rank).
template <class... Parts>
std::string cat(const Parts&... parts) {
  TextStream out;
  (out << ... << parts);
  return out.str();
}

// A number of bytes that prints itself for people: "64.0 MiB".
struct Bytes {
  int64_t count = 0;

  constexpr Bytes() = default;
  constexpr Bytes(int64_t n) : count(n) {}
  constexpr auto operator<=>(const Bytes&) const = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a.count + b.count; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a.count - b.count; }
};
std::ostream& operator<<(std::ostream& out, Bytes bytes);

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return static_cast<int64_t>(n); }
constexpr Bytes operator""_KiB(unsigned long long n) { return static_cast<int64_t>(n) << 10; }
constexpr Bytes operator""_MiB(unsigned long long n) { return static_cast<int64_t>(n) << 20; }
constexpr Bytes operator""_GiB(unsigned long long n) { return static_cast<int64_t>(n) << 30; }
}  // namespace literals

// Plans and pools share this rounding: the size of every block is a multiple of 64 bytes.
inline constexpr int64_t kAlignment = 64;
constexpr int64_t granted_bytes(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace tidemark
