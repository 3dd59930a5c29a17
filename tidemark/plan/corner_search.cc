#include "tidemark/plan/corner_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

namespace tidemark::plan {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

// 1 1 2 1 1 2 4 ...: restarts of these lengths are within a constant of the best fixed length.
int64_t luby(int64_t i) {
  for (;;) {
    int bits = std::bit_width(static_cast<uint64_t>(i));
    if (i == (int64_t{1} << bits) - 1) return (i + 1) / 2;
    i -= (int64_t{1} << (bits - 1)) - 1;
  }
}

// Tried in this order, cyclically. Working outward from the sections that failed finds most
// solutions; one of the others often finds the rest.
constexpr Strategy kStrategies[] = {
    {Strategy::outward, Strategy::width}, {Strategy::fewest_choices, Strategy::width},
    {Strategy::outward, Strategy::width}, {Strategy::choices_then_slack, Strategy::load},
    {Strategy::outward, Strategy::width}, {Strategy::slack_per_failure, Strategy::width},
    {Strategy::outward, Strategy::width}, {Strategy::leftmost, Strategy::width},
};
constexpr int64_t kFirstRestart = 1000;  // Nodes; multiplied by the Luby sequence.
// The number of restarts that share failure counts; then the counts are reset, since they may keep
// leading to the wrong section.
constexpr int64_t kEpisode = 32;
constexpr uint64_t kSeed = 300'001;
constexpr int kDeepest = 4000;            // Branchings on one path: bounds the stack,
constexpr int64_t kFrameBytes = 1 << 27;  // and the memory of their frames.
constexpr size_t kMemoSlots = size_t{1} << 18;

}  // namespace

struct CornerSearch::Restart {
  int64_t capacity;
  Strategy strategy;
  double noise;  // How much the order of buffers is randomised.
  uint64_t seed;
  int64_t nodes;
};

template <class Units>
class CornerSearch::Searcher {
 public:
  Searcher(std::span<const Item> items, int32_t sections);

  // `fresh`: reset the failure counts.
  Outcome run(const Restart& restart, bool fresh, SearchLimit& limit);
  std::span<const Units> offsets() const { return offsets_; }

 private:
  static constexpr Units kFar = std::numeric_limits<Units>::max() / 4;

  // A part of the problem that shares nothing undecided with the rest: sections [begin, end), and
  // the ids at [first, first + count) of the frame's list.
  struct Region {
    int32_t begin, end, first, count;
  };
  // The state that changes along a path. Arrays are indexed by section or by item.
  struct Frame {
    std::vector<Units> floor;    // Nothing undecided starts below this.
    std::vector<Units> top;      // End of the highest decided buffer; below the floor if lifted.
    std::vector<int32_t> last;   // That buffer, or -1.
    std::vector<Units> rest;     // Undecided bytes.
    std::vector<Units> least;    // Per item: the least offset it can still have.
    std::vector<int32_t> ids;    // Undecided items, by regions, each sorted by least offset.
    std::vector<uint64_t> open;  // One bit per item: undecided.
  };
  struct Corner {
    int32_t section = -1;
    Units skip_to = 0;  // Where the floor goes if the corner stays empty; 0 if it cannot.
    int32_t choices = 0;
  };

  bool solve(Frame& frame, Region region, int depth);
  bool branch(Frame& frame, const Region& region, const Corner& corner, int depth);
  bool after_move(Frame& frame, Region region, int depth);
  bool solve_parts(Frame& frame, const Region& region, int parts, int depth);
  Corner pick(const Frame& frame, const Region& region);
  Corner look(const Frame& frame, const Region& region, int32_t begin, int32_t end, bool right);
  Units skip_level(const Frame& frame, const Region& region, int32_t section) const;
  double score(const Frame& frame, const Corner& corner) const;
  bool rests(const Frame& frame, int32_t id, Units height) const;
  void put(Frame& frame, Region& region, int32_t id);
  void lift(Frame& frame, const Region& region, int32_t section, Units height);
  bool propagate(Frame& frame, const Region& region);
  int split(const Frame& frame, const Region& region);
  uint64_t hash(const Frame& frame, const Region& region) const;
  Frame& frame_at(int depth);
  void copy_region(const Frame& from, Frame& to, const Region& region) const;
  void raise(Frame& frame, int32_t id, Units least) {
    frame.least[id] = least;
    changed_begin_ = std::min(changed_begin_, begin_[id]);
    changed_end_ = std::max(changed_end_, end_[id]);
  }
  bool is_open(const Frame& frame, int32_t id) const {
    return (frame.open[static_cast<size_t>(id) / 64] >> (id % 64)) & 1;
  }

