# Elementwise functions and reductions.


def add_subtract_multiply_divide():
    x, y = tf.constant([1.0, 4.0]), tf.constant([2.0, 0.5])
    return tf.add(x, y), tf.subtract(x, y), tf.multiply(x, y), tf.divide(x, y), tf.math.truediv(x, y), tf.negative(x)


def add_n():
    return tf.add_n([tf.constant([1, 2]), tf.constant([3, 4]), tf.constant([5, 6])]), tf.math.accumulate_n([tf.constant([1.0]), tf.constant([2.0])])


def divide_no_nan():
    return tf.math.divide_no_nan([1.0, 2.0], [0.0, 4.0]), tf.math.multiply_no_nan([1.0, np.inf], [2.0, 0.0]), tf.math.reciprocal_no_nan([0.0, 4.0])


def floor_and_remainder():
    x, y = tf.constant([7, -7, 7]), tf.constant([2, 2, -2])
    return tf.math.floordiv(x, y), tf.math.floormod(x, y), tf.math.mod(x, y), tf.truncatediv(x, y), tf.truncatemod(x, y)


def floor_of_floats():
    x = tf.constant([-1.5, 0.5, 1.5, 2.5])
    return tf.floor(x), tf.math.ceil(x), tf.round(x), tf.math.rint(x), tf.math.floormod(x, 1.0)


def abs_sign_square():
    x = tf.constant([-2.0, 0.0, 3.0])
    return tf.abs(x), tf.sign(x), tf.square(x), tf.math.squared_difference(x, 1.0), tf.abs([-1, 2])


def powers():
    x = tf.constant([1.0, 4.0, 9.0])
    return tf.sqrt(x), tf.math.rsqrt(x), tf.pow(x, 2.0), tf.math.reciprocal(x), tf.pow([2, 3], [3, 2])


def exponentials():
    x = tf.constant([-1.0, 0.0, 2.0])
    return tf.exp(x), tf.math.expm1(x), tf.math.sigmoid(x), tf.math.log_sigmoid(x), tf.math.softplus(x), tf.sigmoid(x)


def logarithms():
    x = tf.constant([0.5, 1.0, 8.0])
    return tf.math.log(x), tf.math.log1p(x), tf.math.xlogy([0.0, 2.0], [0.0, 3.0]), tf.math.xlog1py([0.0, 2.0], [-1.0, 3.0])


def trigonometry():
    x = tf.constant([-0.5, 0.1, 0.9])
    return tf.sin(x), tf.cos(x), tf.tan(x), tf.asin(x), tf.acos(x), tf.atan(x), tf.atan2(x, [1.0, -1.0, 2.0])


def hyperbolics():
    x = tf.constant([-0.5, 0.1, 0.9])
    return tf.sinh(x), tf.cosh(x), tf.tanh(x), tf.asinh(x), tf.atanh(x), tf.acosh(x + 2.0)


def gamma_functions():
    x = tf.constant([0.3, 1.7, 4.5, 30.0])
    return tf.math.lgamma(x), tf.math.digamma(x), tf.math.erfinv(x / 40.0), tf.math.polygamma(tf.fill([4], 1.0), x), tf.math.nextafter(x, x + 1)


def error_functions():
    x = tf.constant([-1.0, 0.0, 0.5])
    return tf.math.erf(x), tf.math.erfc(x)


def maximum_minimum():
    x = tf.constant([1, 5])
    return tf.maximum(x, [3, 3]), tf.minimum(x, 3), tf.math.maximum(1.0, 2.0)


def clip_by_value():
    x = tf.constant([-2.0, 0.5, 7.0])
    return tf.clip_by_value(x, 0.0, 1.0), tf.clip_by_value(x, 0, 1), tf.clip_by_value([1, 5], 2, 3)


def clip_by_norm():
    x = tf.constant([3.0, 4.0])
    return tf.clip_by_norm(x, 1.0), tf.clip_by_norm(x, 10.0), tf.clip_by_norm([[3.0, 4.0], [0.3, 0.4]], 1.0, axes=[1])


