// td.nn: convolutions, pools and resizing of images, rows and volumes.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "dtype.h"
#include "errors.h"
#include "layer_class.h"

// One number for all axes, or a tuple with one for each: 3 or (3, 5).
template <size_t axes>
struct nanobind::detail::type_caster<tidemark::nn::WindowSize<axes>> {
  using Size = tidemark::nn::WindowSize<axes>;
  Size value = 1;
  static constexpr auto Name =
      const_name < axes ==
      1 > (const_name("int"), const_name<axes == 2>(const_name("int | tuple[int, int]"),
                                                    const_name("int | tuple[int, int, int]")));
  template <class T>
  using Cast = Size;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }
  explicit operator Size() { return value; }
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (PyLong_Check(source.ptr())) {
      value = Size(int64_t{PyLong_AsLong(source.ptr())});
    } else if (PyTuple_Check(source.ptr()) &&
               PyTuple_GET_SIZE(source.ptr()) == static_cast<Py_ssize_t>(axes)) {
      for (size_t i = 0; i < axes; ++i)
        value.items[i] = PyLong_AsLong(PyTuple_GET_ITEM(source.ptr(), static_cast<Py_ssize_t>(i)));
    } else {
      return false;
    }
    if (PyErr_Occurred() == nullptr) return true;
    PyErr_Clear();
    return false;
  }
  static handle from_cpp(const Size& size, rv_policy, cleanup_list*) noexcept {
    if (axes == 1) return PyLong_FromLongLong(size.items[0]);
    PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(axes));
    for (size_t i = 0; tuple != nullptr && i < axes; ++i)
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(size.items[i]));
    return tuple;
  }
};

