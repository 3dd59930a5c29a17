#include "tidemark/plan/check.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tidemark/base/text.h"

namespace tidemark::plan {
namespace {

// Walks through time with the set of what is alive, ordered by offset. Buffers without aliases
// never overlap each other, so the one just below and the one just above are all that a new one can
// meet; those with aliases are few and compared one by one.
class Sweep {
 public:
  Sweep(const Problem& problem, const Placement& placement)
      : problem_(problem), placement_(placement), has_alias_(problem.buffers.size()) {
    for (const Alias& alias : problem.aliases) {
      has_alias_[alias.first] = has_alias_[alias.second] = true;
      aliases_.insert({alias.first, alias.second});
      aliases_.insert({alias.second, alias.first});
    }
  }

  std::optional<Fault> run() {
    // (time, is a birth, buffer): deaths come first, since a lifetime excludes its end.
    std::vector<std::pair<std::pair<int64_t, bool>, int64_t>> events;
    for (int64_t i = 0; i < std::ssize(problem_.buffers); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      if (buffer.size_bytes == 0 || buffer.lifetime.begin >= buffer.lifetime.end) continue;
      events.push_back({{buffer.lifetime.begin, true}, i});
      events.push_back({{buffer.lifetime.end, false}, i});
    }
    std::sort(events.begin(), events.end());
    for (const auto& [when, buffer] : events) {
      if (!when.second) {
        alive_.erase(begin(buffer));
        std::erase(alive_with_aliases_, buffer);
        continue;
      }
      if (std::optional<Fault> fault = born(buffer)) return fault;
    }
    return std::nullopt;
  }

 private:
  int64_t begin(int64_t buffer) const { return placement_.offsets[buffer]; }
  int64_t end(int64_t buffer) const { return begin(buffer) + problem_.buffers[buffer].size_bytes; }

  std::optional<Fault> born(int64_t buffer) {
    auto above = alive_.lower_bound(begin(buffer));
    if (above != alive_.end() && above->first < end(buffer)) return overlap(above->second, buffer);
    if (above != alive_.begin()) {
      const int64_t below = std::prev(above)->second;
      if (end(below) > begin(buffer)) return overlap(below, buffer);
    }
    for (int64_t other : alive_with_aliases_) {
      if (begin(other) >= end(buffer) || begin(buffer) >= end(other)) continue;
      if (!aliases_.contains({other, buffer})) return overlap(other, buffer);
    }
    if (has_alias_[buffer]) {
      alive_with_aliases_.push_back(buffer);
    } else {
      alive_.emplace(begin(buffer), buffer);
    }
    return std::nullopt;
  }

  static Fault overlap(int64_t a, int64_t b) {
    return {Fault::overlap, std::min(a, b), std::max(a, b)};
  }

  const Problem& problem_;
  const Placement& placement_;
  std::vector<bool> has_alias_;
  std::set<std::pair<int64_t, int64_t>> aliases_;
  std::map<int64_t, int64_t> alive_;  // Offset to buffer, of those without aliases.
  std::vector<int64_t> alive_with_aliases_;
};

}  // namespace

std::string Fault::text() const {
  switch (kind) {
    case count:
      return "there is not one offset for each buffer";
    case negative:
      return cat("buffer ", first, " lies outside the bytes that can be addressed");
    case alignment:
      return cat("buffer ", first, " is not aligned");
    case fixed:
      return cat("buffer ", first, " is not at its fixed offset");
    case overlap:
      return cat("buffers ", first, " and ", second, " share a byte while both live");
    case tidemark:
      return "the tidemark is not the highest byte in use plus one";
  }
  return {};
}

std::optional<Fault> check_placement(const Problem& problem, const Placement& placement) {
  if (placement.offsets.size() != problem.buffers.size()) return Fault{.kind = Fault::count};
  int64_t highest = 0;
  for (int64_t i = 0; i < std::ssize(problem.buffers); ++i) {
    const Buffer& buffer = problem.buffers[i];
    const int64_t offset = placement.offsets[i];
    if (offset < 0 || offset > std::numeric_limits<int64_t>::max() - buffer.size_bytes) {
      return Fault{Fault::negative, i};
    }
    if (offset % buffer.alignment != 0) return Fault{Fault::alignment, i};
    if (buffer.fixed_offset && offset != *buffer.fixed_offset) return Fault{Fault::fixed, i};
    if (buffer.size_bytes > 0) highest = std::max(highest, offset + buffer.size_bytes);
  }
  if (std::optional<Fault> fault = Sweep(problem, placement).run()) return fault;
  if (placement.tidemark_bytes != highest) return Fault{.kind = Fault::tidemark};
  return std::nullopt;
}

}  // namespace tidemark::plan
