#include "tidemark/plan/model.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tidemark/base/error.h"

namespace tidemark::plan {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;

void refuse(size_t index, const std::string& what) {
  throw UserError(cat("place: buffer ", index, " ", what));
}

// Sizes and alignments are bounded so that no later sum overflows.
void check_problem(const Problem& problem) {
  int64_t sum = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.lifetime.begin >= buffer.lifetime.end) {
      refuse(i, cat("lives over [", buffer.lifetime.begin, ", ", buffer.lifetime.end,
                    "), which is empty"));
    }
    if (buffer.size_bytes < 0) refuse(i, cat("has a negative size, ", buffer.size_bytes));
    if (buffer.alignment < 1) refuse(i, cat("has an alignment of ", buffer.alignment));
    if (buffer.size_bytes > kMost - sum || buffer.alignment > kMost - sum - buffer.size_bytes) {
      refuse(i, "brings the sum of all sizes past what 64 bits hold");
    }
    sum += buffer.size_bytes + buffer.alignment;
    if (!buffer.fixed_offset) continue;
    const int64_t offset = *buffer.fixed_offset;
    if (offset < 0 || offset > kMost) refuse(i, cat("is fixed at offset ", offset));
    if (offset % buffer.alignment != 0) {
      refuse(i, cat("is fixed at offset ", offset, ", which is not a multiple of its alignment ",
                    buffer.alignment));
    }
  }
  const auto count = static_cast<int64_t>(problem.buffers.size());
  if (count > std::numeric_limits<int32_t>::max() / 4) {
    throw UserError(cat("place: ", count, " buffers are more than can be planned at once"));
  }
  for (const Alias& alias : problem.aliases) {
    if (alias.first < 0 || alias.first >= count || alias.second < 0 || alias.second >= count) {
      throw UserError(cat("place: an alias names buffers ", alias.first, " and ", alias.second,
                          ", but there are ", count));
    }
  }
}

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// An interval of time in which some bytes count.
struct Stretch {
  Lifetime time;
  int64_t bytes;
};

// The greatest sum of bytes of overlapping intervals.
int64_t peak(const std::vector<Stretch>& stretches) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  changes.reserve(2 * stretches.size());
  for (const Stretch& stretch : stretches) {
    if (stretch.time.begin >= stretch.time.end) continue;
    changes.emplace_back(stretch.time.begin, stretch.bytes);
    changes.emplace_back(stretch.time.end, -stretch.bytes);
  }
  // At equal times what ends comes before what begins, since lifetimes are half-open.
  std::ranges::sort(changes);
  int64_t alive = 0, most = 0;
  for (const auto& [time, bytes] : changes) {
    alive += bytes;
    most = std::max(most, alive);
  }
  return most;
}

// The parts of the lifetime of `index` in which no larger alias is alive.
void add_unshadowed(const Problem& problem, int32_t index, std::vector<int32_t> partners,
                    std::vector<Stretch>& stretches) {
  auto larger = [&](int32_t a, int32_t b) {
    const int64_t x = problem.buffers[a].size_bytes, y = problem.buffers[b].size_bytes;
    return x != y ? x > y : a < b;
  };
  std::erase_if(partners, [&](int32_t other) { return !larger(other, index); });
  std::ranges::sort(partners, {}, [&](int32_t i) { return problem.buffers[i].lifetime.begin; });
  const Buffer& buffer = problem.buffers[index];
  int64_t begin = buffer.lifetime.begin;
  for (int32_t other : partners) {
    const Lifetime& shadow = problem.buffers[other].lifetime;
    if (shadow.begin > begin) {
      stretches.push_back(
          {{begin, std::min(shadow.begin, buffer.lifetime.end)}, buffer.size_bytes});
    }
    begin = std::max(begin, shadow.end);
  }
  stretches.push_back({{begin, buffer.lifetime.end}, buffer.size_bytes});
}

}  // namespace