namespace tidemark::python {
namespace {

WindowPadding padding_from(nb::handle given, const char* layer, Source at) {
  if (PyUnicode_Check(given.ptr()) != 0) {
    const std::string name = nb::cast<std::string>(given);
    if (name == "valid") return Padding::valid;
    if (name == "same") return Padding::same;
    throw UserError(cat(layer, ": padding is \"", name, "\""), at, "give \"valid\" or \"same\"");
  }
  try {
    Padding2 pairs;
    for (const auto& [before, after] :
         nb::cast<std::vector<std::pair<int64_t, int64_t>>>(nb::object(nb::list(given))))
      pairs.emplace_back(before, after);
    return pairs;
  } catch (const nb::cast_error&) {
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  throw UserTypeError(cat(layer, ": ", Py_TYPE(given.ptr())->tp_name, " is no padding"), at,
                      "give \"valid\", \"same\" or a pair (before, after) for each axis");
}

Resizing method_from(const std::string& name, const char* layer, Source at) {
  constexpr std::string_view names[] = {"nearest", "bilinear", "bicubic"};
  for (size_t i = 0; i < 3; ++i)
    if (names[i] == name) return static_cast<Resizing>(i);
  throw UserError(cat(layer, ": there is no method \"", name, "\""), at,
                  "give \"nearest\", \"bilinear\" or \"bicubic\"");
}

// "nn.Conv2D" of "nn::Conv2D".
std::string python_name(const char* kind) {
  return cat("nn.", std::string_view(kind).substr(std::string_view("nn::").size()));
}
template <class Layer>
const char* short_name() {
  return Layer::kKind + std::string_view("nn::").size();
}

// Options that convolutions of every kind have.
template <class Options, size_t axes>
Options options_of(const char* kind, nn::WindowSize<axes> strides, nb::handle padding,
                   nn::WindowSize<axes> dilations, nb::handle activation, bool use_bias,
                   nb::handle kernel_initializer, nb::handle bias_initializer, nb::handle dtype,
                   std::string name, Source at) {
  Options options;
  options.strides = strides;
  options.padding = padding_from(padding, python_name(kind).c_str(), at);
  options.dilations = dilations;
  options.activation = activation_from(activation, at);
  options.use_bias = use_bias;
  options.kernel_initializer = initializer_from(kernel_initializer);
  options.bias_initializer = initializer_from(bias_initializer);
  options.dtype = policy_from(dtype);
  options.name = std::move(name);
  return options;
}

template <size_t axes, bool transposed>
void bind_conv(nb::module_& nn, const char* doc, const char* kernel) {
  using Layer = nn::ConvLayer<axes, transposed>;
  using Size = nn::WindowSize<axes>;
  auto conv = layer_class<Layer>(nn, short_name<Layer>(), doc);
  conv.def(
      "__init__",
      [](Layer* self, int64_t filters, Size window, Size strides, nb::handle padding,
         Size dilations, int64_t groups, nb::handle activation, bool use_bias,
         nb::handle kernel_initializer, nb::handle bias_initializer, nb::handle dtype,
         std::string name) {
        const Source at = calling_line();
        auto options = options_of<nn::ConvLayerOptions<axes>>(
            Layer::kKind, strides, padding, dilations, activation, use_bias, kernel_initializer,
            bias_initializer, dtype, std::move(name), at);
        options.groups = groups;
        new (self) Layer(filters, window, std::move(options), at);
      },
      arg("filters"), arg("window"), nb::kw_only(), arg("strides") = Size(1),
      arg("padding") = "valid", arg("dilations") = Size(1), arg("groups") = 1,
      arg("activation") = nb::none(), arg("use_bias") = true,
      arg("kernel_initializer") = nn.attr("initializers").attr("glorot_uniform"),
      arg("bias_initializer") = nn.attr("initializers").attr("zeros"), arg("dtype") = nb::none(),
      arg("name") = "");
  field(conv, "kernel", &Layer::kernel, kernel);
  field(conv, "bias", &Layer::bias, "[filters], or None.");
}

template <size_t axes>
void bind_depthwise(nb::module_& nn, const char* kernel) {
  using Layer = nn::DepthwiseConvLayer<axes>;
  using Size = nn::WindowSize<axes>;
  auto conv = layer_class<Layer>(nn, short_name<Layer>(), "Each channel by windows of its own.");
  conv.def(
      "__init__",
      [](Layer* self, Size window, Size strides, nb::handle padding, Size dilations, int64_t times,
         nb::handle activation, bool use_bias, nb::handle kernel_initializer,
         nb::handle bias_initializer, nb::handle dtype, std::string name) {
        const Source at = calling_line();
        auto options = options_of<nn::DepthwiseConvOptions<axes>>(
            Layer::kKind, strides, padding, dilations, activation, use_bias, kernel_initializer,
            bias_initializer, dtype, std::move(name), at);
        options.times = times;
        new (self) Layer(window, std::move(options), at);
      },
      arg("window"), nb::kw_only(), arg("strides") = Size(1), arg("padding") = "valid",
      arg("dilations") = Size(1), arg("times") = 1, arg("activation") = nb::none(),
      arg("use_bias") = true,
      arg("kernel_initializer") = nn.attr("initializers").attr("glorot_uniform"),
      arg("bias_initializer") = nn.attr("initializers").attr("zeros"), arg("dtype") = nb::none(),
      arg("name") = "");
  field(conv, "kernel", &Layer::kernel, kernel);
  field(conv, "bias", &Layer::bias, "[channels * times], or None.");
}

template <size_t axes>
void bind_separable(nb::module_& nn, const char* depthwise, const char* pointwise) {
  using Layer = nn::SeparableConvLayer<axes>;
  using Size = nn::WindowSize<axes>;
  auto conv =
      layer_class<Layer>(nn, short_name<Layer>(),
                         "Each channel by windows of its own, then all channels of each pixel.");
  conv.def(
      "__init__",
      [](Layer* self, int64_t filters, Size window, Size strides, nb::handle padding,
         Size dilations, int64_t times, nb::handle activation, bool use_bias,
         nb::handle kernel_initializer, nb::handle bias_initializer, nb::handle dtype,
         std::string name) {
        const Source at = calling_line();
        auto options = options_of<nn::DepthwiseConvOptions<axes>>(
            Layer::kKind, strides, padding, dilations, activation, use_bias, kernel_initializer,
            bias_initializer, dtype, std::move(name), at);
        options.times = times;
        new (self) Layer(filters, window, std::move(options), at);
      },
      arg("filters"), arg("window"), nb::kw_only(), arg("strides") = Size(1),
      arg("padding") = "valid", arg("dilations") = Size(1), arg("times") = 1,
      arg("activation") = nb::none(), arg("use_bias") = true,
      arg("kernel_initializer") = nn.attr("initializers").attr("glorot_uniform"),
      arg("bias_initializer") = nn.attr("initializers").attr("zeros"), arg("dtype") = nb::none(),
      arg("name") = "");
  field(conv, "depthwise_kernel", &Layer::depthwise_kernel, depthwise);
  field(conv, "pointwise_kernel", &Layer::pointwise_kernel, pointwise);
  field(conv, "bias", &Layer::bias, "[filters], or None.");
}

template <size_t axes, nn::PoolKind kind>
void bind_pools(nb::module_& nn) {
  constexpr bool is_max = kind == nn::PoolKind::max;
  using Size = nn::WindowSize<axes>;
  using Pool = nn::PoolLayer<axes, kind>;
  layer_class<Pool>(nn, short_name<Pool>(),
                    is_max ? "The largest element of each window."
                           : "The mean of each window; padding does not count.")
      .def(
          "__init__",
          [](Pool* self, Size window, std::optional<Size> strides, nb::handle padding) {
            new (self) Pool(window, {.strides = strides,
                                     .padding = padding_from(padding, "pooling", calling_line())});
          },
          arg("window") = Size(2), nb::kw_only(), arg("strides") = nb::none(),
          arg("padding") = "valid");
  using Global = nn::GlobalPoolLayer<axes, kind>;
  layer_class<Global>(nn, short_name<Global>(),
                      is_max
                          ? "The largest element of each channel: [n, ..., channels] becomes "
                            "[n, channels]."
                          : "The mean of each channel: [n, ..., channels] becomes [n, channels].")
      .def(nb::init<>());
  using Adaptive = nn::AdaptivePoolLayer<axes, kind>;
  layer_class<Adaptive>(nn, short_name<Adaptive>(),
                        is_max ? "The largest elements of windows as large as it takes to get "
                                 "these sizes."
                               : "The means of windows as large as it takes to get these sizes.")
      .def(nb::init<Size>(), arg("sizes"));
}

template <size_t axes>
void bind_up_sampling(nb::module_& nn) {
  using Layer = nn::UpSamplingLayer<axes>;
  using Size = nn::WindowSize<axes>;
  layer_class<Layer>(nn, short_name<Layer>(), "Sizes times a factor.")
      .def(
          "__init__",
          [](Layer* self, Size factor, const std::string& method) {
            const Source at = calling_line();
            new (self)
                Layer(factor, method_from(method, python_name(Layer::kKind).c_str(), at), at);
          },
          arg("factor") = Size(2), nb::kw_only(), arg("method") = "nearest");
}

}  // namespace

void bind_image_layers(nb::module_& nn) {
  bind_conv<1, false>(nn, "Convolution of rows, [n, width, channels].",
                      "[width, channels / groups, filters]");
  bind_conv<2, false>(nn, "Convolution of images, [n, height, width, channels].",
                      "[height, width, channels / groups, filters]");
  bind_conv<3, false>(nn, "Convolution of volumes, [n, depth, height, width, channels].",
                      "[depth, height, width, channels / groups, filters]");
  bind_conv<1, true>(nn, "The gradient by the row of a convolution: makes rows longer.",
                     "[width, filters / groups, channels]");
  bind_conv<2, true>(nn, "The gradient by the image of a convolution: makes images larger.",
                     "[height, width, filters / groups, channels]");
  bind_conv<3, true>(nn, "The gradient by the volume of a convolution: makes volumes larger.",
                     "[depth, height, width, filters / groups, channels]");
  bind_depthwise<1>(nn, "[width, channels, times]");
  bind_depthwise<2>(nn, "[height, width, channels, times]");
  bind_separable<1>(nn, "[width, channels, times]", "[1, channels * times, filters]");
  bind_separable<2>(nn, "[height, width, channels, times]", "[1, 1, channels * times, filters]");
  bind_pools<1, nn::PoolKind::max>(nn);
  bind_pools<2, nn::PoolKind::max>(nn);
  bind_pools<3, nn::PoolKind::max>(nn);
  bind_pools<1, nn::PoolKind::average>(nn);
  bind_pools<2, nn::PoolKind::average>(nn);
  bind_pools<3, nn::PoolKind::average>(nn);
  bind_up_sampling<1>(nn);
  bind_up_sampling<2>(nn);
  bind_up_sampling<3>(nn);
  layer_class<nn::Resize>(nn, "Resize", "Images with other sizes, each pixel a weighted sum.")
      .def(
          "__init__",
          [](nn::Resize* self, nn::Size2 sizes, const std::string& method, bool antialias) {
            new (self)
                nn::Resize(sizes, method_from(method, "nn.Resize", calling_line()), antialias);
          },
          arg("sizes"), nb::kw_only(), arg("method") = "bilinear", arg("antialias") = false);
}

}  // namespace tidemark::python
