// Writes cases of the sweep for other programs: `numpy_driver FOLDER` makes, for numpy_sweep.py,
// cases.jsonl, one case a line, and data.bin, the dense elements of operands and results.
// `numpy_driver FOLDER gradients` makes, for jax_gradients.py, cases with the gradients of a
// weighted sum of their results.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>
#include <utility>

#include "tests/sweep/cases.h"
#include "tidemark/api/create.h"
#include "tidemark/api/gradient_tape.h"
#include "tidemark/api/ops.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::sweep {
namespace {

class Writer {
 public:
  explicit Writer(const std::filesystem::path& folder)
      : lines_(folder / "cases.jsonl"), data_(folder / "data.bin", std::ios::binary) {}

  void add(const Case& c, const Tensor& result) {
    lines_ << "{\"op\": \"" << c.op->name << "\", \"text\": \"" << described(c)
           << "\", \"operands\": [";
    for (size_t i = 0; i < c.operands.size(); ++i)
      lines_ << (i > 0 ? ", " : "") << put(c.operands[i]);
    lines_ << "], \"attrs\": {" << attrs(c) << "}, \"which\": " << c.result
           << ", \"result\": " << put(result) << "}\n";
  }
  // The gradients by those operands that are floats.
  void add_gradients(const Case& c, const Tensor& weights, const std::vector<Tensor>& gradients) {
    lines_ << "{\"op\": \"" << c.op->name << "\", \"text\": \"" << described(c)
           << "\", \"operands\": [";
    for (size_t i = 0; i < c.operands.size(); ++i)
      lines_ << (i > 0 ? ", " : "") << put(c.operands[i]);
    lines_ << "], \"attrs\": {" << attrs(c) << "}, \"weights\": " << put(weights)
           << ", \"gradients\": [";
    for (size_t i = 0; i < gradients.size(); ++i)
      lines_ << (i > 0 ? ", " : "") << (gradients[i].has_value() ? put(gradients[i]) : "null");
    lines_ << "]}\n";
  }
  // A tensor and how it prints.
  void add_print(const Tensor& x) {
    std::ostringstream text;
    text << x;
    lines_ << "{\"op\": \"print\", \"operands\": [" << put(x) << "], \"printed\": \""
           << escaped(text.str()) << "\"}\n";
  }
  bool good() const { return lines_.good() && data_.good(); }

 private:
  static std::string escaped(const std::string& text) {
    std::string result;
    for (const char letter : text)
      result += letter == '\n' ? std::string("\\n") : std::string(1, letter);
    return result;
  }

  std::string put(const Tensor& x) {
    const Tensor dense = dense_copy(x);
    std::ostringstream out;
    out << "{\"dtype\": \"" << x.dtype() << "\", \"shape\": " << x.shape()
        << ", \"offset\": " << written_ << "}";
    const int64_t bytes = dense.size_bytes().count;
    data_.write(reinterpret_cast<const char*>(detail::array_of(dense, Source::none()).data), bytes);
    written_ += bytes;
    return out.str();
  }

  static std::string attrs(const Case& c) {
    std::ostringstream out;
    out.precision(17);
    Attrs::Reader read = c.attrs.read();
    bool first = true;
    for (const AttrDef& attr : c.op->attrs) {
      out << (first ? "" : ", ") << '"' << attr.name << "\": ";
      first = false;
      if (attr.kind == AttrKind::integers) {
        out << '[';
        const std::span<const int64_t> items = read.integers();
        for (size_t i = 0; i < items.size(); ++i) out << (i > 0 ? ", " : "") << items[i];
        out << ']';
      } else if (attr.kind == AttrKind::sizes) {
        out << '[';
        const char* between = "";
        for (const Dim item : read.sizes()) out << std::exchange(between, ", ") << item.number();
        out << ']';
      } else if (attr.kind == AttrKind::number) {
        out << read.number();
      } else if (attr.kind == AttrKind::dtype) {
        out << '"' << read.dtype() << '"';
      } else if (attr.kind == AttrKind::size) {
        out << read.size();
      } else {
        out << read.integer();
      }
    }
    return out.str();
  }