  int32_t items_count_, sections_, words_;
  int deepest_;                       // Branchings on one path.
  std::vector<int32_t> begin_, end_;  // Per item, in sections.
  std::vector<Units> size_;
  std::vector<char> has_twin_;  // Another item has the same lifetime.
  std::vector<std::vector<int32_t>> begins_at_, ends_at_;
  std::vector<uint64_t> covers_;  // Per section, one bit per item alive there.
  std::vector<double> keys_[2];   // Per order: greater goes first.
  std::vector<uint64_t> hash_floor_, hash_top_, hash_last_, hash_item_;

  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Units> height_, lowest_;           // Scratch of `propagate`.
  int32_t changed_begin_ = 0, changed_end_ = 0;  // Sections under items that rose since.
  std::vector<int32_t> reach_;                   // Scratch of `split`.
  std::vector<std::pair<int32_t, int32_t>> parts_;
  std::vector<int32_t> found_, chosen_;  // Candidates of the corner looked at, and of the best one.
  std::vector<double> failures_;         // Per section: how often the search failed there.
  std::vector<uint64_t> memo_;
  std::vector<Units> offsets_;

  Units capacity_ = 0;
  Strategy strategy_;
  std::vector<double> priority_;
  uint64_t salt_ = 0;
  int32_t focus_ = 0;
  int64_t nodes_left_ = 0;
  bool stopped_ = false;
  SearchLimit* limit_ = nullptr;
};

template <class Units>
CornerSearch::Searcher<Units>::Searcher(std::span<const Item> items, int32_t sections)
    : items_count_(static_cast<int32_t>(items.size())),
      sections_(sections),
      words_((items_count_ + 63) / 64),
      begins_at_(sections + 1),
      ends_at_(sections + 1),
      covers_(static_cast<size_t>(sections) * words_),
      height_(sections),
      lowest_(sections),
      reach_(sections),
      failures_(sections, 1.0),
      memo_(kMemoSlots),
      offsets_(items.size()) {
  const int64_t frame_bytes = int64_t{sections} * (3 * sizeof(Units) + 4) +
                              int64_t{items_count_} * (sizeof(Units) + 4) + 64;
  deepest_ = static_cast<int>(std::min<int64_t>(kDeepest, kFrameBytes / frame_bytes));
  std::vector<int64_t> load(sections);
  for (int32_t i = 0; i < items_count_; ++i) {
    const Item& item = items[i];
    begin_.push_back(item.begin);
    end_.push_back(item.end);
    size_.push_back(static_cast<Units>(item.size));
    begins_at_[item.begin].push_back(i);
    ends_at_[item.end].push_back(i);
    for (int32_t s = item.begin; s < item.end; ++s) {
      covers_[static_cast<size_t>(s) * words_ + i / 64] |= uint64_t{1} << (i % 64);
      load[s] += item.size;
    }
  }
  has_twin_.resize(items.size());
  for (const std::vector<int32_t>& group : begins_at_) {
    for (int32_t a : group) {
      for (int32_t b : group) has_twin_[a] |= a != b && end_[a] == end_[b];
    }
  }
  const double largest = static_cast<double>(std::ranges::max(size_)) + 1;
  for (int32_t i = 0; i < items_count_; ++i) {
    const double width = end_[i] - begin_[i];
    const double size = static_cast<double>(size_[i]) / largest;
    const double total =
        static_cast<double>(*std::max_element(load.begin() + begin_[i], load.begin() + end_[i])) /
        largest;
    keys_[Strategy::width].push_back(width + size);
    keys_[Strategy::load].push_back(total * 1e3 * sections + width + size);
  }
  uint64_t seed = 1;
  auto fill = [&](std::vector<uint64_t>& values, int32_t count) {
    for (int32_t i = 0; i < count; ++i) values.push_back(mix(++seed * 0x9e3779b97f4a7c15ULL) | 1);
  };
  fill(hash_floor_, sections);
  fill(hash_top_, sections);
  fill(hash_last_, sections);
  fill(hash_item_, items_count_);
}

