#include "tidemark/device/out_of_memory.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace tidemark {
namespace {

// Appends to a fixed buffer and drops what does not fit.
class Writer {
 public:
  Writer(char* text, size_t size) : at_(text), end_(text + size) { *at_ = '\0'; }

  void print(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(at_, static_cast<size_t>(end_ - at_), format, arguments);
    va_end(arguments);
    if (length > 0) at_ += std::min<std::ptrdiff_t>(length, end_ - at_ - 1);
  }

  // The text of `Bytes`, without a stream.
  void bytes(int64_t count) {
    constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    if (count < 1024) return print("%lld B", static_cast<long long>(count));
    double value = static_cast<double>(count) / 1024;
    int unit = 0;
    while (unit < 4 && value >= 1024) {
      value /= 1024;
      ++unit;
    }
    print("%.1f %s", value, units[unit]);
  }

  // Describes a tensor by its type, and a call as a call. Without sizes and larger than a scalar,
  // it is the scratch of a kernel.
  void description(const device::Description& what, int64_t bytes) {
    if (what.rank < 0) return print("a call of a function");
    if (what.rank == 0 && bytes > kAlignment) return print("scratch memory");
    print("%s[", name(what.dtype));
    for (int i = 0; i < std::min<int>(what.rank, device::Description::kSizes); ++i) {
      print(i == 0 ? "%lld" : ", %lld", static_cast<long long>(what.sizes[i]));
    }
    print(what.rank > device::Description::kSizes ? ", ...]" : "]");
  }

  // "100 ms", "1.5 s"
  void time(int64_t ns) {
    const double ms = static_cast<double>(ns) / 1e6;
    ms < 1000 ? print("%.3g ms", ms) : print("%.3g s", ms / 1000);
  }

  // "train.cc:41"
  void line(Source at) {
    const char* const slash = std::strrchr(at.file, '/');
    print("%s:%u", slash != nullptr ? slash + 1 : at.file, at.line);
  }

 private:
  char* at_;
  char* end_;
};

void write_problem(Writer& out, const device::OutOfMemoryRecord& record) {
  out.print("out of memory: ");
  out.description(record.what, record.asked);
  out.print(" needs ");
  out.bytes(record.asked);
  out.print(record.why == device::Refusal::system ? ", which the system refused; " : ", ");
  out.bytes(record.in_use);
  out.print(" of ");
  out.bytes(record.limit);
  out.print(" are in use, ");
  out.bytes(record.cached);
  out.print(" cached");
  if (record.wait.calls == 0) return;
  out.print("; waited ");
  out.time(record.wait.most_ns);
}

void write_queue(Writer& out, const device::OutOfMemoryRecord::Wait& wait) {
  if (wait.calls == 0) return;
  out.print("\n  waiting: %lld call%s for ", static_cast<long long>(wait.calls),
            wait.calls == 1 ? "" : "s");
  out.bytes(wait.bytes);
  out.print(", the first for ");
  out.time(wait.longest_ns);
  out.print("; this one was number %lld", static_cast<long long>(wait.place));
}

void write_largest(Writer& out, const device::OutOfMemoryRecord& record) {
  for (int i = 0; i < record.listed; ++i) {
    const auto& holder = record.largest[i];
    out.print(i == 0 ? "\n  largest: " : "; ");
    out.description(holder.what, holder.bytes);
    out.print(" ");
    out.bytes(holder.bytes);
    out.print(" (");
    if (holder.at.known()) {
      out.line(holder.at);
      out.print(", ");
    }
    out.print("%s)", name(holder.byte_class));
  }
}

void write_remedy(Writer& out, const device::OutOfMemoryRecord& record) {
  if (record.wait.calls > 0) {
    out.print(
        "\n  free results you no longer need (x = {}), allow more time: .when_full = "
        "td::wait_for(...), or raise the limit: td::memory::set_limit");
  } else if (record.asked > record.limit) {
    out.print("\n  ask for less, or raise the limit: td::memory::set_limit");
  } else if (record.why == device::Refusal::system) {
    out.print("\n  free tensors you no longer need (x = {}), or give the process more memory");
  } else {
    out.print(
        "\n  free tensors you no longer need (x = {}), or raise the limit: td::memory::set_limit");
  }
}

}  // namespace

device::Description device::Description::of(const Purpose& purpose) {
  Description description;
  description.dtype = purpose.dtype;
  description.rank = purpose.together ? -1 : static_cast<int32_t>(purpose.sizes.size());
  const size_t kept = std::min<size_t>(purpose.sizes.size(), kSizes);
  std::copy_n(purpose.sizes.begin(), kept, description.sizes);
  return description;
}

// An empty std::string needs no heap, nor does the copy that std::runtime_error makes of it.
OutOfMemory::OutOfMemory(const device::OutOfMemoryRecord& record)
    : DeviceError(std::string(), record.at), record_(record) {
  text_[0] = '\0';
}

OutOfMemory::OutOfMemory(const OutOfMemory& other) : DeviceError(other), record_(other.record_) {
  text_[0] = '\0';
}

const char* OutOfMemory::what() const noexcept {
  int expected = 0;
  if (text_state_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) {
    Writer out(text_, sizeof(text_));
    write_problem(out, record_);
    if (record_.at.known()) {
      out.print("\n  at ");
      out.line(record_.at);
    }
    write_queue(out, record_.wait);
    write_largest(out, record_);
    write_remedy(out, record_);
    text_state_.store(2, std::memory_order_release);
  }
  while (text_state_.load(std::memory_order_acquire) != 2) {
  }
  return text_;
}

}  // namespace tidemark