  std::ofstream lines_, data_;
  int64_t written_ = 0;
};

std::vector<Tensor> to_print() {
  std::vector<Tensor> list;
  const auto real = [&](std::vector<double> values) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16})
      list.push_back(listed(dtype, {values.size()}, values));
  };
  real({1, 2, 3});
  real({0});
  real({-0.0, 0.0});
  real({0.1, 0.25, 1.0 / 3});
  real({1.5, -20.25, 300});
  real({1e-5, 1});
  real({1e-4, 1});
  real({1e-3, 1000.5});
  real({1e8, 1});
  real({99999999.0, 1});
  real({123456789.0, 0.5});
  real({1e300, 1e-300});
  real({1e100, 1, 1e-5});
  real({2e100, -INFINITY});
  real({1e6, 2e6});
  real({999999, 5000});
  real({3.14159265358979, 2.71828182845905, 1e3});
  real({NAN, 1, INFINITY});
  real({NAN, -INFINITY});
  real({NAN, 1.25, -2});
  real({-INFINITY, 1e10});
  real({1234.5678, 0.00012});
  real({1e16, 1});
  real({0.30000000000000004, 0.1});
  real({65504, 1e-7});
  real({1e-10, 2e-10});
  real({-1e-3, 12, 5});
  real({1e4, 1.00001});
  for (const DType dtype : {DType::i32, DType::i64}) {
    list.push_back(listed(dtype, {5}, std::vector<int64_t>{1, -20, 300, 0, 7}));
    list.push_back(listed(dtype, {3, 4}, std::vector<int64_t>{1, -20, 300, 0, 7}));
    list.push_back(drawn(dtype, {70}, {-9999, 9999}, 1));
  }
  list.push_back(listed(DType::u8, {3}, std::vector<int64_t>{1, 20, 255}));
  list.push_back(listed(DType::boolean, {2, 3}, std::vector<int64_t>{1, 0, 0, 1}));
  list.push_back(listed(DType::boolean, {40}, std::vector<int64_t>{1, 0, 0, 1}));
  for (const DType dtype : {DType::f64, DType::f32, DType::i32, DType::boolean}) {
    for (const Shape& shape :
         {Shape{},           Shape{1},       Shape{0},      Shape{2, 0},       Shape{0, 2},
          Shape{1, 1, 1},    Shape{2, 3, 4}, Shape{1000},   Shape{1001},       Shape{2000},
          Shape{100, 11},    Shape{7, 300},  Shape{300, 7}, Shape{11, 12, 13}, Shape{2, 3, 2, 2},
          Shape{6, 7, 8, 9}, Shape{30},      Shape{3, 30},  Shape{2, 1001},    Shape{501, 2}}) {
      list.push_back(drawn(dtype, shape, {-50, 50}, 2));
    }
  }
  for (const double value : {0.0, -0.0, 1.0, 0.1, -1e-5, 1e15, 1e16, 123456.789, 1e100}) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16})
      list.push_back(listed(dtype, {}, std::vector<double>{value}));
  }
  list.push_back(reshape(arange(2000), {40, 50}));
  list.push_back(reshape(arange(0, 24, 1, DType::f32), {2, 3, 4}));
  list.push_back(transpose(reshape(arange(0, 6, 1, DType::f32), {2, 3})));
  list.push_back(drawn(DType::f32, {25}, {-1e-6, 1e6}, 3));
  list.push_back(drawn(DType::f64, {25}, {-1e-6, 1e6}, 3));
  list.push_back(drawn(DType::f64, {4, 5}, {0, 1e-6}, 4));
  list.push_back(drawn(DType::f16, {4, 5}, {-3, 3}, 5));
  return list;
}

int write_all(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Writer writer(folder);
  for (const OpDef& op : catalogue()) {
    const std::vector<Case> cases = cases_of(op);
    // Special values, and a share of the others.
    const size_t every = full_counts() ? 1 : std::max<size_t>(1, cases.size() / 60);
    for (size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      if (i % every == 0 || c.text.find("special") != std::string::npos) writer.add(c, run_case(c));
    }
  }
  for (const Tensor& x : to_print()) writer.add_print(x);
  return writer.good() ? 0 : 1;
}

// As a tape gives them.
int write_gradients(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Writer writer(folder);
  for (const OpDef& op : catalogue()) {
    if (op.grad == nullptr) continue;
    for (const Case& c : smooth_cases_of(op)) {
      GradientTape tape;
      std::vector<Tensor> floats;
      for (const Tensor& operand : c.operands)
        if (is_float(operand.dtype())) floats.push_back(operand);
      tape.watch(floats);
      const Tensor y = run_case(c);
      const Tensor weights = cast(drawn(DType::f64, y.shape(), {-1, 1}, 99), y.dtype());
      const std::vector<Tensor> found =
          tape.gradient(y, floats, {.output_gradients = OutputGradients(weights)});
      std::vector<Tensor> gradients;
      size_t next = 0;
      for (const Tensor& operand : c.operands)
        gradients.push_back(is_float(operand.dtype()) ? found[next++] : Tensor());
      writer.add_gradients(c, weights, gradients);
    }
  }
  return writer.good() ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::sweep

int main(int argc, char** argv) {
  const bool gradients = argc == 3 && std::string_view(argv[2]) == "gradients";
  if (argc != 2 && !gradients) {
    std::cerr << "usage: numpy_driver FOLDER [gradients]\n";
    return 2;
  }
  return gradients ? tidemark::sweep::write_gradients(argv[1])
                   : tidemark::sweep::write_all(argv[1]);
}