template <class Units>
CornerSearch::Outcome CornerSearch::Searcher<Units>::run(const Restart& restart, bool fresh,
                                                         SearchLimit& limit) {
  capacity_ = static_cast<Units>(restart.capacity);
  strategy_ = restart.strategy;
  limit_ = &limit;
  nodes_left_ = restart.nodes;
  stopped_ = false;
  salt_ = mix(static_cast<uint64_t>(restart.capacity) * 0x9e3779b97f4a7c15ULL);
  priority_ = keys_[strategy_.order];
  uint64_t random = mix(restart.seed + kSeed);
  for (double& key : priority_) {
    random = mix(random + 0x9e3779b97f4a7c15ULL);
    key *= 1.0 - restart.noise * static_cast<double>(random >> 40) / static_cast<double>(1 << 24);
  }
  if (fresh) std::ranges::fill(failures_, 1.0);
  // Picks the section to start from at random, in proportion to its failures.
  double spin = 0;
  for (double count : failures_) spin += count;
  random = mix(random + 0x9e3779b97f4a7c15ULL);
  spin *= static_cast<double>(random >> 11) / 9007199254740992.0;
  focus_ = 0;
  while (focus_ + 1 < sections_ && (spin -= failures_[focus_]) > 0) ++focus_;
  Frame& root = frame_at(0);
  std::ranges::fill(root.floor, 0);
  std::ranges::fill(root.top, 0);
  std::ranges::fill(root.last, -1);
  std::ranges::fill(root.least, 0);
  std::ranges::fill(root.rest, 0);
  std::ranges::fill(root.open, 0);
  std::iota(root.ids.begin(), root.ids.end(), 0);
  for (int32_t i = 0; i < items_count_; ++i) {
    root.open[i / 64] |= uint64_t{1} << (i % 64);
    for (int32_t s = begin_[i]; s < end_[i]; ++s) root.rest[s] += size_[i];
  }
  changed_begin_ = 0;
  changed_end_ = sections_;
  if (after_move(root, {0, sections_, 0, items_count_}, 0)) return Outcome::found;
  return stopped_ ? Outcome::stopped : Outcome::impossible;
}

template <class Units>
typename CornerSearch::Searcher<Units>::Frame& CornerSearch::Searcher<Units>::frame_at(int depth) {
  while (static_cast<int>(frames_.size()) <= depth) {
    auto frame = std::make_unique<Frame>();
    frame->floor.resize(sections_);
    frame->top.resize(sections_);
    frame->last.resize(sections_);
    frame->rest.resize(sections_);
    frame->least.resize(items_count_);
    frame->ids.resize(items_count_);
    frame->open.resize(words_);
    frames_.push_back(std::move(frame));
  }
  return *frames_[depth];
}

template <class Units>
void CornerSearch::Searcher<Units>::copy_region(const Frame& from, Frame& to,
                                                const Region& region) const {
  auto copy = [](const auto& source, auto& target, int32_t begin, int32_t end) {
    std::copy(source.begin() + begin, source.begin() + end, target.begin() + begin);
  };
  copy(from.floor, to.floor, region.begin, region.end);
  copy(from.top, to.top, region.begin, region.end);
  copy(from.last, to.last, region.begin, region.end);
  copy(from.rest, to.rest, region.begin, region.end);
  copy(from.least, to.least, 0, items_count_);
  copy(from.ids, to.ids, region.first, region.first + region.count);
  copy(from.open, to.open, 0, words_);
}

