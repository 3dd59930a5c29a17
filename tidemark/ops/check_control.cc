#include "tidemark/ops/check_control.h"

#include "tidemark/base/error.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/typing.h"

namespace tidemark {
namespace {

using Types = std::vector<TensorType>;

class ControlCheck {
 public:
  ControlCheck(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
    for (const Value input : node.inputs) inputs_.push_back(graph.type(input));
  }

  Types run() {
    switch (node_.op->flow) {
      case Flow::cond:
        return cond();
      case Flow::loop:
        return loop();
      case Flow::map:
        return map();
      case Flow::reverse_loop:
        return reverse_loop();
      case Flow::call:
        return call();
      default:
        expect_regions(1, 1);
        return region(0, inputs_);
    }
  }

 private:
  Types cond() {
    expect_inputs(1);
    expect_regions(2, 2);
    expect("the condition", inputs_[0], {DType::boolean, {}});
    const Types captures = take(1, inputs_.size());
    Types then = region(0, captures);
    expect_all("result", region(1, captures), "the second region", then);
    return then;
  }

  Types loop() {
    const LoopAttrs attrs(node_);
    const size_t carries = count("carries", attrs.carries);
    const size_t slices = count("slices", attrs.slices);
    const size_t stacked = count("stacked", attrs.stacked);
    const Dim trips = attrs.trips;
    const size_t counted = attrs.first_carry();
    expect_trips(trips);
    check_saving(attrs);
    expect_inputs(counted + carries + slices);
    expect_regions(1, counted == 1 ? 1 : 2);
    const TensorType number{DType::i64, {}};
    if (counted == 1) expect("the number of trips", inputs_[0], number);

    const Types carried = take(counted, counted + carries);
    const Types captures = take(counted + carries + slices, inputs_.size());
    Types parameters = {number};
    append(parameters, carried);
    for (size_t i = 0; i < slices; ++i)
      parameters.push_back(
          slice_of(inputs_[counted + carries + i], counted == 1 ? Dim(open) : trips));
    append(parameters, captures);
    const Types results = region(0, parameters);
    if (results.size() != carries + stacked) {
      refuse(cat("its body returns ", results.size(), " values for carries = ", carries,
                 " and stacked = ", stacked),
             "a body returns the next carries, then the elements to stack");
    }
    expect_all("carry", Types(results.begin(), results.begin() + std::ssize(carried)), "the body",
               carried);
    if (node_.regions.size() == 2) check_condition(number, carried, captures);

    Types types = carried;
    for (size_t i = carries; i < results.size(); ++i) {
      append_kept(types, attrs, carried);
      types.push_back(stack_of(results[i], trips));
    }
    append_kept(types, attrs, carried);
    return types;
  }

  void check_save(LoopAttrs::Save save) const {
    if (save < LoopAttrs::Save::automatic || save > LoopAttrs::Save::bytes)
      refuse(cat("save = ", static_cast<int64_t>(save), " is not a choice"),
             "0: automatic, 1: all, 2: every, 3: slots, 4: bytes");
  }

  void check_saving(const LoopAttrs& attrs) const {
    check_save(attrs.save);
    count("saved", attrs.saved);
    if (attrs.saved > attrs.stacked)
      refuse(cat("saved = ", attrs.saved, " of stacked = ", attrs.stacked),
             "it is the number of stacked arrays, counted from the last, that are residuals");
    const int64_t behind = attrs.carries + attrs.stacked;
    if (attrs.marks != 0 && (attrs.marks < attrs.carries || attrs.marks > behind))
      refuse(cat("marks = ", attrs.marks, " is not the index of a result after the carries"),
             "write 0 if there are no marks");
    const bool is_set = attrs.kept != 0 && attrs.kept >= -1;
    const bool fits = attrs.kept == -1 || attrs.carries >= 63 || attrs.kept >> attrs.carries == 0;
    if (attrs.kept != 0 && (!is_set || !fits || attrs.marks == 0))
      refuse(cat("kept = ", attrs.kept, " is not a set of carries with checkpoints"),
             "it has one bit for each carry, or is -1 for all of them, and needs marks");
  }

