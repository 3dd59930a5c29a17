#include "functions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "errors.h"
#include "exchange.h"
#include "variable.h"

namespace tidemark::python {
namespace {

// ---- functions whose parameters are read by their types ----------------------------------------

template <class T>
struct Read;
template <>
struct Read<const Operand&> {
  static const Operand& from(Arguments& in, size_t i) { return in.operand(i); }
};
#define TIDEMARK_READ(type, method)                                    \
  template <>                                                          \
  struct Read<type> {                                                  \
    static auto from(Arguments& in, size_t i) { return in.method(i); } \
  }
TIDEMARK_READ(const TensorList&, tensors);
TIDEMARK_READ(const Shape&, shape);
TIDEMARK_READ(const Axes&, axes);
TIDEMARK_READ(const std::vector<int64_t>&, integers);
TIDEMARK_READ(const Padding2&, pairs);
TIDEMARK_READ(std::string_view, text);
TIDEMARK_READ(DType, dtype);
TIDEMARK_READ(std::optional<DType>, maybe_dtype);
TIDEMARK_READ(int64_t, integer);
TIDEMARK_READ(std::optional<int64_t>, maybe_integer);
TIDEMARK_READ(double, real);
TIDEMARK_READ(Dim, size);
#undef TIDEMARK_READ

template <class T>
using ReadType = decltype(Read<T>::from(std::declval<Arguments&>(), 0));

// The last parameter is the Source.
template <class R, class... P, size_t... i>
PyObject* run_read(R (*function)(P...), Arguments& in, std::index_sequence<i...>) {
  using All = std::tuple<P...>;
  const std::tuple<ReadType<std::tuple_element_t<i, All>>...> read{
      Read<std::tuple_element_t<i, All>>::from(in, i)...};
  return in.compute([&] { return function(std::get<i>(read)..., in.at); });
}
template <class R, class... P>
PyObject* run_read(R (*function)(P...), Arguments& in) {
  return run_read(function, in, std::make_index_sequence<sizeof...(P) - 1>());
}

template <auto function>
PyObject* plain(Arguments& in) {
  return run_read(function, in);
}

template <const ReduceFunction& function>
PyObject* reduce(Arguments& in) {
  const Operand& x = in.operand(0);
  const Axes axes = in.axes(1);
  const Keep keep = Keep(in.boolean(2));
  return in.compute([&] { return function(x, axes, keep, in.at); });
}

// ---- functions with options ---------------------------------------------------------------------

// Of a Variable only what is gathered is read, as in C++.
PyObject* gathered(Arguments& in, int64_t axis) {
  const Operand& indices = in.operand(1);
  if (const Variable* const table = variable_in(in.object(0).ptr()))
    return in.compute([&] { return gather(*table, indices, axis, in.at); });
  const Operand& x = in.operand(0);
  return in.compute([&] { return gather(x, indices, axis, in.at); });
}
PyObject* run_gather(Arguments& in) { return gathered(in, in.integer(2)); }
PyObject* run_embedding(Arguments& in) { return gathered(in, 0); }

PyObject* run_transpose(Arguments& in) {
  const Operand& x = in.operand(0);
  const std::vector<int64_t> order = in.is_none(1) ? std::vector<int64_t>() : in.integers(1);
  return in.compute([&] { return transpose(x, order, in.at); });
}

PyObject* run_matmul(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  const MatmulOptions options{in.boolean(2), in.boolean(3)};
  return in.compute([&] { return matmul(a, b, options, in.at); });
}

// The number of axes, or (axes of a, axes of b), as in NumPy.
PyObject* run_tensordot(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  if (PyIndex_Check(in.object(2).ptr()) != 0) {
    const int64_t count = in.integer(2);
    return in.compute([&] { return tensordot(a, b, count, in.at); });
  }
  const TensordotAxes axes = in.contracted(2);
  return in.compute([&] { return tensordot(a, b, axes, in.at); });
}

// An item for each axis of an image: strides, dilations, sizes of windows.
void read(Arguments& in, size_t i, int64_t& item) { item = in.integer(i); }
template <size_t n>
void read(Arguments& in, size_t i, std::array<int64_t, n>& items) {
  in.axis_items(i, items);
}
template <class T>
void read(Arguments& in, size_t i, std::optional<T>& items) {
  if (!in.is_none(i)) read(in, i, items.emplace());
}
ImageLayout layout_of(const Arguments& in, size_t i) {
  return static_cast<ImageLayout>(in.word(i));
}

// Options of convolutions, in the order of the catalogue, from argument `i` on.
template <class Options>
Options convolution_options(Arguments& in, size_t i) {
  Options options;
  read(in, i++, options.strides);
  options.padding = in.padding(i++);
  if constexpr (requires { options.sizes; }) {
    if (!in.is_none(i)) options.sizes = in.shape(i);
    ++i;
  }
  read(in, i++, options.dilations);
  if constexpr (requires { options.groups; }) options.groups = in.integer(i++);
  options.layout = layout_of(in, i);
  return options;
}

template <auto function, class Options>
PyObject* convolution(Arguments& in) {
  const Operand &x = in.operand(0), &w = in.operand(1);
  const Options options = convolution_options<Options>(in, 2);
  return in.compute([&] { return function(x, w, options, in.at); });
}

template <auto function, class Options>
PyObject* separable(Arguments& in) {
  const Operand &x = in.operand(0), &deep = in.operand(1), &point = in.operand(2);
  const Options options = convolution_options<Options>(in, 3);
  return in.compute([&] { return function(x, deep, point, options, in.at); });
}

template <auto function, class Options>
PyObject* pool(Arguments& in) {
  const Operand& x = in.operand(0);
  Options options;
  read(in, 1, options.size);
  read(in, 2, options.strides);
  options.padding = in.padding(3);
  options.layout = layout_of(in, 4);
  return in.compute([&] { return function(x, options, in.at); });
}

template <auto function>
PyObject* adaptive(Arguments& in) {
  const Operand& x = in.operand(0);
  const std::vector<int64_t> sizes = in.integers(1);
  const LayoutOptions options{layout_of(in, 2)};
  return in.compute([&] { return function(x, sizes, options, in.at); });
}

template <auto function>
PyObject* shuffled(Arguments& in) {
  const Operand& x = in.operand(0);
  const int64_t factor = in.integer(1);
  const LayoutOptions options{layout_of(in, 2)};
  return in.compute([&] { return function(x, factor, options, in.at); });
}

PyObject* run_extract_patches(Arguments& in) {
  const Operand& x = in.operand(0);
  const std::vector<int64_t> sizes = in.integers(1);
  PatchOptions options;
  if (!in.is_none(2)) options.strides = in.integers(2);
  if (!in.is_none(3)) options.dilations = in.integers(3);
  options.padding = in.padding(4);
  options.layout = layout_of(in, 5);
  return in.compute([&] { return extract_patches(x, sizes, options, in.at); });
}

PyObject* run_resize(Arguments& in) {
  const Operand& x = in.operand(0);
  const Shape sizes = in.shape(1);
  const ResizeOptions options{static_cast<Resizing>(in.word(2)), in.boolean(3), layout_of(in, 4)};
  return in.compute([&] { return resize(x, sizes, options, in.at); });
}

// pad(x, widths, "reflect"), as NumPy has it: a text in the place of the value is the mode.
PyObject* pad_by_word(Arguments& in) {
  constexpr std::string_view modes[] = {"reflect", "symmetric", "edge"};
  const Operand& x = in.operand(0);
  const Padding2 widths = in.pairs(1);
  const std::string given = in.text(2);
  const auto* const mode = std::find(std::begin(modes), std::end(modes), given);
  if (mode == std::end(modes))
    throw UserError(cat("pad: there is no mode \"", given, "\""), in.at,
                    "the choices are reflect, symmetric and edge, or a number to pad with");
  return in.compute([&] { return pad(x, widths, static_cast<PadMode>(mode - modes), in.at); });
}

PyObject* run_pad(Arguments& in) {
  if (PyUnicode_Check(in.object(2).ptr())) return pad_by_word(in);
  const Operand& x = in.operand(0);
  const Padding2 widths = in.pairs(1);
  const Operand& value = in.operand(2);
  const int mode = in.word(3);
  return in.compute([&] {
    return mode == 0 ? pad(x, widths, value, in.at)
                     : pad(x, widths, static_cast<PadMode>(mode - 1), in.at);
  });
}

template <auto function>
PyObject* sorted(Arguments& in) {
  const Operand& x = in.operand(0);
  const int64_t axis = in.integer(1);
  const SortOptions options{in.boolean(2)};
  return in.compute([&] { return function(x, axis, options, in.at); });
}

template <auto function>
PyObject* running(Arguments& in) {
  const Operand& x = in.operand(0);
  const int64_t axis = in.integer(1);
  const RunningOptions options{in.boolean(2), in.boolean(3)};
  return in.compute([&] { return function(x, axis, options, in.at); });
}

template <auto function>
PyObject* directed(Arguments& in) {
  const Operand& x = in.operand(0);
  const int64_t axis = in.integer(1);
  const DirectionOptions options{in.boolean(2)};
  return in.compute([&] { return function(x, axis, options, in.at); });
}

PyObject* run_linear_scan(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  const int64_t axis = in.integer(2);
  const DirectionOptions options{in.boolean(3)};
  return in.compute([&] { return linear_scan(a, b, axis, options, in.at); });
}

PyObject* run_searchsorted(Arguments& in) {
  const Operand &sorted = in.operand(0), &values = in.operand(1);
  const SearchOptions options{in.boolean(2)};
  return in.compute([&] { return searchsorted(sorted, values, options, in.at); });
}

std::optional<Dim> maybe_size(Arguments& in, size_t i) {
  return in.is_none(i) ? std::optional<Dim>() : in.size(i);
}

PyObject* run_bincount(Arguments& in) {
  const Operand& x = in.operand(0);
  const BincountOptions options{in.maybe_tensor(1), maybe_size(in, 2)};
  return in.compute([&] { return bincount(x, options, in.at); });
}

PyObject* run_histogram(Arguments& in) {
  const Operand& x = in.operand(0);
  const HistogramOptions options{in.integer(1), in.maybe_real(2), in.maybe_real(3)};
  return in.compute([&] { return histogram(x, options, in.at); });
}

PyObject* run_quantile(Arguments& in) {
  const Operand &x = in.operand(0), &q = in.operand(1);
  const std::optional<int64_t> axis = in.maybe_integer(2);
  const QuantileOptions options{static_cast<Interpolation>(in.word(3))};
  return in.compute([&] { return quantile(x, q, axis, options, in.at); });
}

template <auto function>
PyObject* sized(Arguments& in) {
  const Operand& x = in.operand(0);
  const SizeOptions options{maybe_size(in, 1)};
  return in.compute([&] { return function(x, options, in.at); });
}

template <auto function>
PyObject* segmented(Arguments& in) {
  const Operand &data = in.operand(0), &segments = in.operand(1);
  const std::optional<Dim> count = maybe_size(in, 2);
  return in.compute([&] { return function(data, segments, count, in.at); });
}

template <auto function>
PyObject* normalized(Arguments& in) {
  const Operand& x = in.operand(0);
  const NormOptions options{in.maybe_tensor(1), in.maybe_tensor(2), in.real(3)};
  return in.compute([&] { return function(x, options, in.at); });
}

PyObject* run_attention(Arguments& in) {
  const Operand &q = in.operand(0), &k = in.operand(1), &v = in.operand(2);
  const AttentionOptions options{in.boolean(3), in.maybe_real(4), in.maybe_tensor(5)};
  return in.compute([&] { return attention(q, k, v, options, in.at); });
}

PyObject* run_meshgrid(Arguments& in) {
  const std::vector<Tensor> vectors = in.tensors(0);
  const MeshgridOptions options{static_cast<Indexing>(in.word(1))};
  return in.compute([&] { return meshgrid(vectors, options, in.at); });
}

PyObject* run_nan_to_num(Arguments& in) {
  const Operand& x = in.operand(0);
  const NanToNumOptions options{in.real(1), in.maybe_real(2), in.maybe_real(3)};
  return in.compute([&] { return nan_to_num(x, options, in.at); });
}

template <auto function>
PyObject* close(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  const CloseOptions options{in.real(2), in.real(3), in.boolean(4)};
  return in.compute([&] { return function(a, b, options, in.at); });
}

PyObject* run_dropout(Arguments& in) {
  const Operand& x = in.operand(0);
  const DropoutOptions options{in.real(1), in.maybe_key(2)};
  in.always_release();
  return in.compute([&] { return dropout(x, options, in.at); });
}

// ---- functions with several signatures ----------------------------------------------------------

PyObject* run_split(Arguments& in) {
  const Operand& x = in.operand(0);
  const int64_t axis = in.integer(2);
  if (PyIndex_Check(in.object(1).ptr()) != 0) {
    const int64_t parts = in.integer(1);
    return in.compute([&] { return split(x, parts, axis, in.at); });
  }
  const std::vector<int64_t> sizes = in.integers(1);
  return in.compute([&] { return split(x, sizes, axis, in.at); });
}

// One shift alone rolls the flattened tensor.
PyObject* run_roll(Arguments& in) {
  const Operand& x = in.operand(0);
  const std::vector<int64_t> shifts = in.integers(1);
  if (in.is_none(2) && shifts.size() == 1)
    return in.compute([&] { return roll(x, shifts[0], {}, in.at); });
  const std::vector<int64_t> axes = in.is_none(2) ? std::vector<int64_t>() : in.integers(2);
  return in.compute([&] { return roll(x, shifts, axes, in.at); });
}

// The operands one by one, or in a list: einsum("ij,jk,kl", [a, b, c]).
PyObject* run_einsum(Arguments& in) {
  const std::string subscripts = in.text(0);
  const nb::handle operands = in.object(1);
  const bool in_a_list = PyTuple_GET_SIZE(operands.ptr()) == 1 &&
                         (PyList_Check(PyTuple_GET_ITEM(operands.ptr(), 0)) != 0 ||
                          PyTuple_Check(PyTuple_GET_ITEM(operands.ptr(), 0)) != 0) &&
                         subscripts.find(',') != std::string::npos;
  const std::vector<Tensor> list =
      in_a_list ? tensors_from(PyTuple_GET_ITEM(operands.ptr(), 0), in.at) : in.tensors(1);
  return in.compute([&] { return einsum(subscripts, list, in.at); });
}

PyObject* run_arange(Arguments& in) {
  const Operand &start = in.operand(0), &step = in.operand(2);
  const std::optional<DType> dtype = in.maybe_dtype(3);
  if (in.is_none(1))
    return in.compute([&] { return arange(Operand(0, in.at), start, step, dtype, in.at); });
  const Operand& stop = in.operand(1);
  return in.compute([&] { return arange(start, stop, step, dtype, in.at); });
}

PyObject* run_eye(Arguments& in) {
  const int64_t rows = in.integer(0), columns = in.maybe_integer(1).value_or(rows);
  const DType dtype = in.dtype(2);
  return in.compute([&] { return eye(rows, columns, dtype, in.at); });
}

template <auto function>
PyObject* like(Arguments& in) {
  const Operand& x = in.operand(0);
  const std::optional<DType> dtype = in.maybe_dtype(1);
  if (!dtype) return in.compute([&] { return function(x, in.at); });
  const Tensor model = in.tensor(0);
  return in.compute([&] { return cast(function(model, in.at), *dtype, in.at); });
}

PyObject* run_full_like(Arguments& in) {
  const Operand &x = in.operand(0), &value = in.operand(1);
  const std::optional<DType> dtype = in.maybe_dtype(2);
  if (!dtype) return in.compute([&] { return full_like(x, value, in.at); });
  const Shape shape = in.tensor(0).shape();
  return in.compute([&] { return full(shape, value, *dtype, in.at); });
}

PyObject* run_constant(Arguments& in) {
  const std::optional<DType> dtype = in.maybe_dtype(1);
  return wrap(constant_from(in.object(0), dtype, in.at));
}

PyObject* run_from_callback(Arguments& in) {
  const nb::object write = nb::borrow(in.object(2));
  const auto fill = [&](std::span<std::byte> bytes) {
    const nb::object view = nb::steal(PyMemoryView_FromMemory(
        reinterpret_cast<char*>(bytes.data()), static_cast<Py_ssize_t>(bytes.size()), PyBUF_WRITE));
    write(view);
    view.attr("release")();  // Whoever kept it cannot write later.
  };
  return wrap(from_callback(in.shape(0), in.dtype(1), fill, in.at));
}

// ---- draws --------------------------------------------------------------------------------------

template <auto function, class Options>
PyObject* drawn(Arguments& in) {
  const Shape shape = in.shape(0);
  Options options{.dtype = in.dtype(3), .key = in.maybe_key(4)};
  if constexpr (std::is_same_v<Options, random::NormalOptions>) {
    options.mean = in.real(1);
    options.stddev = in.real(2);
  } else if constexpr (std::is_same_v<Options, random::IntegersOptions>) {
    options.low = in.integer(1);
    options.high = in.integer(2);
  } else {
    options.low = in.real(1);
    options.high = in.real(2);
  }
  in.always_release();
  return in.compute([&] { return function(shape, options, in.at); });
}

// Whether it is elements rather than one number: a tensor, or an array with axes. Usual numbers and
// shapes are told first, since Python takes long to find that an attribute is not there.
bool has_elements(nb::handle object) {
  PyObject* const it = object.ptr();
  if (PyLong_CheckExact(it) || PyFloat_CheckExact(it) || PyTuple_CheckExact(it) || it == Py_None)
    return false;
  return is_tensor(object) || (has_array(object) && nb::hasattr(object, "shape") &&
                               PyObject_Size(nb::object(object.attr("shape")).ptr()) > 0);
}

// Other libraries take the probabilities or the bounds first; a shape is a few whole numbers.
bool is_shape(Arguments& in) {
  const nb::handle given = in.object(0);
  if (!has_elements(given)) return PyFloat_Check(given.ptr()) == 0;
  const Tensor tensor = in.tensor(0);
  return tensor.rank() <= 1 && is_integer(tensor.dtype());
}
[[noreturn]] void refuse_shape(const Arguments& in, const char* name, const char* instead) {
  throw UserTypeError(cat("random.", name, ": the first argument is the shape, and this is a ",
                          Py_TYPE(in.object(0).ptr())->tp_name),
                      in.at, instead);
}

void check_integers(Arguments& in) {
  const nb::handle high = in.object(2);
  const bool low_is_tensor = has_elements(in.object(1)), high_is_tensor = has_elements(high);
  if (!is_shape(in) || (has_elements(in.object(0)) && low_is_tensor && !high_is_tensor))
    refuse_shape(in, "integers",
                 "write td.random.integers(shape, low, high), with tensors of bounds "
                 "td.random.integers(low.shape, low, high)");
  constexpr const char* kOrder = "the shape comes first: td.random.integers((3,), low, high)";
  if (PyTuple_Check(high.ptr()) || PyList_Check(high.ptr()))
    throw UserTypeError("random.integers: high is a shape", in.at, kOrder);
  if (!low_is_tensor && !high_is_tensor && in.integer(1) >= in.integer(2))
    throw UserError(
        cat("random.integers: empty interval [", in.integer(1), ", ", in.integer(2), ")"), in.at,
        kOrder);
}

PyObject* run_integers(Arguments& in) {
  check_integers(in);
  if (!has_elements(in.object(1)) && !has_elements(in.object(2)))
    return drawn<static_cast<Tensor (*)(const Shape&, random::IntegersOptions, Source)>(
                     random::integers),
                 random::IntegersOptions>(in);
  const Shape shape = in.shape(0);
  const Operand &low = in.operand(1), &high = in.operand(2);
  const random::WholeDrawOptions options{in.dtype(3), in.maybe_key(4)};
  in.always_release();
  return in.compute([&] { return random::integers(low, high, shape, options, in.at); });
}

PyObject* run_exponential(Arguments& in) {
  const Shape shape = in.shape(0);
  const random::ExponentialDrawOptions options{in.real(1), in.dtype(2), in.maybe_key(3)};
  in.always_release();
  return in.compute([&] { return random::exponential(shape, options, in.at); });
}

PyObject* run_gumbel(Arguments& in) {
  const Shape shape = in.shape(0);
  const random::DrawOptions options{in.dtype(1), in.maybe_key(2)};
  in.always_release();
  return in.compute([&] { return random::gumbel(shape, options, in.at); });
}

PyObject* run_laplace(Arguments& in) {
  const Shape shape = in.shape(0);
  const random::LaplaceOptions options{in.real(1), in.real(2), in.dtype(3), in.maybe_key(4)};
  in.always_release();
  return in.compute([&] { return random::laplace(shape, options, in.at); });
}

PyObject* run_truncated_normal(Arguments& in) {
  const Shape shape = in.shape(0);
  const random::TruncatedNormalOptions options{in.real(1), in.real(2),  in.real(3),
                                               in.real(4), in.dtype(5), in.maybe_key(6)};
  in.always_release();
  return in.compute([&] { return random::truncated_normal(shape, options, in.at); });
}

// gamma and poisson.
template <auto function, class Options>
PyObject* drawn_by(Arguments& in) {
  const Operand& parameter = in.operand(0);
  const Shape shape = in.shape(1);
  const Options options{in.dtype(2), in.maybe_key(3)};
  in.always_release();
  return in.compute([&] { return function(parameter, shape, options, in.at); });
}

PyObject* run_beta(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  const Shape shape = in.shape(2);
  const random::DrawOptions options{in.dtype(3), in.maybe_key(4)};
  in.always_release();
  return in.compute([&] { return random::beta(a, b, shape, options, in.at); });
}

PyObject* run_categorical(Arguments& in) {
  const Operand& logits = in.operand(0);
  const random::CategoricalOptions options{in.maybe_integer(1), in.maybe_key(2)};
  in.always_release();
  return in.compute([&] { return random::categorical(logits, options, in.at); });
}

PyObject* run_multinomial(Arguments& in) {
  const int64_t trials = in.integer(0);
  const Operand& probabilities = in.operand(1);
  const random::KeyOptions options{in.maybe_key(2)};
  in.always_release();
  return in.compute([&] { return random::multinomial(trials, probabilities, options, in.at); });
}

PyObject* run_bernoulli(Arguments& in) {
  if (!is_shape(in))
    refuse_shape(in, "bernoulli",
                 "write td.random.bernoulli(shape, p), with a tensor of probabilities "
                 "td.random.bernoulli(p.shape, p)");
  const Shape shape = in.shape(0);
  in.always_release();
  if (has_elements(in.object(1))) {
    const Operand& p = in.operand(1);
    const random::KeyOptions options{in.maybe_key(2)};
    return in.compute([&] { return random::bernoulli(p, shape, options, in.at); });
  }
  const random::BernoulliOptions options{in.real(1), in.maybe_key(2)};
  return in.compute([&] { return random::bernoulli(shape, options, in.at); });
}

PyObject* run_permutation(Arguments& in) {
  in.always_release();
  if (has_elements(in.object(0))) {
    const Tensor x = in.tensor(0);
    const random::ShuffleOptions options{in.integer(1), in.maybe_key(2)};
    return in.compute([&] { return random::permutation(x, options, in.at); });
  }
  const int64_t n = in.integer(0);
  const random::PermutationOptions options{in.maybe_key(2)};
  return in.compute([&] { return random::permutation(n, options, in.at); });
}

template <auto function>
PyObject* along_axis(Arguments& in) {
  const Operand& x = in.operand(0);
  const fft::AxisOptions options{in.maybe_integer(1), in.integer(2),
                                 static_cast<fft::Norm>(in.word(3))};
  return in.compute([&] { return function(x, options, in.at); });
}

template <auto function>
PyObject* along_axes(Arguments& in) {
  const Operand& x = in.operand(0);
  fft::AxesOptions options{.s = {}, .axes = {}, .norm = static_cast<fft::Norm>(in.word(3))};
  if (!in.is_none(1)) options.s = in.integers(1);
  if (!in.is_none(2)) options.axes = in.integers(2);
  return in.compute([&] { return function(x, options, in.at); });
}

PyObject* run_assert_that(Arguments& in) {
  const Operand& condition = in.operand(0);
  const std::string message = in.text(1);
  const std::vector<Tensor> values = in.tensors(2);
  return in.compute([&] { assert_that(condition, message, values, in.at); });
}

// ---- linear algebra -----------------------------------------------------------------------------

PyObject* run_solve_triangular(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  const linalg::TriangularOptions options{in.boolean(2), in.boolean(3), in.boolean(4)};
  return in.compute([&] { return linalg::solve_triangular(a, b, options, in.at); });
}

PyObject* run_solve(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  const linalg::SolveOptions options{in.boolean(2)};
  return in.compute([&] { return linalg::solve(a, b, options, in.at); });
}

// With one option, which is a bool.
template <auto function, class Options>
PyObject* chosen(Arguments& in) {
  const Operand& x = in.operand(0);
  const Options options{in.boolean(1)};
  return in.compute([&] { return function(x, options, in.at); });
}

PyObject* run_pinv(Arguments& in) {
  const Operand& x = in.operand(0);
  const linalg::RankOptions options{in.maybe_real(1)};
  return in.compute([&] { return linalg::pinv(x, options, in.at); });
}

PyObject* run_lstsq(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  const linalg::RankOptions options{in.maybe_real(2)};
  return in.compute([&] { return linalg::lstsq(a, b, options, in.at); });
}

PyObject* run_vector_norm(Arguments& in) {
  const Operand& x = in.operand(0);
  const linalg::VectorNormOptions options{in.real(1), in.axes(2), Keep(in.boolean(3))};
  return in.compute([&] { return linalg::vector_norm(x, options, in.at); });
}

PyObject* run_matrix_norm(Arguments& in) {
  const Operand& x = in.operand(0);
  const linalg::MatrixNormOptions options{static_cast<linalg::MatrixNorm>(in.word(1)),
                                          Keep(in.boolean(2))};
  return in.compute([&] { return linalg::matrix_norm(x, options, in.at); });
}

constexpr std::string_view kLike = "x: tensor, dtype: dtype = none";
constexpr std::string_view kTernary[] = {"x: tensor, min: tensor, max: tensor",
                                         "condition: tensor, x: tensor, y: tensor"};

// In the order of the catalogue.
constexpr Binding kBindings[] = {
    {"clip", nullptr, kTernary[0]},
    {"where", nullptr, kTernary[1]},
    {"broadcast_to", plain<broadcast_to>},
    {"cast", plain<cast>},
    {"concat", plain<concat>},
    {"pad", run_pad,
     "x: tensor, widths: pairs, value: tensor = 0, mode: constant|reflect|symmetric|edge = "
     "constant"},
    {"reshape", plain<reshape>},
    {"stop_gradient", plain<stop_gradient>},
    {"transpose", run_transpose},
    {"cumsum", running<cumsum>},
    {"first_equal", plain<first_equal>},
    {"gather", run_gather},
    {"put", plain<put>},
    {"scatter_add", plain<scatter_add>},
    {"scatter_max", plain<scatter_max>},
    {"scatter_min", plain<scatter_min>},
    {"scatter_mul", plain<scatter_mul>},
    {"scatter_nd", plain<scatter_nd>},
    {"segment_sum", segmented<segment_sum>},
    {"segment_mean", segmented<segment_mean>},
    {"segment_prod", segmented<segment_prod>},
    {"segment_max", segmented<segment_max>},
    {"segment_min", segmented<segment_min>},
    {"cummax", directed<cummax>},
    {"cummin", directed<cummin>},
    {"cumprod", running<cumprod>},
    {"cumlogsumexp", running<cumlogsumexp>},
    {"linear_scan", run_linear_scan},
    {"searchsorted", run_searchsorted},
    {"bincount", run_bincount},
    {"histogram", run_histogram},
    {"median", reduce<median>},
    {"quantile", run_quantile},
    {"unique", sized<unique>},
    {"nonzero", sized<nonzero>},
    {"sort", sorted<sort>},
    {"argsort", sorted<argsort>},
    {"take_along_axis", plain<take_along_axis>},
    {"top_k", plain<top_k>},
    {"conv2d", convolution<conv2d, ConvOptions>},
    {"conv3d", convolution<conv3d, Conv3dOptions>},
    {"matmul", run_matmul},
    {"linalg::cholesky", plain<linalg::cholesky>},
    {"linalg::eigh", plain<linalg::eigh>},
    {"linalg::eigvalsh", plain<linalg::eigvalsh>},
    {"linalg::expm", plain<linalg::expm>},
    {"linalg::lu", plain<linalg::lu>},
    {"linalg::pinv", run_pinv},
    {"linalg::qr", chosen<linalg::qr, linalg::QrOptions>},
    {"linalg::solve", run_solve},
    {"linalg::solve_triangular", run_solve_triangular},
    {"linalg::svd", chosen<linalg::svd, linalg::SvdOptions>},
    {"linalg::svdvals", plain<linalg::svdvals>},
    {"arange", run_arange,
     "start: tensor, stop: tensor = none, step: tensor = 1, dtype: dtype = none"},
    {"transfer", plain<transfer>},
    {"expand_dims", plain<expand_dims>},
    {"squeeze", plain<squeeze>},
    {"stack", plain<stack>},
    {"split", run_split, "x: tensor, parts: ints, axis: int = 0"},
    {"unstack", plain<unstack>},
    {"tile", plain<tile>},
    {"repeat", plain<repeat>},
    {"flip", plain<flip>},
    {"tril", plain<tril>},
    {"triu", plain<triu>},
    {"diagonal", plain<diagonal>},
    {"diag", plain<diag>},
    {"roll", run_roll, "x: tensor, shift: ints, axis: ints = none"},
    {"meshgrid", run_meshgrid},
    {"diff", plain<diff>},
    {"one_hot", plain<one_hot>},
    {"tensordot", run_tensordot, "a: tensor, b: tensor, axes: contracted = 2"},
    {"einsum", run_einsum, "subscripts: text, operands: operands"},
    {"outer", plain<outer>},
    {"kron", plain<kron>},
    {"cross", plain<cross>},
    {"cdist", plain<cdist>},
    {"conv1d", convolution<conv1d, Conv1dOptions>},
    {"conv_transpose1d", convolution<conv_transpose1d, ConvTranspose1dOptions>},
    {"conv_transpose2d", convolution<conv_transpose2d, ConvTranspose2dOptions>},
    {"conv_transpose3d", convolution<conv_transpose3d, ConvTranspose3dOptions>},
    {"depthwise_conv2d", convolution<depthwise_conv2d, DepthwiseOptions>},
    {"depthwise_conv1d", convolution<depthwise_conv1d, Depthwise1dOptions>},
    {"separable_conv2d", separable<separable_conv2d, DepthwiseOptions>},
    {"separable_conv1d", separable<separable_conv1d, Depthwise1dOptions>},
    {"resize", run_resize},
    {"pixel_shuffle", shuffled<pixel_shuffle>},
    {"pixel_unshuffle", shuffled<pixel_unshuffle>},
    {"max_pool", pool<max_pool, PoolOptions>},
    {"avg_pool", pool<avg_pool, PoolOptions>},
    {"max_pool1d", pool<max_pool1d, Pool1dOptions>},
    {"avg_pool1d", pool<avg_pool1d, Pool1dOptions>},
    {"max_pool3d", pool<max_pool3d, Pool3dOptions>},
    {"avg_pool3d", pool<avg_pool3d, Pool3dOptions>},
    {"adaptive_max_pool", adaptive<adaptive_max_pool>},
    {"adaptive_avg_pool", adaptive<adaptive_avg_pool>},
    {"extract_patches", run_extract_patches},
    {"mean", reduce<mean>},
    {"var", reduce<var>},
    {"std", reduce<tidemark::std>},
    {"logsumexp", reduce<logsumexp>},
    {"norm", reduce<norm>},
    {"nan_to_num", run_nan_to_num},
    {"nextafter", plain<nextafter>},
    {"isclose", close<isclose>},
    {"allclose", close<allclose>},
    {"leaky_relu", plain<leaky_relu>},
    {"layer_norm", normalized<layer_norm>},
    {"rms_norm", normalized<rms_norm>},
    {"embedding", run_embedding},
    {"attention", run_attention},
    {"mse", plain<mse>},
    {"sparse_softmax_cross_entropy", plain<sparse_softmax_cross_entropy>},
    {"linalg::cholesky_solve", plain<linalg::cholesky_solve>},
    {"linalg::inv", plain<linalg::inv>},
    {"linalg::det", plain<linalg::det>},
    {"linalg::slogdet", plain<linalg::slogdet>},
    {"linalg::lstsq", run_lstsq},
    {"linalg::vector_norm", run_vector_norm},
    {"linalg::matrix_norm", run_matrix_norm},
    {"complex", plain<complex>},
    {"polar", plain<polar>},
    {"real", plain<real>},
    {"imag", plain<imag>},
    {"conj", plain<conj>},
    {"angle", plain<angle>},
    {"view_as_real", plain<view_as_real>},
    {"view_as_complex", plain<view_as_complex>},
    {"fft::fft", along_axis<fft::fft>},
    {"fft::ifft", along_axis<fft::ifft>},
    {"fft::rfft", along_axis<fft::rfft>},
    {"fft::irfft", along_axis<fft::irfft>},
    {"fft::hfft", along_axis<fft::hfft>},
    {"fft::ihfft", along_axis<fft::ihfft>},
    {"fft::fftn", along_axes<fft::fftn>},
    {"fft::ifftn", along_axes<fft::ifftn>},
    {"fft::rfftn", along_axes<fft::rfftn>},
    {"fft::irfftn", along_axes<fft::irfftn>},
    {"fft::fft2", along_axes<fft::fft2>},
    {"fft::ifft2", along_axes<fft::ifft2>},
    {"fft::rfft2", along_axes<fft::rfft2>},
    {"fft::irfft2", along_axes<fft::irfft2>},
    {"fft::fftfreq", plain<fft::fftfreq>},
    {"fft::rfftfreq", plain<fft::rfftfreq>},
    {"fft::fftshift", plain<fft::fftshift>},
    {"fft::ifftshift", plain<fft::ifftshift>},
    {"constant", run_constant},
    {"from_callback", run_from_callback},
    {"zeros", plain<zeros>},
    {"ones", plain<ones>},
    {"full", plain<full>},
    {"zeros_like", like<zeros_like>, kLike},
    {"ones_like", like<ones_like>, kLike},
    {"full_like", run_full_like, "x: tensor, value: tensor, dtype: dtype = none"},
    {"linspace", plain<linspace>},
    {"eye", run_eye, "rows: int, columns: int = none, dtype: dtype = f32"},
    {"random::normal", drawn<random::normal, random::NormalOptions>},
    {"random::uniform", drawn<random::uniform, random::UniformOptions>},
    {"random::integers", run_integers,
     "shape: shape, low: tensor = 0, high: tensor = 2, dtype: dtype = i32, key: key = none"},
    {"random::bernoulli", run_bernoulli, "shape: shape, p: tensor = 0.5, key: key = none"},
    {"random::permutation", run_permutation, "n: tensor, axis: int = 0, key: key = none"},
    {"random::exponential", run_exponential},
    {"random::gumbel", run_gumbel},
    {"random::laplace", run_laplace},
    {"random::truncated_normal", run_truncated_normal},
    {"random::gamma", drawn_by<random::gamma, random::DrawOptions>},
    {"random::beta", run_beta},
    {"random::poisson", drawn_by<random::poisson, random::WholeDrawOptions>},
    {"random::categorical", run_categorical},
    {"random::multinomial", run_multinomial},
    {"dropout", run_dropout},
    {"check_numerics", plain<check_numerics>},
    {"assert_that", run_assert_that},
};

// ---- op objects ---------------------------------------------------------------------------------

template <class Op>
const Op& object_of(const Arguments& in) {
  return *static_cast<const Op*>(in.op().self);
}

PyObject* run_unary(Arguments& in) {
  const Operand& x = in.operand(0);
  return in.compute([&] { return object_of<UnaryOp>(in)(x, in.at); });
}
PyObject* run_binary(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1);
  return in.compute([&] { return object_of<BinaryOp>(in)(a, b, in.at); });
}
PyObject* run_ternary(Arguments& in) {
  const Operand &a = in.operand(0), &b = in.operand(1), &c = in.operand(2);
  return in.compute([&] { return object_of<TernaryOp>(in)(a, b, c, in.at); });
}
PyObject* run_reduce(Arguments& in) {
  const Operand& x = in.operand(0);
  const Axes axes = in.axes(1);
  const Keep keep = Keep(in.boolean(2));
  return in.compute([&] { return object_of<ReduceOp>(in)(x, axes, keep, in.at); });
}
PyObject* run_row(Arguments& in) {
  const Operand& x = in.operand(0);
  const int64_t axis = in.integer(1);
  return in.compute([&] { return object_of<RowOp>(in)(x, axis, in.at); });
}

}  // namespace

const Binding* find_binding(std::string_view name) {
  for (const Binding& binding : kBindings)
    if (binding.name == name) return &binding;
  return nullptr;
}

PyObject* (*family_binding(const OpDef& op))(Arguments& in) {
  if (op.family == Family::reduce) return run_reduce;
  if (op.family == Family::row) return run_row;
  constexpr PyObject* (*by_arity[])(Arguments&) = {run_unary, run_binary, run_ternary};
  return by_arity[op.arity - 1];
}

}  // namespace tidemark::python