// Takes forced moves one after another and branches where there is a choice.
template <class Units>
bool CornerSearch::Searcher<Units>::solve(Frame& frame, Region region, int depth) {
  for (;;) {
    if (region.count == 0) return true;
    if (--nodes_left_ < 0 || !limit_->spend() || depth >= deepest_) {
      stopped_ = true;
      return false;
    }
    const Corner corner = pick(frame, region);
    if (corner.choices == 0) {
      failures_[corner.section] += 1;
      return false;
    }
    if (corner.choices > 1) return branch(frame, region, corner, depth);
    if (corner.skip_to > 0) {
      lift(frame, region, corner.section, corner.skip_to);
    } else {
      put(frame, region, chosen_[0]);
    }
    if (!propagate(frame, region)) return false;
    const int parts = split(frame, region);
    if (parts > 1) return solve_parts(frame, region, parts, depth);
    if (parts == 1) {
      region.begin = parts_[0].first;
      region.end = parts_[0].second;
    }
  }
}

template <class Units>
bool CornerSearch::Searcher<Units>::branch(Frame& frame, const Region& region, const Corner& corner,
                                           int depth) {
  const uint64_t key = hash(frame, region);
  if (memo_[key % kMemoSlots] == key) return false;
  const std::vector<int32_t> candidates = chosen_;
  Frame& child = frame_at(depth + 1);
  for (int32_t choice = 0; choice < corner.choices; ++choice) {
    copy_region(frame, child, region);
    Region rest = region;
    if (choice < static_cast<int32_t>(candidates.size())) {
      put(child, rest, candidates[choice]);
    } else {
      lift(child, rest, corner.section, corner.skip_to);
    }
    if (after_move(child, rest, depth + 1)) return true;
    if (stopped_) return false;
  }
  memo_[key % kMemoSlots] = key;
  return false;
}

template <class Units>
bool CornerSearch::Searcher<Units>::after_move(Frame& frame, Region region, int depth) {
  if (!propagate(frame, region)) return false;
  const int parts = split(frame, region);
  if (parts == 0) return true;
  if (parts > 1) return solve_parts(frame, region, parts, depth);
  region.begin = parts_[0].first;
  region.end = parts_[0].second;
  return solve(frame, region, depth);
}

// Solves independent parts one after another, the narrowest first: it is the quickest to fail.
template <class Units>
bool CornerSearch::Searcher<Units>::solve_parts(Frame& frame, const Region& region, int parts,
                                                int depth) {
  std::vector<Region> regions;
  const auto first = frame.ids.begin() + region.first;
  std::vector<int32_t> ids;
  for (int part = 0; part < parts; ++part) {
    const auto [begin, end] = parts_[part];
    Region sub{begin, end, region.first + static_cast<int32_t>(ids.size()), 0};
    for (auto id = first; id != first + region.count; ++id) {
      if (begin_[*id] >= begin && end_[*id] <= end) ids.push_back(*id);
    }
    sub.count = region.first + static_cast<int32_t>(ids.size()) - sub.first;
    regions.push_back(sub);
  }
  std::ranges::copy(ids, first);
  std::ranges::sort(regions, {},
                    [](const Region& r) { return std::pair(r.end - r.begin, r.begin); });
  for (const Region& sub : regions) {
    if (!solve(frame, sub, depth)) return false;
  }
  return true;
}

// The corner to branch on; at once the first with at most one choice. Leaves its candidates, best
// first, in `chosen_`.
template <class Units>
typename CornerSearch::Searcher<Units>::Corner CornerSearch::Searcher<Units>::pick(
    const Frame& frame, const Region& region) {
  Corner best;
  double best_score = std::numeric_limits<double>::infinity();
  for (int32_t begin = region.begin; begin < region.end;) {
    const Units floor = frame.floor[begin];
    int32_t end = begin + 1;
    while (end < region.end && frame.floor[end] == floor) ++end;
    if ((begin == region.begin || frame.floor[begin - 1] > floor) &&
        (end == region.end || frame.floor[end] > floor)) {
      for (bool right : {false, true}) {
        const Corner corner = look(frame, region, begin, end, right);
        const double corner_score = corner.choices <= 1 ? -1 : score(frame, corner);
        if (corner_score >= best_score) continue;
        best_score = corner_score;
        best = corner;
        chosen_ = found_;
        if (corner.choices <= 1) return best;
      }
    }
    begin = end;
  }
  std::ranges::sort(chosen_, [&](int32_t a, int32_t b) {
    return priority_[a] != priority_[b] ? priority_[a] > priority_[b] : a < b;
  });
  return best;
}