  // Appends the types of marks and checkpoints. The number of slots is taken from the node.
  void append_kept(Types& types, const LoopAttrs& attrs, const Types& carried) const {
    if (attrs.marks == 0 || types.size() != static_cast<size_t>(attrs.marks)) return;
    const std::vector<size_t> kept = attrs.kept_carries();
    const auto marks = static_cast<size_t>(attrs.marks);
    const bool is_there = marks < node_.results.size() && node_.results[marks].shape.rank() == 1;
    const int64_t words = is_there ? int64_t{node_.results[marks].shape[0]} : 0;
    if (kept.empty() ? words != 1 : words < 2 || words % 2 != 0)
      refuse(cat("its marks are ", words, " words"),
             "marks have 1 word without checkpoints, else 2 for each slot");
    types.push_back({DType::i64, {words}});
    for (const size_t k : kept) types.push_back(stack_of(carried[k], words / 2));
  }

  Types reverse_loop() {
    const ReverseAttrs attrs(node_);
    const size_t carries = count("carries", attrs.carries), backs = count("backs", attrs.backs);
    const size_t slices = count("slices", attrs.slices), stacked = count("stacked", attrs.stacked);
    if (count("seeds", attrs.seeds) > slices)
      refuse(cat("seeds = ", attrs.seeds, " of slices = ", slices),
             "it is the number of slices, counted from the last, that are seeds");
    check_save(attrs.save);
    expect_trips(attrs.trips);
    expect_inputs(1 + 2 * carries + backs + slices);
    expect_regions(2, 2);
    const TensorType number{DType::i64, {}};
    const bool is_list = inputs_[0].shape.rank() == 1;
    const int64_t words = is_list ? int64_t{inputs_[0].shape[0]} : 0;
    if (words < 2 || words % 2 != 0 || inputs_[0].dtype != DType::i64)
      refuse(cat("its marks are ", inputs_[0]), "marks are i64, 2 for each slot");
    const Types carried = take(1 + carries, 1 + 2 * carries);
    for (size_t k = 0; k < carries; ++k)
      expect(cat("checkpoint ", k), inputs_[1 + k], stack_of(carried[k], words / 2));
    size_t next = 1 + 2 * carries;
    const Types carried_back = take(next, next + backs);
    next += backs;
    Types rest;
    for (size_t i = 0; i < slices; ++i) rest.push_back(slice_of(inputs_[next + i], attrs.trips));
    append(rest, take(next + slices, inputs_.size()));
    Types parameters = {number};
    append(parameters, carried);
    Types going_back = parameters;
    append(parameters, rest);
    expect_all("carry", region(0, parameters), "the body", carried);
    append(going_back, carried_back);
    append(going_back, rest);
    const Types results = region(1, going_back);
    if (results.size() != backs + stacked) {
      refuse(cat("its second region returns ", results.size(), " values for backs = ", backs,
                 " and stacked = ", stacked),
             "the backward region returns the next backs, then the elements to stack");
    }
    expect_all("value", Types(results.begin(), results.begin() + std::ssize(carried_back)),
               "the second region", carried_back);
    Types types = carried_back;
    for (size_t i = backs; i < results.size(); ++i)
      types.push_back(stack_of(results[i], attrs.trips));
    return types;
  }

  void check_condition(const TensorType& number, const Types& carried, const Types& captures) {
    Types parameters = {number};
    append(parameters, carried);
    append(parameters, captures);
    expect_all("result", region(1, parameters), "the condition", {{DType::boolean, {}}});
  }

  Types map() {
    Attrs::Reader read = node_.attrs.read();
    const size_t slices = count("slices", read.integer());
    const Dim trips = read.size(), alive = read.size();
    if (alive.is_any() && alive != open)
      refuse(cat("alive = ", written(alive), " is not a count"),
             "write -1 for as many as the budget has room for");
    expect_trips(trips);
    expect_inputs(slices);
    expect_regions(1, 1);
    Types parameters;
    for (size_t i = 0; i < slices; ++i) parameters.push_back(slice_of(inputs_[i], trips));
    append(parameters, take(slices, inputs_.size()));
    Types types;
    for (const TensorType& element : region(0, parameters))
      types.push_back(stack_of(element, trips));
    return types;
  }

