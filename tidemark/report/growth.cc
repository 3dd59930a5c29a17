#include "tidemark/report/growth.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "tidemark/account/accounts.h"
#include "tidemark/api/declared_cap.h"
#include "tidemark/api/memory.h"
#include "tidemark/device/account.h"
#include "tidemark/device/cells.h"
#include "tidemark/device/mapping.h"
#include "tidemark/report/series.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace {

using detail::FunctionSums;
using detail::TapeSums;
using report::Series;

// Smaller changes are noise of the allocator.
constexpr int64_t kOutsideSlack = 64 << 10;
constexpr int64_t kFewestSteps = 32;

std::string line_of(Source at) { return at.known() ? at.text() : "?"; }

// Resident pages that Tidemark has not mapped. Tidemark's own pages count fully, touched or not.
class OutsidePages {
 public:
  OutsidePages() : file_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}
  ~OutsidePages() {
    if (file_ >= 0) ::close(file_);
  }
  OutsidePages(const OutsidePages&) = delete;
  OutsidePages& operator=(const OutsidePages&) = delete;

  int64_t bytes() const {
    char text[128] = {};
    long long size = 0, resident = 0;
    if (file_ < 0 || pread(file_, text, sizeof(text) - 1, 0) <= 0 ||
        std::sscanf(text, "%lld %lld", &size, &resident) != 2)
      return 0;
    int64_t ours = memory::current().count + memory::cached().count - device::foreign_bytes();
    for (const device::MappedRange& range : device::mapped_ranges())
      if (range.owner != device::MappingOwner::pool) ours += range.end - range.begin;
    return std::max<int64_t>(0, resident * device::kPageBytes - ours);
  }

 private:
  int file_;
};

struct LineSeries {
  Series bytes, count, viewed;
  explicit LineSeries(int64_t step) : bytes(step), count(step), viewed(step) {}
};
struct FunctionSeries {
  Series bytes, functions;
  explicit FunctionSeries(int64_t step) : bytes(step), functions(step) {}
};
struct TapeSeries {
  Series records;
  explicit TapeSeries(int64_t step) : records(step) {}
};

// Records every n-th step. When it is full, every second record is dropped and n doubles.
class History {
 public:
  History() { points_.reserve(kMost); }
  void add(int64_t step) {
    last_ = {step, memory::current()};
    if (step % every_ != 0) return;
    if (points_.size() == kMost) {
      every_ *= 2;
      std::erase_if(points_, [&](const WatchPoint& point) { return point.step % every_ != 0; });
    }
    if (step % every_ == 0) points_.push_back(last_);
  }
  std::vector<WatchPoint> points() const {
    std::vector<WatchPoint> all = points_;
    if (last_.step > 0 && (all.empty() || all.back().step != last_.step)) all.push_back(last_);
    return all;
  }

 private:
  static constexpr size_t kMost = 511;  // And the last one.
  int64_t every_ = 1;
  std::vector<WatchPoint> points_;
  WatchPoint last_;
};

// One for each number of a list that grows.
template <class One>
void follow(std::vector<One>& series, size_t count, int64_t step) {
  while (series.size() < count) series.emplace_back(step);
}

}  // namespace

struct StepMonitor::WatchState {
  int64_t steps = 0;
  // Indexed by line number: the last reading, and the series.
  std::vector<device::LineSums> line_sums;
  std::vector<LineSeries> lines;
  std::vector<FunctionSums> function_sums, function_sums_at_start;
  std::vector<FunctionSeries> functions;
  std::vector<TapeSums> tape_sums;
  std::vector<TapeSeries> tapes;
  std::vector<detail::CappedLine> capped;
  Series cache, code, outside;
  History history;
  OutsidePages pages;
  int64_t outside_at_start = 0;

  WatchState() {
    read_function_lines(function_sums_at_start);
    function_sums = function_sums_at_start;
    outside_at_start = bytes_outside();
  }
  void read_lines();
  void read_functions();
  void read_tapes();
  void read_process();
  int64_t bytes_outside() const;

