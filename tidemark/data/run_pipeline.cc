// Iteration over a chain of stages, and its plan.
#include "tidemark/data/pipeline.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "tidemark/api/extend.h"
#include "tidemark/api/over_budget.h"
#include "tidemark/base/lock.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

// Held while a stage works. Its memory is charged to the user's line that made the stage. Elements
// are computed eagerly even inside a trace, where they are constants.
struct StagesWork {
  UserCode own_lines;
  tidemark::detail::NoTrace eager;
};

void add_stages(const Stage& stage, std::vector<StageBytes>& list) {
  for (const StagePtr& input : stage.inputs()) add_stages(*input, list);
  list.push_back(stage.bytes());
}

DatasetPlan plan_of(const Stage& stage) {
  std::vector<StageBytes> list;
  add_stages(stage, list);
  return DatasetPlan(std::move(list));
}

}  // namespace

void CapCheck::operator()() const {
  if (!cap_) return;
  const DatasetPlan plan = plan_of(*stage_);
  if (plan.known_bytes() <= cap_->bytes) return;
  std::string list;
  for (const StageBytes& stage : plan.stages())
    list +=
        cat(list.empty() ? "" : ", ", stage.stage, " ", stage.bytes, stage.known ? "" : " so far");
  throw OverBudget(cat("data: this dataset holds ", plan.known_bytes(),
                       " during an iteration, its cap is ", cap_->bytes),
                   cap_->at, cat(list, "\n  raise the cap, or make one of these hold less"),
                   cap_->bytes, plan.known_bytes());
}

// The number of passes started, and the position of the last one.
struct Pipeline::Progress {
  Mutex mutex;
  Position next;         // The position at which the next pass begins.
  bool is_ahead = true;  // No pass was started since `next` was set, so it is the position.
  int64_t pass = 0;      // Of the pass started last.
  std::shared_ptr<std::atomic<int64_t>> given = std::make_shared<std::atomic<int64_t>>(0);

  // The state that starting a pass overwrites.
  struct Before {
    Position next;
    bool is_ahead;
    int64_t pass;
    std::shared_ptr<std::atomic<int64_t>> given;
  };
  Before begin(const std::shared_ptr<std::atomic<int64_t>>& counter) {
    const std::scoped_lock lock(mutex);
    Before before{next, is_ahead, pass, given};
    *counter = next.element;
    pass = next.pass;
    given = counter;
    next = {next.pass + 1, 0};
    is_ahead = false;
    return before;
  }
  // The pass could not be started. If another was started since, its number is not reused.
  void undo(Before before, const std::shared_ptr<std::atomic<int64_t>>& counter) {
    const std::scoped_lock lock(mutex);
    if (given != counter || is_ahead) return;
    next = before.next;
    is_ahead = before.is_ahead;
    pass = before.pass;
    given = std::move(before.given);
  }
};

struct Walk::State {
  std::shared_ptr<const Pipeline> pipeline;
  Pass pass;
  std::shared_ptr<std::atomic<int64_t>> given;
  std::optional<Pipeline::Progress::Before> before;  // Set until the first element is yielded.
  std::vector<const Stage*> prepared;
  CursorPtr cursor;  // Last: it reads from the stages above.

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  // An iteration that yielded nothing does not count: the next one has its number, and finds caches
  // unchanged.
  ~State() {
    if (!before) return;
    cursor.reset();
    pipeline->progress_->undo(*std::move(before), given);
    for (const Stage* stage : prepared) stage->take_back();
  }
};

Pipeline::Pipeline(StagePtr stage, std::optional<Cap> cap)
    : stage_(std::move(stage)), check_(stage_, cap), progress_(std::make_unique<Progress>()) {}
Pipeline::~Pipeline() = default;

DatasetPlan Pipeline::plan() const {
  const StagesWork working;
  stage_->learn();
  return plan_of(*stage_);
}

std::optional<int64_t> Pipeline::count() const {
  const auto count = stage_->count();
  return count == kEndless ? std::nullopt : count;
}

void Pipeline::check() const {
  const StagesWork working;
  if (!cap()) return;
  stage_->learn();
  check_();
}

Walk Pipeline::begin() {
  const StagesWork working;
  check();
  auto state = std::make_unique<Walk::State>();
  state->pipeline = shared_from_this();
  state->given = std::make_shared<std::atomic<int64_t>>(0);
  state->before = progress_->begin(state->given);
  state->pass = {.epoch = state->before->next.pass, .cap = &check_, .prepared = &state->prepared};
  stage_->prepare(state->pass);
  state->cursor = stage_->open(state->pass);
  if (const int64_t passed = *state->given; passed > 0) state->cursor->advance(passed);
  return Walk(std::move(state));
}

Position Pipeline::position() const {
  const std::scoped_lock lock(progress_->mutex);
  if (progress_->is_ahead) return progress_->next;
  return {progress_->pass, *progress_->given};
}

void Pipeline::restore(Position position, Source at) {
  const auto elements = count();
  if (position.pass < 0 || position.element < 0 || (elements && position.element > *elements))
    throw UserError(cat("data: there is no element ", position.element, " in pass ", position.pass,
                        elements ? cat(" of ", *elements, " elements") : ""),
                    at, "restore a value of position(), on a dataset built in the same way");
  const std::scoped_lock lock(progress_->mutex);
  progress_->next = position;
  progress_->is_ahead = true;
}

Walk::Walk(std::unique_ptr<State> state) : state_(std::move(state)) {}
Walk::Walk(Walk&&) noexcept = default;
Walk::~Walk() = default;

std::optional<Element> Walk::next() {
  const StagesWork working;
  std::optional<Element> element = state_->cursor->next();
  if (!element) state_->before.reset();
  return element;
}

void Walk::gave() {
  state_->given->fetch_add(1, std::memory_order_relaxed);
  state_->before.reset();
}

Position Walk::position() const { return {state_->pass.epoch, *state_->given}; }

}  // namespace tidemark::data
