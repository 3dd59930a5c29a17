// Plans and profiles as JSON. docs/plan_json.md has the schema.
#include <charconv>
#include <exception>

#include "tidemark/base/json.h"
#include "tidemark/function/plan_data.h"

namespace tidemark {
namespace {

// The shortest digits that round-trip.
std::string number_text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), number).ptr};
}

// The members of one object, in the order of calls.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  // After an exception the text is never read, so it may stay incomplete.
  ~Members() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) out_ += '}';
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  void add(std::string_view name, int64_t number) { begin(name) += std::to_string(number); }
  void add(std::string_view name, Bytes bytes) { add(name, bytes.count); }
  void add(std::string_view name, double number) { begin(name) += number_text(number); }
  void add(std::string_view name, std::string_view text) { begin(name) += json_quoted(text); }
  // A list: each item is written by write(out, item).
  template <class List, class Write>
  void add_list(std::string_view name, const List& list, Write write) {
    begin(name) += '[';
    bool first = true;
    for (const auto& item : list) {
      if (!first) out_ += ", ";
      first = false;
      write(out_, item);
    }
    out_ += ']';
  }
  // The name of a member whose value the caller writes.
  std::string& begin(std::string_view name) {
    if (!first_) out_ += ", ";
    first_ = false;
    out_.append("\"").append(name).append("\": ");
    return out_;
  }

 private:
  std::string& out_;
  bool first_ = true;
  int exceptions_ = std::uncaught_exceptions();
};

void write_tensor(std::string& out, const PlanTensor& tensor) {
  Members members(out);
  members.add("type", tensor.type);
  members.add("bytes", tensor.bytes);
  members.add("line", tensor.line);
  members.add("layer", tensor.layer);
  members.add("reason", tensor.reason);
}

void write_decision(std::string& out, const PlanDecision& decision) {
  Members members(out);
  members.add("what", decision.what);
  members.add("op", decision.op);
  members.add("line", decision.line);
  members.add("layer", decision.layer);
  members.add("times", decision.times);
  members.add("bytes", decision.bytes);
  members.add("flop", decision.flop);
  members.add("more_work", decision.more_work);
}

void write_blame(std::string& out, const PlanBlame& blame) {
  Members members(out);
  members.add("where", blame.where);
  members.add("bytes", blame.bytes);
  members.add("tensors", blame.tensors);
}

void write_buffer(std::string& out, const PlanBuffer& buffer) {
  Members members(out);
  members.add("name", buffer.name);
  members.add("type", buffer.type);
  members.add("class", name(buffer.byte_class));
  members.add("bytes", buffer.bytes);
  members.add("offset", buffer.offset);
  members.add("begin", buffer.begin);
  members.add("end", buffer.end);
  members.add("line", buffer.line);
  members.add("layer", buffer.layer);
  members.add("reason", buffer.reason);
  if (buffer.memory != "host") members.add("memory", buffer.memory);
  if (buffer.arena != 0) members.add("arena", int64_t{buffer.arena});
}

}  // namespace

std::string Plan::to_json() const {
  const run::Program& program = *data_->compiled->program;
  std::string out;
  {
    Members plan(out);
    plan.add("version", int64_t{1});
    plan.add("kind", "plan");
    plan.add("function", data_->title);
    plan.add("peak", peak());
    plan.add("first_call", first_call());
    plan.add("arena", program.arena_bytes);
    plan.add("load", load());
    plan.add("threads", int64_t{program.threads});
    {
      Members classes(plan.begin("classes"));
      for (int i = 0; i < kByteClasses; ++i)
        classes.add(name(static_cast<ByteClass>(i)), data_->classes[i]);
    }
    plan.add_list("memories", memories(), [](std::string& to, const PlanMemory& memory) {
      Members members(to);
      members.add("name", memory.name);
      members.add("bytes", memory.bytes);
      members.add("load", memory.load);
    });
    plan.add_list("recomputes", recomputes(), [](std::string& to, const PlanRecompute& mark) {
      Members members(to);
      members.add("line", mark.line);
      members.add("times", mark.times);
      members.add("without", mark.without);
    });
    plan.add("usual_peak", usual_peak());
    plan.add("flop", flop());
    plan.add("bytes_moved", bytes_moved());
    plan.add("more_work", more_work());
    plan.add_list("decisions", decisions(), write_decision);
    plan.add("peak_step", data_->peak_step);
    plan.add_list("at_peak", data_->at_peak(), write_tensor);
    plan.add_list("by_line", by_line(), write_blame);
    plan.add_list("by_layer", by_layer(), write_blame);
    size_t number = 0;
    plan.add_list("timeline", data_->timeline(), [&](std::string& to, const PlanStep& step) {
      const run::Step& behind = program.steps[number++];
      Members members(to);
      members.add("step", step.name);
      members.add("line", step.line);
      members.add("layer", step.layer);
      members.add("in_use", step.in_use);
      if (behind.end > 0) members.add("body_end", int64_t{behind.end});
    });
    plan.add_list("buffers", buffers(), write_buffer);
  }
  return out + "\n";
}

std::string to_json(const std::vector<TradeoffPoint>& points) {
  std::string out = "[";
  for (const TradeoffPoint& point : points) {
    if (out.size() > 1) out += ", ";
    Members members(out);
    members.add("peak", point.peak);
    members.add("more_work", point.more_work);
    members.add("flop", point.flop);
    members.add("bytes_moved", point.bytes_moved);
    members.add("estimated_ms", point.estimated_ms);
  }
  return out + "]\n";
}

std::string Profile::to_json() const {
  std::string out;
  {
    Members profile(out);
    profile.add("version", int64_t{1});
    profile.add("kind", "profile");
    profile.add("function", function);
    profile.add("planned", planned);
    profile.add("touched", touched);
    profile.add("time_ns", time_ns);
    profile.add("flop", flop);
    profile.add("bytes_moved", bytes_moved);
    profile.add_list("memories", memories, [](std::string& to, const ProfileMemory& memory) {
      Members members(to);
      members.add("name", memory.name);
      members.add("planned", memory.planned);
      members.add("touched", memory.touched);
    });
    const auto quote = [](std::string& to, const std::string& text) { to += json_quoted(text); };
    profile.add_list("donated", donated, quote);
    profile.add_list("not_donated", not_donated, quote);
    profile.add_list("steps", steps, [](std::string& to, const ProfileStep& step) {
      Members members(to);
      members.add("step", step.name);
      members.add("line", step.line);
      members.add("layer", step.layer);
      members.add("planned", step.planned);
      members.add("in_use", step.in_use);
      members.add("runs", step.runs);
      members.add("time_ns", step.time_ns);
      members.add("flop", step.flop);
      members.add("bytes_moved", step.bytes_moved);
    });
    profile.add_list("slices", slices, [](std::string& to, const ProfileSlice& slice) {
      to += cat("[", slice.step, ", ", slice.thread, ", ", slice.begin_ns, ", ", slice.end_ns, "]");
    });
    profile.add("slices_left_out", slices_left_out);
  }
  return out + "\n";
}

}  // namespace tidemark