def clip_by_global_norm():
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0]), None], 1.0)
    return clipped, norm, tf.linalg.global_norm([tf.constant([3.0]), tf.constant([4.0])])


def comparisons():
    x, y = tf.constant([1.0, 2.0]), tf.constant([2.0, 2.0])
    return tf.equal(x, y), tf.not_equal(x, y), tf.less(x, y), tf.less_equal(x, y), tf.greater(x, y), tf.greater_equal(x, y)


def logic():
    a, b = tf.constant([True, False]), tf.constant([True, True])
    return tf.logical_and(a, b), tf.logical_or(a, b), tf.logical_not(a), tf.math.logical_xor(a, b)


def logic_of_numbers_is_an_error():
    return tf.logical_and(tf.constant([1]), tf.constant([0]))


def finite():
    x = tf.constant([1.0, np.inf, np.nan])
    return tf.math.is_nan(x), tf.math.is_inf(x), tf.math.is_finite(x)


def bitwise():
    a, b = tf.constant([6, 5]), tf.constant([3, 1])
    return (
        tf.bitwise.bitwise_and(a, b), tf.bitwise.bitwise_or(a, b), tf.bitwise.bitwise_xor(a, b),
        tf.bitwise.invert(a), tf.bitwise.left_shift(a, b), tf.bitwise.right_shift(a, b),
    )


def cumsum():
    x = tf.constant([1, 2, 3])
    return tf.cumsum(x), tf.cumsum(x, exclusive=True), tf.cumsum(x, reverse=True), tf.math.cumsum([[1.0, 2.0], [3.0, 4.0]], axis=1)


def cumsum_exclusive_reverse():
    return tf.cumsum([1.0, 2.0, 3.0], exclusive=True, reverse=True)


def cumprod():
    x = tf.constant([1.0, 2.0, 3.0])
    return tf.math.cumprod(x), tf.math.cumprod(x, exclusive=True), tf.math.cumprod(x, reverse=True)


def cumulative_logsumexp():
    return tf.math.cumulative_logsumexp([1.0, 2.0, 3.0])


def reduce_sum():
    x = tf.constant([[1, 2], [3, 4]])
    return tf.reduce_sum(x), tf.reduce_sum(x, 0), tf.reduce_sum(x, axis=1, keepdims=True), tf.reduce_sum(x, [0, 1])


def reduce_sum_of_floats():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return tf.reduce_sum(x), tf.reduce_sum(x, -1), tf.math.reduce_sum([1.0, 2.0]), tf.reduce_sum(tf.constant(3.0))


def reduce_mean():
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    return tf.reduce_mean(x), tf.reduce_mean(x, 0), tf.reduce_mean(x, axis=[1], keepdims=True)


def reduce_mean_of_ints():
    return tf.reduce_mean([1, 2, 4]), tf.reduce_mean(tf.constant([[1, 2], [3, 5]]), 0), tf.reduce_mean([-1, -2])


def reduce_max_min():
    x = tf.constant([[1, 7], [3, 4]])
    return tf.reduce_max(x), tf.reduce_min(x), tf.reduce_max(x, 0), tf.reduce_min(x, axis=1, keepdims=True)


def reduce_prod():
    x = tf.constant([[1, 2], [3, 4]])
    return tf.reduce_prod(x), tf.reduce_prod(x, 0), tf.reduce_prod(tf.constant([1.5, 2.0]))


def reduce_all_any():
    x = tf.constant([[True, False], [True, True]])
    return tf.reduce_all(x), tf.reduce_any(x), tf.reduce_all(x, 0), tf.reduce_any(x, axis=1)


def reduce_logsumexp():
    x = tf.constant([[0.0, 1.0], [100.0, 100.0]])
    return tf.reduce_logsumexp(x), tf.reduce_logsumexp(x, 1), tf.math.reduce_logsumexp(x, axis=0, keepdims=True)


def reduce_variance_std():
    x = tf.constant([[1.0, 2.0], [3.0, 6.0]])
    return tf.math.reduce_variance(x), tf.math.reduce_std(x, 0), tf.math.reduce_variance(x, axis=1, keepdims=True)


