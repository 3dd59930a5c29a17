// Runs the programs of a file in the ways their last lines ask for, and writes what came out for
// programs.py: truth_driver < PROGRAMS > RESULTS. `truth_driver --ops` lists the catalogue.
//
// A way is HOW.WHAT. HOW: eager; function, nojit, donated (closed sizes); open (sizes in the
// signature), auto (sizes that open at the second call); tape, opentape (an eager tape around a
// function). WHAT: value, grad (by arguments and Variables), hvp, jvp.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <iostream>

#include "tests/truth/interpret.h"
#include "tidemark/compile/cpu/kernels.h"

namespace tidemark::truth {
namespace {

namespace td = tidemark;
using Tensors = std::vector<Tensor>;

// ---- inputs -------------------------------------------------------------------------------------

uint64_t mixed(uint64_t word) {
  word += 0x9e3779b97f4a7c15ULL;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

// Inputs are numbered: arguments, Variables, directions, captured tensors. programs.py makes the
// same ones.
Tensor drawn(DType dtype, const Shape& shape, const Input& input, uint64_t stream) {
  const bool on_grid = input.layout.ends_with("+grid");
  std::vector<double> values;
  for (int64_t i = 0; i < shape.size(); ++i) {
    const uint64_t word = mixed(stream + static_cast<uint64_t>(i));
    const double unit = static_cast<double>(word >> 11) * 0x1p-53;
    const double value = input.low + (input.high - input.low) * unit;
    if (dtype == DType::boolean)
      values.push_back(static_cast<double>(word & 1));
    else if (is_float(dtype))
      values.push_back(on_grid ? std::nearbyint(value * 2) / 2 : value);
    else
      values.push_back(input.low +
                       static_cast<double>(
                           word % static_cast<uint64_t>(std::lround(input.high - input.low) + 1)));
  }
  return cast(constant(values, shape), dtype);
}

// The same elements, elsewhere in memory.
Tensor laid_out(const Tensor& x, const std::string& layout) {
  if (x.rank() == 0 || layout == "plain") return x;
  if (layout == "turned") return transpose(identity(transpose(x)));
  if (layout == "backwards") return flip(identity(flip(x)));
  if (layout == "sliced") {
    Padding2 widths(static_cast<size_t>(x.rank()), {0, 0});
    widths[0] = {1, 2};
    return pad(x, widths)[Slice{.begin = 1, .end = -2}];
  }
  if (layout == "stepped") {
    const Tensor twice = repeat(x, 2, -1);
    return twice[{ellipsis, Slice{.step = 2}}];
  }
  throw UserError(cat("no layout is called ", layout), Source::here());
}

Tensor made(const Program& program, const Input& input, size_t call, uint64_t number) {
  Sizes sizes;
  for (const auto& [name, calls] : program.sizes) sizes[name] = calls[call];
  Shape shape;
  for (const std::string& size : input.shape) shape.push_back(size_of(size, sizes));
  const DType dtype = dtype_named(input.dtype, program);
  const uint64_t stream = mixed(program.seed * 1000 + number) + mixed(call);
  const std::string layout = split_text(input.layout, '+')[0];
  if (layout.starts_with("stretched:")) {
    Shape one = shape;
    one.set(std::stoll(layout.substr(10)), 1);
    return broadcast_to(drawn(dtype, one, input, stream), shape);
  }
  return laid_out(drawn(dtype, shape, input, stream), layout);
}

bool is_known(const std::string& size) {
  return size.find_first_not_of("0123456789") == std::string::npos;
}

// ---- what is computed ---------------------------------------------------------------------------

bool is_differentiable(const Tensor& x) { return is_float(x.dtype()); }

Tensors floats_of(const Tensors& results) {
  Tensors floats;
  for (const Tensor& result : results)
    if (is_differentiable(result)) floats.push_back(result);
  return floats;
}

// One number of all results, whose gradient is 0 nowhere in particular.
Tensor loss_of(const Tensors& results) {
  Tensor loss;
  double weight = 1;
  for (const Tensor& result : floats_of(results)) {
    const Tensor part = sum(result * (result + 1)) * (1 / weight++);
    loss = loss.has_value() ? loss + part : part;
  }
  return loss;
}

class Run {
 public:
  explicit Run(const Program& program) : world_{.program = program} {}

  // One HOW.WHAT, and what it gives as text. Loops that are refused their bytes get those that the
  // refusal tells to write: the fewest there can be.
  std::string mode(const std::string& name) {
    for (;;) {
      said_.clear();
      try {
        run(name);
        return said_;
      } catch (const UserError& error) {
        const int64_t told = told_bytes(error.what());
        if (told <= world_.loop_bytes) throw;
        world_.loop_bytes = told;
      }
    }
  }

 private:
  static int64_t told_bytes(const std::string& error) {
    const std::string advice = "write td::Save::bytes(";
    const size_t at = error.find(advice);
    return at == std::string::npos ? 0 : std::stoll(error.substr(at + advice.size()));
  }

  void run(const std::string& name) {
    const std::vector<std::string> parts = split_text(name, '.');
    how_ = parts[0];
    what_ = parts[1];
    make_variables();
    make_constants();
    if (how_ == "eager") return give(0, eager());
    FunctionOptions options{.jit = how_ != "nojit"};
    const bool taped = how_ == "tape" || how_ == "opentape";
    if (how_ == "open" || how_ == "opentape") options.input_signature = signature();
    const auto compute = [this](const Tensors& arguments, const Tensors& directions) {
      return computed(what_, arguments, directions);
    };
    const auto values = [this](const Tensors& arguments, const Tensors&) {
      return computed("value", arguments, {});
    };
    const auto function = taped ? td::function(std::function(pass(values)), options)
                                : td::function(std::function(pass(compute)), options);
    const bool open = how_ == "open" || how_ == "auto" || how_ == "opentape";
    for (const size_t call : open ? std::vector<size_t>{0, 1, 0} : std::vector<size_t>{0, 0}) {
      make_values(call);
      Tensors given = arguments(call), along = directions(call);
      if (taped)
        give(call, taped_gradient(function, given, along));
      else if (how_ == "donated")
        give(call, function(std::move(given), std::move(along)));
      else
        give(call, function(given, along));
    }
  }

  using Compute = Tensors(const Tensors& arguments, const Tensors& directions);
  template <class F>
  static std::function<Compute> pass(F f) {
    return f;
  }
  const Program& program() const { return world_.program; }

  Tensors arguments(size_t call) const {
    Tensors list;
    for (const Input& input : program().arguments)
      list.push_back(made(program(), input, call, list.size()));
    return list;
  }
  Tensors directions(size_t call) const {
    Tensors list;
    if (what_ != "hvp" && what_ != "jvp") return list;
    for (size_t i = 0; i < program().arguments.size(); ++i) {
      Input input = program().arguments[i];
      if (!input.differentiated) continue;
      input.layout = "plain";
      input.low = -1;
      input.high = 1;
      list.push_back(made(program(), input, call, 200 + i));
    }
    return list;
  }
  void make_variables() {
    world_.variables.clear();
    for (size_t i = 0; i < program().variables.size(); ++i) {
      const Input& input = program().variables[i];
      world_.variables.emplace(input.name,
                               Variable(made(program(), input, 0, 100 + i), {.name = input.name}));
    }
  }
  void make_constants() {
    world_.constants.clear();
    for (size_t i = 0; i < program().constants.size(); ++i) {
      const Input& input = program().constants[i];
      world_.constants.emplace(input.name, made(program(), input, 0, 300 + i));
    }
  }
  // Variables as at the beginning.
  void make_values(size_t) {
    for (size_t i = 0; i < program().variables.size(); ++i) {
      const Input& input = program().variables[i];
      world_.variables.at(input.name).assign(made(program(), input, 0, 100 + i));
    }
  }
  std::vector<Variable> variables() const {
    std::vector<Variable> list;
    for (const Input& input : program().variables) list.push_back(world_.variables.at(input.name));
    return list;
  }
  std::vector<TensorSpec> signature() const {
    std::vector<TensorSpec> list, along;
    for (const Input& input : program().arguments) {
      Shape shape;
      for (const std::string& size : input.shape)
        shape.push_back(is_known(size) ? size_of(size, {}) : Dim(open));
      list.push_back(spec(shape, dtype_named(input.dtype, program())));
      if (input.differentiated && (what_ == "hvp" || what_ == "jvp")) along.push_back(list.back());
    }
    list.insert(list.end(), along.begin(), along.end());
    return list;
  }

  Tensors differentiated(const Tensors& arguments) const {
    Tensors list;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (program().arguments[i].differentiated) list.push_back(arguments[i]);
    return list;
  }
  // The results where the differentiated arguments are these.
  Tensors results_at(Tensors arguments, const Tensors& differentiated) const {
    size_t next = 0;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (program().arguments[i].differentiated) arguments[i] = differentiated[next++];
    return interpret(world_, arguments);
  }

  Tensors computed(const std::string& what, const Tensors& arguments,
                   const Tensors& directions) const {
    if (what == "value") return interpret(world_, arguments);
    const Tensors by = differentiated(arguments);
    if (what == "grad") {
      GradientTape tape;
      tape.watch(by);
      return gradients(tape, loss_of(interpret(world_, arguments)), by);
    }
    if (what == "hvp") {
      return hvp([&](const Tensors& x) { return loss_of(results_at(arguments, x)); }, by,
                 directions);
    }
    return jvp([&](const Tensors& x) { return floats_of(results_at(arguments, x)); }, by,
               directions)
        .second;
  }
  Tensors gradients(GradientTape& tape, const Tensor& loss, const Tensors& by) const {
    auto [by_arguments, by_variables] = tape.gradient(loss, std::pair{by, variables()});
    for (const Gradient& gradient : by_variables) by_arguments.push_back(gradient.dense());
    return by_arguments;
  }
  template <class F>
  Tensors taped_gradient(const F& function, const Tensors& arguments, const Tensors& along) const {
    const Tensors by = differentiated(arguments);
    GradientTape tape;
    tape.watch(by);
    return gradients(tape, loss_of(function(arguments, along)), by);
  }

  Tensors eager() {
    Tensors draws;
    if (what_ == "value") world_.draws = &draws;
    Tensors results = computed(what_, arguments(0), directions(0));
    world_.draws = nullptr;
    for (const Tensor& draw : draws) write("draw", 0, draw);
    return results;
  }

  void give(size_t call, const Tensors& results) {
    for (const Tensor& result : results) write("result", call, result);
    if (what_ != "value") return;
    for (const Variable& variable : variables()) write("variable", call, variable.value());
  }
  // A line, and the bytes of the elements.
  void write(const char* kind, size_t call, const Tensor& x) {
    const Tensor dense = td::reshape(x, {-1}) + td::zeros({}, DType::boolean);
    said_ += cat(kind, " ", call, " ", x.dtype());
    for (const Dim size : x.shape()) said_ += cat(" ", int64_t{size});
    said_ += '\n';
    const auto add = [this](const auto& values) {
      said_.append(reinterpret_cast<const char*>(values.data()),
                   values.size() * sizeof(values.front()));
    };
    if (is_float(x.dtype()))
      add(dense.to_vector<double>());
    else
      add(dense.to_vector<int64_t>());
  }

  World world_;
  std::string how_, what_, said_;
};

// Kernels of every kind; most programs use the ones that need no compiler. One of those checks
// every access.
compile::Emitter emitter_of(uint64_t seed) {
  constexpr compile::Emitter few[] = {compile::Emitter::llvm, compile::Emitter::automatic,
                                      compile::Emitter::checked};
  return seed % 8 < std::size(few) ? few[seed % 8] : compile::Emitter::tile;
}

void run_program(const Program& program) {
  std::printf("program %llu\n", static_cast<unsigned long long>(program.seed));
  compile::set_emitter(emitter_of(program.seed));
  set_num_threads(1 + static_cast<int>(program.seed % 3));
  alarm(300);  // What hangs ends here, with its mode named.
  for (const std::string& mode : program.modes) {
    std::printf("mode %s\n", mode.c_str());
    std::fflush(stdout);
    try {
      const std::string said = Run(program).mode(mode);
      std::fwrite(said.data(), 1, said.size(), stdout);
    } catch (const std::exception& error) {
      std::string text = error.what();
      for (char& letter : text)
        if (letter == '\n') letter = ' ';
      std::printf("error %s\n", text.c_str());
    }
  }
  std::printf("end\n");
  std::fflush(stdout);
}

int list_ops() {
  for (const OpDef& op : catalogue()) {
    // Random programs know nothing of a matrix's condition; edges.py and the sweep choose it.
    if (op.family == Family::linalg) continue;
    std::cout << op.name;
    for (const AttrDef& attr : op.attrs) std::cout << ' ' << attr.name;
    std::cout << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace tidemark::truth

int main(int argc, char** argv) {
  using namespace tidemark::truth;
  if (argc == 2 && std::string_view(argv[1]) == "--ops") return list_ops();
  for (Program program; read_program(std::cin, program);) run_program(program);
  return 0;
}