template <class Units>
double CornerSearch::Searcher<Units>::score(const Frame& frame, const Corner& corner) const {
  const Units floor = frame.floor[corner.section];
  const auto slack = static_cast<double>(capacity_ - floor - frame.rest[corner.section]);
  const double relative = slack / static_cast<double>(capacity_);
  switch (strategy_.corner) {
    case Strategy::fewest_choices:
      return corner.choices + static_cast<double>(floor) / static_cast<double>(capacity_);
    case Strategy::choices_then_slack:
      return corner.choices + relative;
    case Strategy::slack_per_failure:
      return (relative + 0.001) / failures_[corner.section];
    case Strategy::leftmost:
      return corner.section;
    case Strategy::outward:
      return std::abs(corner.section - focus_);
  }
  return 0;
}

// One corner of the valley [begin, end): fills `found_` with the buffers that can take it.
template <class Units>
typename CornerSearch::Searcher<Units>::Corner CornerSearch::Searcher<Units>::look(
    const Frame& frame, const Region& region, int32_t begin, int32_t end, bool right) {
  Corner corner;
  corner.section = right ? end - 1 : begin;
  const Units floor = frame.floor[begin];
  found_.clear();
  for (int32_t id : right ? ends_at_[end] : begins_at_[begin]) {
    // The least offset is the highest floor below, so this one fits into the valley.
    if (!is_open(frame, id) || frame.least[id] != floor || !rests(frame, id, floor)) continue;
    const int32_t under = frame.last[corner.section];
    if (has_twin_[id] && under > id && begin_[under] == begin_[id] && end_[under] == end_[id] &&
        frame.top[corner.section] == floor) {
      continue;  // Only the other order of these two is tried.
    }
    const bool repeated = has_twin_[id] && std::ranges::any_of(found_, [&](int32_t other) {
                            return begin_[other] == begin_[id] && end_[other] == end_[id] &&
                                   size_[other] == size_[id];
                          });
    if (!repeated) found_.push_back(id);
  }
  corner.choices = static_cast<int32_t>(found_.size());
  const Units rest = frame.rest[corner.section];
  if (floor + rest < capacity_) {
    const Units level = skip_level(frame, region, corner.section);
    if (level < kFar && level + rest <= capacity_) {
      corner.skip_to = level;
      ++corner.choices;
    }
  }
  if (corner.choices == 1 && !found_.empty()) corner.skip_to = 0;
  return corner;
}

template <class Units>
bool CornerSearch::Searcher<Units>::rests(const Frame& frame, int32_t id, Units height) const {
  if (height == 0) return true;
  for (int32_t s = begin_[id]; s < end_[id]; ++s) {
    if (frame.top[s] == height) return true;
  }
  return false;
}

// The least offset anything over this section can have if nothing takes its floor. What could take
// it must then rest on something else that it meets in time.
template <class Units>
Units CornerSearch::Searcher<Units>::skip_level(const Frame& frame, const Region& region,
                                                int32_t section) const {
  const Units floor = frame.floor[section];
  Units level = kFar;
  int32_t begin = section, end = section;
  const uint64_t* covers = &covers_[static_cast<size_t>(section) * words_];
  for (int32_t word = 0; word < words_; ++word) {
    for (uint64_t bits = covers[word] & frame.open[word]; bits != 0; bits &= bits - 1) {
      const int32_t id = word * 64 + std::countr_zero(bits);
      if (frame.least[id] > floor) {
        level = std::min(level, frame.least[id]);
      } else {
        begin = std::min(begin, begin_[id]);
        end = std::max(end, end_[id]);
      }
    }
  }
  if (begin == end) return level;
  for (int32_t i = region.first; i < region.first + region.count; ++i) {
    const int32_t id = frame.ids[i];
    if (frame.least[id] >= level) break;  // Sorted by least offset.
    if (begin_[id] >= end || end_[id] <= begin) continue;
    if (frame.least[id] == floor && begin_[id] <= section && end_[id] > section) continue;
    level = std::min(level, frame.least[id] + size_[id]);
  }
  return level;
}