def reduce_euclidean_norm():
    return tf.math.reduce_euclidean_norm([[3.0, 4.0], [6.0, 8.0]], 1), tf.math.reduce_euclidean_norm([3.0, 4.0])


def count_nonzero():
    x = tf.constant([[0, 1, 2], [0, 0, 3]])
    return tf.math.count_nonzero(x), tf.math.count_nonzero(x, axis=0), tf.math.count_nonzero(x, 1, dtype=tf.int32)


def argmax_argmin():
    x = tf.constant([[1.0, 7.0, 7.0], [9.0, 4.0, 0.0]])
    return tf.argmax(x), tf.argmax(x, 1), tf.argmin(x, axis=-1), tf.argmax(x, 1, output_type=tf.int32), tf.math.argmin(x, 0)


def top_k():
    values, indices = tf.math.top_k([[1.0, 5.0, 3.0], [2.0, 2.0, 9.0]], k=2)
    r = tf.nn.top_k([3, 1, 4], 2)
    return values, indices, r.values, r.indices


def in_top_k():
    return tf.math.in_top_k([0, 2], [[0.1, 0.9, 0.3], [0.2, 0.1, 0.6]], k=1)


def segment_sums():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return tf.math.segment_sum(x, [0, 0, 1]), tf.math.unsorted_segment_sum(x, [1, 0, 1], 3)


def segment_means():
    x = tf.constant([1.0, 3.0, 5.0])
    return tf.math.segment_mean(x, [0, 0, 1]), tf.math.unsorted_segment_mean(x, [1, 0, 1], 2)


def segment_max():
    x = tf.constant([1.0, 3.0, 5.0, 2.0])
    return tf.math.segment_max(x, [0, 0, 1, 1]), tf.math.segment_min(x, [0, 0, 1, 1]), tf.math.unsorted_segment_max(x, [1, 0, 1, 0], 2)


def bincount():
    return tf.math.bincount([1, 1, 3, 0]), tf.math.bincount([1, 2], minlength=5), tf.math.bincount([0, 1, 1], weights=[1.0, 2.0, 3.0])


def confusion_matrix():
    return tf.math.confusion_matrix([1, 2, 4], [2, 2, 4]), tf.math.confusion_matrix([0, 1], [1, 1], num_classes=3)


def histogram_fixed_width():
    return tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)


def l2_normalize():
    return tf.math.l2_normalize([3.0, 4.0]), tf.math.l2_normalize([[3.0, 4.0], [0.0, 2.0]], axis=1)


def zero_fraction():
    return tf.math.zero_fraction([0.0, 1.0, 0.0, 2.0])


def polyval():
    return tf.math.polyval([tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)], tf.constant([0.0, 2.0]))


def nextafter_free_lerp():
    a, b = tf.constant([0.0, 1.0]), tf.constant([2.0, 3.0])
    return a + (b - a) * 0.25


def float64_is_kept():
    x = tf.constant([1.0, 2.0], tf.float64)
    return tf.exp(x), tf.reduce_mean(x), x * 0.1, tf.nn.softmax(x)


def float16_is_kept():
    x = tf.constant([1.0, 2.0], tf.float16)
    return x * 2, tf.reduce_sum(x), tf.nn.relu(x)


def exp_of_ints_is_an_error():
    return tf.exp(tf.constant([1, 2]))


def lists_are_converted():
    return tf.add([1, 2], [3, 4]), tf.multiply([1.0, 2.0], 3.0), tf.square([1, 2]), tf.exp([0.0, 1.0])


def numpy_float64_and_float32():
    return tf.add(np.array([1.0]), np.array([2.0])), tf.multiply(tf.constant([1.0]), np.float32(2))


def is_non_decreasing():
    return tf.math.is_non_decreasing([1, 1, 2]), tf.math.is_strictly_increasing([1, 1, 2])


def special_bessel_free_sinc():
    x = tf.constant([0.5, 1.0])
    return tf.sin(np.pi * x) / (np.pi * x), tf.math.softsign(x)


def ndtri_free_normal_cdf():
    x = tf.constant([-1.0, 0.0, 1.0])
    return 0.5 * (1.0 + tf.math.erf(x / tf.sqrt(2.0)))