  // Before there are windows to compare, one line says that nothing can be told yet.
  bool is_news(Growth growth) const {
    return growth != Growth::flat && (growth != Growth::cannot_tell || steps >= kFewestSteps);
  }
  GrowthRow row_of(const char* kind, const Series& bytes, Growth growth) const;
  void add_lines(WatchReport& report) const;
  void describe(std::map<uint32_t, GrowthRow*>& growing) const;
  void add_functions(WatchReport& report) const;
  void add_tapes(WatchReport& report) const;
  void add_buffers(WatchReport& report) const;
  void add_process(WatchReport& report) const;
};

// ---- each step ----------------------------------------------------------------------------------

// Bytes of buffers with a declared cap do not count.
void StepMonitor::WatchState::read_lines() {
  device::read_lines(line_sums);
  read_capped_lines(capped);
  for (const detail::CappedLine& held : capped) {
    if (held.line >= line_sums.size()) continue;
    line_sums[held.line].bytes -= held.bytes;
    line_sums[held.line].count -= held.count;
  }
  follow(lines, line_sums.size(), steps);
  for (size_t i = 0; i < lines.size(); ++i) {
    lines[i].bytes.add(steps, line_sums[i].bytes);
    lines[i].count.add(steps, line_sums[i].count);
    lines[i].viewed.add(steps, line_sums[i].viewed);
  }
}

void StepMonitor::WatchState::read_functions() {
  read_function_lines(function_sums);
  follow(functions, function_sums.size(), steps);
  for (size_t i = 0; i < functions.size(); ++i) {
    functions[i].bytes.add(steps, function_sums[i].bytes);
    functions[i].functions.add(steps, function_sums[i].functions);
  }
}

void StepMonitor::WatchState::read_tapes() {
  read_tape_lines(tape_sums);
  follow(tapes, tape_sums.size(), steps);
  for (size_t i = 0; i < tapes.size(); ++i) tapes[i].records.add(steps, tape_sums[i].records);
}

// Memory of functions on the heap has its own rows.
int64_t StepMonitor::WatchState::bytes_outside() const {
  int64_t bytes = pages.bytes();
  for (const FunctionSums& sums : function_sums) bytes -= sums.bytes;
  return bytes;
}

// Resident memory is read at most 64 times between two powers of two.
void StepMonitor::WatchState::read_process() {
  history.add(steps);
  cache.add(steps, memory::cached().count);
  code.add(steps, memory::code().count);
  const auto every = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(steps))) / 64;
  if (every < 2 || steps % every == 0) outside.add(steps, bytes_outside());
}

StepMonitor::StepMonitor() : watched_(std::make_unique<WatchState>()) {}
StepMonitor::~StepMonitor() = default;

void StepMonitor::step() {
  ++watched_->steps;
  watched_->read_lines();
  watched_->read_functions();
  watched_->read_tapes();
  watched_->read_process();
}

WatchReport memory::watch(int64_t steps, const std::function<void()>& body) {
  StepMonitor monitor;
  for (int64_t i = 0; i < steps; ++i) {
    body();
    monitor.step();
  }
  return monitor.report();
}

// ---- the report ---------------------------------------------------------------------------------

GrowthRow StepMonitor::WatchState::row_of(const char* kind, const Series& bytes,
                                          Growth growth) const {
  GrowthRow row;
  row.kind = kind;
  row.growth = growth;
  row.bytes = bytes.now();
  row.bytes_per_step = bytes.per_step(steps);
  return row;
}

