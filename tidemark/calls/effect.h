// Prints and checks, in program order in eager code and in compiled functions alike.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tidemark/base/output.h"
#include "tidemark/tensor/tensor.h"
#include "tidemark/tensor/variable.h"

namespace tidemark {

// A text with its source line: the first parameter of variadic functions.
struct TextAt {
  TextAt(const char* text, Source at = Source::here()) : text(text), at(at) {}
  TextAt(std::string_view text, Source at = Source::here()) : text(text), at(at) {}
  TextAt(const std::string& text, Source at = Source::here()) : text(text), at(at) {}

  std::string_view text;
  Source at;
};

namespace detail {

// A text, or a tensor whose value is printed when the line is.
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

void print_line(const TextAt& first, const std::vector<PrintPart>& rest);

}  // namespace detail

// Prints one line of texts, numbers and tensors, separated by spaces.
template <class... Parts>
void print(const TextAt& first, const Parts&... parts) {
  detail::print_line(first, {detail::PrintPart(parts, first.at)...});
}

// Returns x; a UserError if elements are infinite or NaN, with their number.
Tensor check_numerics(const Operand& x, std::string_view message, Source at = Source::here());

// A UserError that shows `values`, unless every element of the condition is true (not zero).
void assert_that(const Operand& condition, std::string_view message, const TensorList& values = {},
                 Source at = Source::here());

}  // namespace tidemark
