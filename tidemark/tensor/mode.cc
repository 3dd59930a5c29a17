#include "tidemark/tensor/mode.h"

#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/ops/typing.h"

namespace tidemark {
namespace {

constinit thread_local bool training_now = false;
constinit thread_local DType autocast_now = DType::f32;

DType checked(DType dtype, Source at) {
  if (is_low_precision(dtype) || dtype == DType::f32) return dtype;
  throw UserError(cat("Autocast: parameters cannot be read as ", dtype), at,
                  "give td::bf16 or td::f16; td::f32 switches it off");
}

}  // namespace

Autocast::Autocast(DType dtype, Source at)
    : previous_(std::exchange(autocast_now, checked(dtype, at))) {}
Autocast::~Autocast() { autocast_now = previous_; }
DType autocast() { return autocast_now; }

namespace nn {

bool is_training() { return training_now; }

Training::Training(bool on) : previous_(std::exchange(training_now, on)) {}
Training::~Training() { training_now = previous_; }

}  // namespace nn

namespace detail {

Mode Mode::now() { return {training_now, autocast_now}; }

DType product_dtype(DType a, DType b) {
  const DType common = promote(a, b);
  const bool is_mixed = a == autocast_now || b == autocast_now;
  return common == DType::f32 && is_mixed ? autocast_now : common;
}

}  // namespace detail
}  // namespace tidemark