  Types call() {
    Attrs::Reader read = node_.attrs.read();
    const size_t outputs = count("outputs", read.integer());
    const std::span<const int64_t> saved = read.integers(), by = read.integers();
    expect_regions(1, 2);
    Types results = region(0, inputs_);
    if (outputs > results.size())
      refuse(cat("outputs = ", outputs, " of ", results.size(), " results"), node_.op->brief);
    if (node_.regions.size() == 1) return results;
    Types all = inputs_, parameters, gradients;
    append(all, results);
    const auto pick = [&](const char* name, int64_t value, size_t end) {
      if (count(name, value) >= end)
        refuse(cat(name, " names ", value, " of ", end, " values"), node_.op->brief);
      return all[static_cast<size_t>(value)];
    };
    for (const int64_t value : saved) parameters.push_back(pick("saved", value, all.size()));
    for (size_t i = 0; i < outputs; ++i) parameters.push_back(results[i]);
    for (const int64_t input : by) gradients.push_back(pick("by", input, inputs_.size()));
    expect_all("result", region(1, parameters), "the gradient", gradients);
    return results;
  }

  static constexpr std::string_view kFromZero = "write a number from 0 up";
  [[noreturn]] void refuse(const std::string& problem, std::string_view remedy) const {
    throw UserError(cat(node_.op->name, ": ", problem), Source::none(), remedy);
  }

  size_t count(const char* name, int64_t value) const {
    // The bound is far above any real count, and sums of counts do not overflow.
    if (value < 0 || value > INT32_MAX)
      refuse(cat(name, " = ", value, " is not a count"), kFromZero);
    return static_cast<size_t>(value);
  }
  void expect_trips(Dim trips) const {
    if (trips.is_any() && trips != open)
      refuse(cat("trips = ", written(trips), " is not a count"), "write -1 if it is not known");
  }
  void expect_inputs(size_t least) const {
    if (inputs_.size() < least)
      refuse(cat("takes at least ", least, " operands here, got ", inputs_.size()),
             node_.op->brief);
  }
  void expect_regions(size_t least, size_t most) const {
    const size_t got = node_.regions.size();
    if (got >= least && got <= most) return;
    refuse(cat("has ", least == most ? cat(most) : cat(least, " or ", most), " regions, got ", got),
           node_.op->brief);
  }
  void expect(const std::string& what, const TensorType& got, const TensorType& wanted) const {
    if (!fits(got, wanted)) refuse(cat(what, " is ", got, ", not ", wanted), node_.op->brief);
  }
  void expect_all(const char* what, const Types& got, const std::string& where,
                  const Types& wanted) const {
    if (got.size() != wanted.size()) {
      refuse(cat(where, " has ", got.size(), " ", what, got.size() == 1 ? "" : "s", ", not ",
                 wanted.size()),
             node_.op->brief);
    }
    for (size_t i = 0; i < got.size(); ++i)
      expect(cat(what, " ", i, " of ", where), got[i], wanted[i]);
  }

  // The types of a region's results, after checking that its parameters have these types.
  Types region(size_t i, const Types& parameters) const {
    const Region& region = graph_.regions[static_cast<size_t>(node_.regions[i])];
    expect_all("parameter", types_of(region.parameters), cat("region ", i), parameters);
    return types_of(region.results);
  }
  Types types_of(const std::vector<Value>& values) const {
    Types types;
    for (const Value value : values) types.push_back(graph_.type(value));
    return types;
  }

  TensorType slice_of(const TensorType& array, Dim trips) const {
    TensorType slice = array;
    if (array.shape.rank() == 0 || !fits(array, stacked_as(array, trips)))
      refuse(cat("cannot slice ", array, " in ", written(trips), " trips"),
             "each trip reads one slice of the first axis");
    slice.shape.erase(0);
    return slice;
  }
  // The array with its first size replaced by the number of trips, if that is known.
  static TensorType stacked_as(const TensorType& array, Dim trips) {
    TensorType same = array;
    if (!trips.is_any()) same.shape.set(0, trips);
    return same;
  }
  static TensorType stack_of(TensorType element, Dim trips) {
    element.shape.insert(0, trips);
    return element;
  }

  Types take(size_t begin, size_t end) const {
    return {inputs_.begin() + static_cast<std::ptrdiff_t>(begin),
            inputs_.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  static void append(Types& to, const Types& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  const Graph& graph_;
  const Node& node_;
  Types inputs_;
};

}  // namespace

std::vector<TensorType> check_control(const Graph& graph, const Node& node) {
  return ControlCheck(graph, node).run();
}

}  // namespace tidemark