namespace {

// Tensors of one class and type.
struct TensorKind {
  int64_t count = 0, bytes = 0, handles = 0, views = 0;
};
using KindsByName = std::map<std::string, TensorKind>;

std::string type_text(const detail::TensorState& state) {
  constexpr int64_t kInside =
      6;  // More sizes are on the heap, which may have been freed meanwhile.
  if (state.array.shape.rank() > kInside) return cat(state.array.dtype, "[...]");
  return cat(state.array.dtype, state.array.shape);
}

void add(KindsByName& all, const device::Cell& cell) {
  const auto& state = *reinterpret_cast<const detail::TensorState*>(cell.payload);
  TensorKind& kind = all[cat(name(cell.storage.byte_class), ' ', type_text(state))];
  ++kind.count;
  kind.bytes += cell.storage.bytes;
  kind.handles += state.references.load(std::memory_order_relaxed);
  kind.views += cell.storage.references.load(std::memory_order_relaxed) - 1;
}

// The kind with the most bytes, then the number of other kinds.
void put(GrowthRow& row, const KindsByName& all) {
  if (all.empty()) return;
  const auto most = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second.bytes < b.second.bytes;
  });
  row.what = most->first;
  if (all.size() > 1)
    row.what += cat(" and ", all.size() - 1, all.size() == 2 ? " other type" : " other types");
  int64_t handles = 0, views = 0;
  for (const auto& [text, kind] : all) {
    handles += kind.handles;
    views += kind.views;
  }
  row.holders = cat(handles, handles == 1 ? " handle" : " handles");
  if (views > 0) row.holders += cat(", ", views, views == 1 ? " view" : " views");
}

}  // namespace

// Visits all live tensors to describe those of growing lines.
void StepMonitor::WatchState::describe(std::map<uint32_t, GrowthRow*>& growing) const {
  std::map<uint32_t, KindsByName> found;
  device::for_each_cell([&](const device::Cell& cell) {
    using Kind = device::Storage::Kind;
    if (cell.storage.kind == Kind::borrowed || cell.storage.kind == Kind::view ||
        cell.storage.kind == Kind::device)
      return;
    const uint32_t line = line_number(cell.storage);
    if (growing.contains(line)) add(found[line], cell);
  });
  for (const auto& [line, row] : growing) put(*row, found[line]);
}

void StepMonitor::WatchState::add_lines(WatchReport& report) const {
  report.rows.reserve(report.rows.size() +
                      2 * lines.size());  // Rows must not move: they are pointed to.
  std::map<uint32_t, GrowthRow*> growing;
  for (uint32_t i = 0; i < lines.size(); ++i) {
    const LineSeries& line = lines[i];
    const Growth bytes = line.bytes.growth(steps), viewed = line.viewed.growth(steps);
    if (is_news(bytes)) {
      GrowthRow& row = report.rows.emplace_back(row_of("tensors", line.bytes, bytes));
      row.line = line_of(device::line_at(i));
      row.count = line.count.now();
      row.count_per_step = line.count.per_step(steps);
      growing[i] = &row;
    } else if (line.bytes.now() > 0) {
      ++report.flat_lines;
      report.flat_bytes = report.flat_bytes + line.bytes.now();
    }
    if (!is_news(viewed)) continue;
    GrowthRow& row = report.rows.emplace_back(row_of("views", line.viewed, viewed));
    row.line = line_of(device::line_at(i));
    row.what = "bytes seen";
  }
  if (!growing.empty()) describe(growing);
}

// The traces of one function are bounded by its cache; the number of functions is not.
void StepMonitor::WatchState::add_functions(WatchReport& report) const {
  const std::vector<detail::FunctionLine> all = detail::function_lines();
  for (size_t i = 0; i < all.size(); ++i) {
    const detail::FunctionLine& line = all[i];
    const std::string title =
        line.name.empty() ? std::string("the function") : cat("function \"", line.name, "\"");
    const int64_t before = i < function_sums_at_start.size() ? function_sums_at_start[i].traced : 0;
    if (line.sums.traced > before || line.sums.captured > 0)
      report.traces.push_back({title, line_of(line.at), line.sums.traced - before, line.reason,
                               line.sums.captured, line.sums.captured_bytes});
    if (i >= functions.size()) continue;
    Growth growth = functions[i].bytes.growth(steps);
    if (!is_news(growth)) continue;
    if (growth == Growth::growing && functions[i].functions.growth(steps) == Growth::flat)
      growth = Growth::filling;
    GrowthRow& row = report.rows.emplace_back(row_of("traces", functions[i].bytes, growth));
    row.line = line_of(line.at);
    row.what = title;
    row.count = line.sums.traces;
    row.count_per_step = functions[i].functions.per_step(steps);
    row.holders = cat(line.sums.functions, line.sums.functions == 1 ? " function" : " functions");
    if (growth == Growth::filling)
      row.filled = cat(Bytes(line.sums.bytes), " of ", Bytes(line.sums.limit_bytes));
  }
}

