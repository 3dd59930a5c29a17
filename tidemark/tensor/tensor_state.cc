#include "tidemark/tensor/tensor_state.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "tidemark/compile/cpu/eager.h"
#include "tidemark/device/call_memory.h"
#include "tidemark/device/memory.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/pointwise.h"

namespace tidemark {
namespace detail {
namespace {

device::Cell* cell_of(TensorState* state) {
  return reinterpret_cast<device::Cell*>(reinterpret_cast<std::byte*>(state) -
                                         offsetof(device::Cell, payload));
}

AxisList sizes_of(const Shape& shape) {
  AxisList sizes;
  for (const Dim dim : shape) sizes.push_back(dim);
  return sizes;
}

// contiguous_strides, written to their final place, which is faster than copying them there.
void set_contiguous(Strides& strides, const Shape& shape) {
  strides.resize(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= std::max<int64_t>(1, shape[axis]);
  }
}

// Makes a state in a cell, and frees the cell if `fill` throws: shapes of many axes use the heap.
template <class Fill>
TensorState* new_state(device::Cell* cell, Fill fill) {
  auto* const state = new (cell->payload) TensorState;
  try {
    fill(*state);
  } catch (...) {
    std::destroy_at(state);
    device::release(cell->storage);
    throw;
  }
  return state;
}

TensorState* place_state(device::Cell* cell, DType dtype, const Shape& shape, Source at) {
  return new_state(cell, [&](TensorState& state) {
    state.array.data = cell->storage.data;
    state.array.dtype = dtype;
    state.array.shape = shape;
    set_contiguous(state.array.strides, shape);
    state.storage = &cell->storage;
    state.at = at;
  });
}

// The bytes of a dense tensor. A UserError if the number overflows.
int64_t bytes_of(DType dtype, const Shape& shape, Source at) {
  int64_t bytes = size_of(dtype);
  for (const Dim dim : shape) {
    if (dim.is_open())
      throw UserError(
          cat("a tensor cannot have the shape ", shape, ": sizes must be known and not negative"),
          at, "give every size");
  }
  for (const Dim dim : shape) {
    if (int64_t{dim} == 0) return 0;
  }
  for (const Dim dim : shape) {
    if (__builtin_mul_overflow(bytes, int64_t{dim}, &bytes)) {
      throw UserError(
          cat("a tensor cannot have the shape ", shape, ": its bytes do not fit 63 bits"), at,
          "make one of the sizes smaller");
    }
  }
  return bytes;
}

}  // namespace

void drop(TensorState* state) {
  if (state->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  device::Cell* cell = cell_of(state);
  if (!state->has_bytes()) {
    TracePlace* const scope = state->scope;
    state->~TensorState();
    if (scope != nullptr) release(scope);
    device::release(cell->storage);
    return;
  }
  device::Storage* storage = state->storage;
  state->~TensorState();
  // A view holds a reference on its base besides its own cell.
  if (storage != &cell->storage) device::release(*storage);
  device::release(cell->storage);
}

void retain(TracePlace* place) { place->references.fetch_add(1, std::memory_order_relaxed); }
void release(TracePlace* place) {
  if (place->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete place;
}

void leaked(const TensorState& state, Source at) {
  const TracePlace& place = *state.scope;
  const std::string where =
      place.at.known() ? cat(place.what, " (", place.at.text(), ")") : place.what;
  throw UserError(cat("a tensor made inside ", where, " at ", state.at.text(),
                      " was used outside it: it has no value there"),
                  at,
                  "return it as a result; to collect one value per trip of a loop use "
                  "td::TensorArray or td::scan");
}

const TensorState& state_of(const Tensor& tensor, Source at) {
  const TensorState* state = TensorState::of(tensor);
  if (state == nullptr) {
    throw UserError("an empty Tensor was used: it was never assigned, or it was moved from", at,
                    "assign a value first; has_value() tells whether it has one");
  }
  return *state;
}

const ArrayRef& array_of(const Tensor& tensor, Source at) {
  const TensorState& state = state_of(tensor, at);
  if (state.kind == TensorState::Kind::concrete) [[likely]]
    return state.array;
  const TensorType type{state.array.dtype, state.array.shape};
  if (state.kind == TensorState::Kind::device) {
    throw UserError(cat("the host cannot read ", type, ": it lies in ",
                        device::memory_text(state.storage->memory)),
                    at, "copy it to the host: td::transfer(x, 0); functions compute where it lies");
  }
  if (state.kind == TensorState::Kind::spec) {
    throw UserError(cat("the value of a spec was read: ", type, " has a type but no elements"), at,
                    "specs are for plan(), summary() and build(); pass a tensor to compute");
  }
  if (state.scope->ended) leaked(state, at);
  throw UserError(
      cat("the value of a traced tensor was read: ", type, ", made at ", state.at.text(),
          " inside ", state.scope->what, ", has none until the function runs"),
      at,
      "to branch on it use td::cond, td::while_loop or td::where; to see it use td::print; for a "
      "value known while tracing use a td::Static parameter");
}

const ArrayRef& placed_array_of(const Tensor& tensor, Source at) {
  const TensorState& state = state_of(tensor, at);
  return state.kind == TensorState::Kind::device ? state.array : array_of(tensor, at);
}

TensorType type_of(const Tensor& tensor, Source at) {
  const ArrayRef& array = state_of(tensor, at).array;
  return {array.dtype, array.shape};
}

Tensor make_tensor(DType dtype, const Shape& shape, Source at, ByteClass byte_class) {
  const Source line = at.resolve();
  const int64_t bytes = bytes_of(dtype, shape, at);
  const AxisList sizes = sizes_of(shape);
  device::Cell* cell = device::allocate(
      bytes, {.dtype = dtype, .sizes = sizes, .at = line, .byte_class = byte_class});
  return TensorState::adopt(place_state(cell, dtype, shape, line));
}

Tensor make_tensor_in(int32_t memory, DType dtype, const Shape& shape, Source at,
                      ByteClass byte_class) {
  if (memory == device::kHostMemory) return make_tensor(dtype, shape, at, byte_class);
  const Source line = at.resolve();
  const int64_t bytes = bytes_of(dtype, shape, at);
  device::Cell* cell = device::allocate_in(memory, bytes, {.dtype = dtype, .at = line});
  cell->storage.byte_class = byte_class;
  TensorState* const state = place_state(cell, dtype, shape, line);
  state->kind = TensorState::Kind::device;
  return TensorState::adopt(state);
}

void make_tensors(std::span<TensorWish> wished, Source at) {
  if (wished.size() == 1) {
    TensorWish& only = wished[0];
    only.made = make_tensor_in(only.memory, only.dtype, *only.shape, at, only.byte_class);
    return;
  }
  const Source line = at.resolve();
  device::CallList<AxisList> sizes;
  sizes.reserve(wished.size());
  for (const TensorWish& wish : wished) sizes.push_back(sizes_of(*wish.shape));
  device::CallList<device::AllocationRequest> wanted;
  device::CallList<TensorWish*> of;
  wanted.reserve(wished.size());
  of.reserve(wished.size());
  for (size_t i = 0; i < wished.size(); ++i) {
    TensorWish& wish = wished[i];
    if (wish.memory != device::kHostMemory) continue;
    device::AllocationRequest& made = wanted.emplace_back();
    of.push_back(&wish);
    made.bytes = bytes_of(wish.dtype, *wish.shape, at);
    made.purpose = {
        .dtype = wish.dtype, .sizes = sizes[i], .at = line, .byte_class = wish.byte_class};
  }
  device::allocate_all({wanted.data(), wanted.size()});
  size_t i = 0;
  try {
    for (; i < of.size(); ++i)
      of[i]->made =
          TensorState::adopt(place_state(wanted[i].cell, of[i]->dtype, *of[i]->shape, line));
  } catch (...) {
    for (++i; i < of.size(); ++i) device::release(wanted[i].cell->storage);
    throw;
  }
  for (TensorWish& wish : wished)
    if (wish.memory != device::kHostMemory)
      wish.made = make_tensor_in(wish.memory, wish.dtype, *wish.shape, at, wish.byte_class);
}

Tensor make_view(const Tensor& base, const ArrayRef& seen, Source at) {
  const TensorState& from = state_of(base, at);
  const Source line = at.resolve();
  // A view allocates nothing, but the number of its elements must not overflow.
  const int64_t bytes = bytes_of(seen.dtype, seen.shape, at);
  device::Cell* cell = device::allocate_view(*from.storage, bytes, line);
  auto* state = new_state(cell, [&](TensorState& made) { made.array = seen; });
  device::retain(*from.storage);
  state->storage = from.storage;
  state->at = line;
  return TensorState::adopt(state);
}

namespace {

Tensor make_typed(const TensorType& type, TensorState::Kind kind, Source at) {
  device::Cell* cell = device::allocate(0, {.dtype = type.dtype, .at = at});
  return TensorState::adopt(new_state(cell, [&](TensorState& state) {
    state.kind = kind;
    state.array.dtype = type.dtype;
    state.array.shape = type.shape;
    state.at = at;
  }));
}

}  // namespace

Tensor make_traced(const TensorType& type, Value value, TracePlace* place, bool weak, Source at) {
  Tensor tensor = make_typed(type, TensorState::Kind::traced, at.resolve());
  TensorState* const state = TensorState::of(tensor);
  state->weak = weak;
  state->packed_value = int64_t{value.node} << 16 | value.result;
  state->scope = place;
  retain(place);
  return tensor;
}

Tensor make_spec(const TensorType& type, Source at) {
  return make_typed(type, TensorState::Kind::spec, at.resolve());
}

Tensor make_borrowed(std::byte* data, DType dtype, const Shape& shape,
                     std::function<void()> release, Source at) {
  const Source line = at.resolve();
  const int64_t bytes = bytes_of(dtype, shape, at);
  const AxisList sizes = sizes_of(shape);
  auto callback = release ? std::make_unique<std::function<void()>>(std::move(release)) : nullptr;
  const auto call = [](void* context) {
    const UserCode user;
    const std::unique_ptr<std::function<void()>> function(
        static_cast<std::function<void()>*>(context));
    if (function != nullptr) (*function)();
  };
  device::Cell* cell = device::borrow(
      data, bytes, false, call, callback.get(),
      {.dtype = dtype, .sizes = sizes, .at = line, .byte_class = ByteClass::arguments});
  (void)callback.release();  // Owned by the storage now.
  return TensorState::adopt(place_state(cell, dtype, shape, line));
}

void does_not_fit_i64(uint64_t value, Source at) {
  throw UserError(cat(value, " does not fit i64, in which plain integers are held"), at,
                  "give it as a float, static_cast<double>(n), or as a tensor: "
                  "td::constant(std::vector<uint64_t>{n}, td::Shape{})");
}

bool is_sole(const TensorState& state) {
  return state.has_bytes() && state.references.load(std::memory_order_acquire) == 1 &&
         state.storage->writable && state.storage->references.load(std::memory_order_acquire) == 1;
}

bool owns_whole_storage(const TensorState& state) {
  return is_sole(state) && state.array.is_contiguous() && state.array.data == state.storage->data &&
         state.storage->bytes == granted_bytes(state.array.size() * size_of(state.array.dtype));
}

}  // namespace detail

using detail::TensorState;

Tensor::Tensor(const Tensor& other) : state_(other.state_) {
  if (state_ != nullptr) state_->references.fetch_add(1, std::memory_order_relaxed);
}

Tensor& Tensor::operator=(const Tensor& other) & {
  if (this != &other) *this = Tensor(other);
  return *this;
}

Tensor& Tensor::operator=(Tensor&& other) & noexcept {
  if (this != &other) {
    TensorState* old = state_;
    state_ = other.state_;
    other.state_ = nullptr;
    if (old != nullptr) detail::drop(old);
  }
  return *this;
}

void Tensor::set_number(int64_t whole, double real, int kind, Source at) {
  constexpr DType dtypes[] = {DType::boolean, DType::i32, DType::f32};
  const DType dtype = dtypes[kind];
  if (kind == 1 && (whole < INT32_MIN || whole > INT32_MAX)) {
    throw UserError(cat(whole, " does not fit i32, the dtype of a plain integer"), at,
                    "give it a dtype: td::constant(n, td::i64)");
  }
  Tensor made = detail::make_tensor(dtype, {}, at);
  const device::FloatEnvironment ieee;
  const uint64_t bits = number_bits(real, whole, kind == 2, dtype);
  std::memcpy(made.state_->array.data, &bits, static_cast<size_t>(size_of(dtype)));
  made.state_->weak = true;
  made.state_->number = real;
  *this = std::move(made);
}

void Tensor::set_complex(std::complex<double> value, DType dtype, Source at) {
  Tensor made = detail::make_tensor(dtype, {}, at);
  const std::complex<float> narrow(value);
  const bool is_narrow = dtype == DType::c64;
  std::memcpy(made.state_->array.data, is_narrow ? static_cast<const void*>(&narrow) : &value,
              static_cast<size_t>(size_of(dtype)));
  *this = std::move(made);
}

const Shape& Tensor::shape() const { return detail::state_of(*this, Source::none()).array.shape; }
DType Tensor::dtype() const { return detail::state_of(*this, Source::none()).array.dtype; }
Bytes Tensor::size_bytes() const { return size() * size_of(dtype()); }
Source Tensor::source() const { return detail::state_of(*this, Source::none()).at; }

namespace {

const ArrayRef& only_element(const Tensor& tensor, Source at) {
  const ArrayRef& array = detail::array_of(tensor, at);
  if (array.size() != 1) {
    throw UserError(cat("item: needs one element, ", TensorType{array.dtype, array.shape}, " has ",
                        array.size()),
                    at, "reduce it first (td::sum, td::all), or read all with to_vector");
  }
  return array;
}

}  // namespace

void Tensor::need_value(Source at) const { detail::state_of(*this, at); }

double Tensor::real_item(Source at) const {
  const ArrayRef& array = only_element(*this, at);
  return visit_dtype(array.dtype, [&](auto element) -> double {
    using T = decltype(element);
    std::memcpy(&element, array.data, sizeof(T));
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<double>(element);
    else
      return static_cast<double>(static_cast<float>(element));
  });
}

std::complex<double> Tensor::complex_item(Source at) const {
  if (!is_complex(dtype())) return {item<double>(at), 0};
  const ArrayRef& array = only_element(*this, at);
  std::complex<double> value;
  std::complex<float> narrow;
  if (array.dtype == DType::c128)
    std::memcpy(&value, array.data, sizeof(value));
  else
    std::memcpy(&narrow, array.data, sizeof(narrow));
  return array.dtype == DType::c128 ? value : std::complex<double>(narrow);
}

int64_t Tensor::whole_item(Source at) const {
  const ArrayRef& array = only_element(*this, at);
  if (is_complex(array.dtype))
    throw UserError(
        cat("item: the element of ", TensorType{array.dtype, array.shape}, " is complex"), at,
        "read it as a complex number, or one of its parts: td::real(z)");
  return visit_dtype(array.dtype, [&](auto element) -> int64_t {
    using T = decltype(element);
    std::memcpy(&element, array.data, sizeof(T));
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(element);
    else
      return 0;
  });
}

const void* Tensor::dense_data(DType wanted, Source at) const {
  const ArrayRef& array = detail::array_of(*this, at);
  const TensorType type{array.dtype, array.shape};
  if (array.dtype != wanted) {
    throw UserError(cat("span: the elements of ", type, " are ", array.dtype, ", not ", wanted), at,
                    "ask for its own element type, or convert with td::cast");
  }
  if (!array.is_contiguous()) {
    throw UserError(cat("span: ", type, " is a view whose elements are not contiguous"), at,
                    "copy it first: td::identity(x)");
  }
  return array.data;
}

void Tensor::copy_out(DType dtype, void* to, Source at) const {
  const ArrayRef& array = detail::array_of(*this, at);
  if (is_complex(array.dtype) && !is_complex(dtype))
    throw UserError(
        cat("to_vector: the elements of ", TensorType{array.dtype, array.shape}, " are complex"),
        at, "read them as complex numbers, or one of their parts: td::real(z)");
  if (array.size() == 0) return;
  compile::run_copy(array, {.data = static_cast<std::byte*>(to),
                            .dtype = dtype,
                            .shape = array.shape,
                            .strides = contiguous_strides(array.shape)});
}

}  // namespace tidemark