template <class Units>
void CornerSearch::Searcher<Units>::put(Frame& frame, Region& region, int32_t id) {
  const Units offset = frame.floor[begin_[id]];
  const Units top = offset + size_[id];
  changed_begin_ = begin_[id];
  changed_end_ = end_[id];
  offsets_[id] = offset;
  for (int32_t s = begin_[id]; s < end_[id]; ++s) {
    frame.floor[s] = top;
    frame.top[s] = top;
    frame.last[s] = id;
    frame.rest[s] -= size_[id];
  }
  frame.open[id / 64] &= ~(uint64_t{1} << (id % 64));
  int32_t* ids = &frame.ids[region.first];
  int32_t kept = 0;
  for (int32_t i = 0; i < region.count; ++i) {
    const int32_t other = ids[i];
    if (other == id) continue;
    ids[kept++] = other;
    if (begin_[other] < end_[id] && end_[other] > begin_[id] && frame.least[other] < top) {
      raise(frame, other, top);
    }
  }
  region.count = kept;
}

template <class Units>
void CornerSearch::Searcher<Units>::lift(Frame& frame, const Region& region, int32_t section,
                                         Units height) {
  frame.floor[section] = height;
  changed_begin_ = section;
  changed_end_ = section + 1;
  for (int32_t i = region.first; i < region.first + region.count; ++i) {
    const int32_t id = frame.ids[i];
    if (begin_[id] <= section && end_[id] > section && frame.least[id] < height) {
      raise(frame, id, height);
    }
  }
}

// Restores the invariants after a move: ids sorted by least offset,
// floors lifted to the least offset of what is above them. False if some section cannot end within
// the capacity. Only sections under an item whose least offset rose are looked at.
template <class Units>
bool CornerSearch::Searcher<Units>::propagate(Frame& frame, const Region& region) {
  int32_t* ids = frame.ids.data() + region.first;
  Units* least = frame.least.data();
  Units* floor = frame.floor.data();
  Units* height = height_.data();
  Units* lowest = lowest_.data();
  while (changed_begin_ < changed_end_) {
    const int32_t first = changed_begin_, last = changed_end_;
    // Nearly sorted already, so insertion is quick.
    for (int32_t i = 1; i < region.count; ++i) {
      const int32_t id = ids[i];
      const Units key = least[id];
      if (least[ids[i - 1]] <= key) continue;
      int32_t j = i;
      for (; j > 0 && least[ids[j - 1]] > key; --j) ids[j] = ids[j - 1];
      ids[j] = id;
    }
    std::fill(height + first, height + last, 0);
    std::fill(lowest + first, lowest + last, kFar);
    for (int32_t i = 0; i < region.count; ++i) {
      const int32_t id = ids[i];
      const Units offset = least[id], size = size_[id];
      const int32_t begin = std::max(begin_[id], first), end = std::min(end_[id], last);
      for (int32_t s = begin; s < end; ++s) {
        height[s] = std::max(height[s], offset) + size;
        lowest[s] = std::min(lowest[s], offset);
      }
    }
    int32_t lifted_begin = last, lifted_end = first;
    for (int32_t s = first; s < last; ++s) {
      if (height[s] > capacity_) {
        failures_[s] += 1;
        return false;
      }
      if (lowest[s] > floor[s] && lowest[s] < kFar) {
        floor[s] = lowest[s];
        lifted_begin = std::min(lifted_begin, s);
        lifted_end = s + 1;
      }
    }
    changed_begin_ = region.end;
    changed_end_ = region.begin;
    if (lifted_begin >= lifted_end) break;
    for (int32_t i = 0; i < region.count; ++i) {
      const int32_t id = ids[i];
      const int32_t begin = std::max(begin_[id], lifted_begin);
      const int32_t end = std::min(end_[id], lifted_end);
      Units highest = 0;
      for (int32_t s = begin; s < end; ++s) highest = std::max(highest, floor[s]);
      if (highest > least[id]) raise(frame, id, highest);
    }
  }
  return true;
}

