// Exact search: is there a placement under a given capacity?
//
// Time is cut into sections, between which no buffer begins or ends. Buffers are stacked from
// below: each section has a floor, under which everything is decided. A valley is a run of sections
// with equal floors between higher ones:
//
//            |     |
//      ------+     +----       The lowest byte over the first section of the valley goes to a
//            |     |           buffer that begins there and fits into the valley, or it stays
//            +-----+           empty. That is the whole choice; the same holds at the right end.
//            l     r
//
// So the search branches on corners, and takes those without a choice at once. Only placements in
// which every buffer rests on another (or on zero) are visited: any other can be pushed down to one
// of them. What bounds it:
//
//  - A buffer cannot start below the highest floor under it. Stacking the buffers of a section in
//    the order of these least offsets gives the least height that section can end at; it must not
//    pass the capacity.
//  - An empty byte lifts the floor of its section to the next offset at which something could rest.
//  - Where no undecided buffer crosses a moment, the two sides are solved apart.
//  - States that failed before are remembered by a hash and not visited again.
//  - Of buffers with the same lifetime stacked directly on each other one order is tried.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tidemark/plan/model.h"
#include "tidemark/plan/search_limit.h"

namespace tidemark::plan {

// Which corner to branch on, and which of its buffers to try first. No pair is best everywhere, so
// the search restarts with another after a while.
struct Strategy {
  enum Corner : uint8_t {
    fewest_choices,
    choices_then_slack,  // Of corners with equally few choices, the one with the least bytes to
                         // spare.
    slack_per_failure,   // Few bytes to spare, and many failures before.
    leftmost,
    outward,  // From a section with many failures.
  };
  enum Order : uint8_t {
    width,
    load,  // The most loaded section it covers, then width.
  };
  Corner corner = fewest_choices;
  Order order = width;
};

class CornerSearch {
 public:
  enum class Outcome : uint8_t { found, impossible, stopped };

  CornerSearch(std::vector<Item> items, int32_t sections);
  ~CornerSearch();

  // Looks for a placement under `capacity`, restarting until one is found, none can exist, or
  // `nodes` more steps are taken; the last restart is finished. A later call with the same capacity
  // goes on where this one ended.
  Outcome run(int64_t capacity, int64_t nodes, SearchLimit& limit);

  // The offsets of the last run that ended in `found`; one per item.
  std::span<const int64_t> offsets() const { return offsets_; }

 private:
  struct Restart;
  template <class Units>
  class Searcher;

  // One of the two is set, depending on the range of heights.
  std::unique_ptr<Searcher<int32_t>> narrow_;
  std::unique_ptr<Searcher<int64_t>> wide_;
  std::map<int64_t, int64_t> restarts_;  // Per capacity: how many there were.
  std::vector<int64_t> offsets_;
};

}  // namespace tidemark::plan
