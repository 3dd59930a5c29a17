#include "tidemark/tensor/mode.h"

#include <utility>

namespace tidemark::nn {
namespace {

constinit thread_local bool training_now = false;

}  // namespace

bool is_training() { return training_now; }

Training::Training(bool on) : previous_(std::exchange(training_now, on)) {}
Training::~Training() { training_now = previous_; }

}  // namespace tidemark::nn