// Cuts the region where no undecided item crosses; fills `parts_`.
template <class Units>
int CornerSearch::Searcher<Units>::split(const Frame& frame, const Region& region) {
  parts_.clear();
  std::fill(reach_.begin() + region.begin, reach_.begin() + region.end, -1);
  for (int32_t i = region.first; i < region.first + region.count; ++i) {
    const int32_t id = frame.ids[i];
    reach_[begin_[id]] = std::max(reach_[begin_[id]], end_[id]);
  }
  int32_t begin = -1, end = -1;
  for (int32_t s = region.begin; s < region.end; ++s) {
    if (s == end) {
      parts_.push_back({begin, end});
      end = -1;
    }
    if (reach_[s] < 0) continue;
    if (end < 0) begin = s;
    end = std::max(end, reach_[s]);
  }
  if (end >= 0) parts_.push_back({begin, end});
  return static_cast<int>(parts_.size());
}

// The buffer on top matters to what may follow only where it has a twin.
template <class Units>
uint64_t CornerSearch::Searcher<Units>::hash(const Frame& frame, const Region& region) const {
  uint64_t sum = salt_ + static_cast<uint64_t>(region.begin);
  for (int32_t s = region.begin; s < region.end; ++s) {
    sum += static_cast<uint64_t>(frame.floor[s]) * hash_floor_[s] +
           static_cast<uint64_t>(frame.top[s]) * hash_top_[s];
    const int32_t last = frame.last[s];
    if (last >= 0 && has_twin_[last] && begin_[last] == s) {
      sum += static_cast<uint64_t>(last + 1) * hash_last_[s];
    }
  }
  for (int32_t i = region.first; i < region.first + region.count; ++i) {
    sum += hash_item_[frame.ids[i]];
  }
  return mix(sum) | 1;
}

CornerSearch::CornerSearch(std::vector<Item> items, int32_t sections) : offsets_(items.size()) {
  // Heights never exceed twice the sum of all sizes; if that fits 32 bits, the search is faster.
  int64_t sum = 0;
  for (const Item& item : items) sum += item.size;
  if (sum < (int64_t{1} << 28)) {
    narrow_ = std::make_unique<Searcher<int32_t>>(items, sections);
  } else {
    wide_ = std::make_unique<Searcher<int64_t>>(items, sections);
  }
}

CornerSearch::~CornerSearch() = default;

CornerSearch::Outcome CornerSearch::run(int64_t capacity, int64_t nodes, SearchLimit& limit) {
  const int64_t end = limit.nodes() + nodes;
  int64_t& restart = restarts_[capacity];
  while (!limit.over() && limit.nodes() < end) {
    const Restart now{.capacity = capacity,
                      .strategy = kStrategies[restart % std::ssize(kStrategies)],
                      .noise = 0.5,
                      .seed = static_cast<uint64_t>(restart),
                      .nodes = kFirstRestart * luby(restart / kEpisode + 1)};
    const bool fresh = restart++ % kEpisode == 0;
    const Outcome outcome =
        narrow_ ? narrow_->run(now, fresh, limit) : wide_->run(now, fresh, limit);
    if (outcome == Outcome::stopped) continue;
    if (outcome == Outcome::found) {
      if (narrow_) {
        std::ranges::copy(narrow_->offsets(), offsets_.begin());
      } else {
        std::ranges::copy(wide_->offsets(), offsets_.begin());
      }
    }
    return outcome;
  }
  return Outcome::stopped;
}

}  // namespace tidemark::plan