void StepMonitor::WatchState::add_tapes(WatchReport& report) const {
  const std::vector<detail::TapeLine> all = detail::tape_lines();
  for (size_t i = 0; i < tapes.size(); ++i) {
    const Growth growth = tapes[i].records.growth(steps);
    if (!is_news(growth)) continue;
    const detail::TapeLine& line = all[i];
    GrowthRow& row = report.rows.emplace_back();
    row.kind = "tape";
    row.growth = growth;
    row.line = line_of(line.at);
    row.what = "recorded ops";
    row.count = line.sums.records;
    row.count_per_step = tapes[i].records.per_step(steps);
    row.holders = cat(line.sums.tapes, line.sums.tapes == 1 ? " tape" : " tapes");
    if (line.saved_bytes < 0) continue;  // The tape belongs to another thread.
    row.bytes = line.saved_bytes;
    if (line.sums.records > 0)
      row.bytes_per_step = row.count_per_step * static_cast<double>(line.saved_bytes) /
                           static_cast<double>(line.sums.records);
  }
}

void StepMonitor::WatchState::add_buffers(WatchReport& report) const {
  for (const detail::CapReport& buffer : detail::declared_caps()) {
    GrowthRow& row = report.rows.emplace_back();
    row.kind = "buffer";
    row.growth = buffer.count < buffer.cap ? Growth::filling : Growth::flat;
    row.filled = cat(buffer.count, " of ", buffer.cap);
    row.what = buffer.name;
    row.count = buffer.count;
    row.bytes = buffer.bytes;
  }
}

void StepMonitor::WatchState::add_process(WatchReport& report) const {
  // Cache and tensors together stay below the limit.
  Growth growth = cache.growth(steps);
  if (growth == Growth::growing) growth = Growth::filling;
  GrowthRow& cached = report.rows.emplace_back(row_of("cache", cache, growth));
  if (growth == Growth::filling)
    cached.filled = cat(Bytes(cache.now()), " of ", memory::limit() - memory::current());
  cached.what = "free memory of the pool";

  GrowthRow& made = report.rows.emplace_back(row_of("code", code, code.growth(steps)));
  made.what = "machine code";
  const std::vector<detail::FunctionLine> all = detail::function_lines();
  int64_t most = 0;
  for (size_t i = 0; i < all.size() && made.growth == Growth::growing; ++i) {
    const int64_t before =
        i < function_sums_at_start.size() ? function_sums_at_start[i].code_bytes : 0;
    const int64_t since = all[i].sums.code_bytes - before;
    if (since <= most) continue;
    most = since;
    made.line = line_of(all[i].at);
    made.what = cat("machine code, most of it (", Bytes(since), " in ", all[i].sums.traces,
                    " traces) for functions made here");
  }

  GrowthRow& rest = report.rows.emplace_back(
      row_of("outside Tidemark", outside, outside.growth(steps, kOutsideSlack)));
  rest.what =
      cat(outside.now() < outside_at_start ? "-" : "+",
          Bytes(std::abs(outside.now() - outside_at_start)), " since the start, the heap included");
}

WatchReport StepMonitor::report() const {
  WatchReport report;
  report.steps = watched_->steps;
  report.history = watched_->history.points();
  watched_->add_lines(report);
  watched_->add_functions(report);
  watched_->add_tapes(report);
  watched_->add_buffers(report);
  std::stable_sort(
      report.rows.begin(), report.rows.end(),
      [](const GrowthRow& a, const GrowthRow& b) { return a.bytes_per_step > b.bytes_per_step; });
  watched_->add_process(report);
  return report;
}

}  // namespace tidemark
