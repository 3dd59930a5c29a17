// Prints and checks: done in program order, in eager code and in compiled functions alike.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tidemark/base/output.h"
#include "tidemark/tensor/tensor.h"
#include "tidemark/tensor/variable.h"

namespace tidemark {

// A text with the line it stands on: what variadic functions take first.
struct Located {
  Located(const char* text, Source at = Source::here()) : text(text), at(at) {}
  Located(std::string_view text, Source at = Source::here()) : text(text), at(at) {}
  Located(const std::string& text, Source at = Source::here()) : text(text), at(at) {}

  std::string_view text;
  Source at;
};

namespace detail {

// A text, or a tensor whose value is written when the line is.
struct PrintPart {
  template <class T>
  PrintPart(const T& value, Source at) {
    if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, Variable>)
      tensor = Tensor(value, at);
    else if constexpr (std::is_same_v<T, bool>)
      text = value ? "True" : "False";
    else
      text = cat(value);
  }
  PrintPart(const Tensor& value, Source) : tensor(value) {}

  std::string text;
  Tensor tensor;
  bool is_tensor() const { return tensor.has_value(); }
};

void print_line(const Located& first, const std::vector<PrintPart>& rest);

}  // namespace detail

// One line: the texts, numbers and tensors with a space between each.
template <class... Parts>
void print(const Located& first, const Parts&... parts) {
  detail::print_line(first, {detail::PrintPart(parts, first.at)...});
}

// x itself, or a UserError that says how many of its elements are infinite or NaN.
Tensor check_numerics(const Operand& x, std::string_view message, Source at = Source::here());

// A UserError that shows `values` unless the condition is true (not zero) throughout.
void assert_that(const Operand& condition, std::string_view message, const TensorList& values = {},
                 Source at = Source::here());

}  // namespace tidemark