int64_t load_bytes(const Problem& problem) {
  std::vector<Stretch> stretches;
  stretches.reserve(problem.buffers.size());
  if (problem.aliases.empty()) {
    for (const Buffer& buffer : problem.buffers) {
      stretches.push_back({buffer.lifetime, buffer.size_bytes});
    }
    return peak(stretches);
  }
  std::vector<std::vector<int32_t>> partners(problem.buffers.size());
  for (const Alias& alias : problem.aliases) {
    if (alias.first == alias.second) continue;
    partners[alias.first].push_back(alias.second);
    partners[alias.second].push_back(alias.first);
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    add_unshadowed(problem, static_cast<int32_t>(i), std::move(partners[i]), stretches);
  }
  return peak(stretches);
}

Model make_model(const Problem& problem) {
  check_problem(problem);
  Model model;
  model.plain = problem.aliases.empty();
  std::vector<int64_t> times;
  times.reserve(2 * problem.buffers.size());
  int64_t alignment = 0, unit = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed_offset) model.plain = false;
    if (buffer.size_bytes == 0) continue;
    if (alignment != 0 && buffer.alignment != alignment) model.plain = false;
    alignment = buffer.alignment;
    const int64_t rounded = round_up(buffer.size_bytes, buffer.alignment);
    model.slop_bytes = std::max(model.slop_bytes, rounded - buffer.size_bytes);
    unit = std::gcd(unit, rounded);
    model.buffers.push_back(static_cast<int32_t>(i));
    times.push_back(buffer.lifetime.begin);
    times.push_back(buffer.lifetime.end);
  }
  if (unit > 0 && model.plain) model.unit_bytes = unit;
  std::ranges::sort(times);
  times.erase(std::ranges::unique(times).begin(), times.end());
  model.sections = std::max<int32_t>(1, static_cast<int32_t>(times.size()) - 1);
  auto section = [&](int64_t time) {
    return static_cast<int32_t>(std::ranges::lower_bound(times, time) - times.begin());
  };
  model.items.reserve(model.buffers.size());
  for (int32_t index : model.buffers) {
    const Buffer& buffer = problem.buffers[index];
    const int64_t rounded = round_up(buffer.size_bytes, buffer.alignment);
    model.items.push_back({section(buffer.lifetime.begin), section(buffer.lifetime.end),
                           model.plain ? rounded / model.unit_bytes : buffer.size_bytes});
  }
  return model;
}

int64_t simple_bound(const Problem& problem, const Model& model) {
  int64_t bound = load_bytes(problem);
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed_offset) bound = std::max(bound, *buffer.fixed_offset + buffer.size_bytes);
  }
  if (!model.plain || model.slop_bytes == 0) return bound;
  // Offsets are multiples of the alignment, so all but the topmost of the live buffers take their
  // rounded size.
  std::vector<Stretch> stretches;
  for (size_t i = 0; i < model.items.size(); ++i) {
    stretches.push_back(
        {problem.buffers[model.buffers[i]].lifetime, model.items[i].size * model.unit_bytes});
  }
  return std::max(bound, peak(stretches) - model.slop_bytes);
}

Placement to_placement(const Problem& problem, const Model& model,
                       std::span<const int64_t> item_offsets) {
  Placement placement;
  placement.offsets.assign(problem.buffers.size(), 0);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].fixed_offset) placement.offsets[i] = *problem.buffers[i].fixed_offset;
  }
  for (size_t i = 0; i < model.items.size(); ++i) {
    placement.offsets[model.buffers[i]] = item_offsets[i] * model.unit_bytes;
  }
  placement.tidemark_bytes = tidemark_of(problem, placement.offsets);
  return placement;
}

int64_t tidemark_of(const Problem& problem, std::span<const int64_t> offsets) {
  int64_t tidemark = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].size_bytes == 0) continue;
    tidemark = std::max(tidemark, offsets[i] + problem.buffers[i].size_bytes);
  }
  return tidemark;
}

}  // namespace tidemark::plan
