# tf.debugging, tf.print, tf.Assert, tf.config.


def check_numerics():
    return tf.debugging.check_numerics([1.0, 2.0], "x")


def check_numerics_of_nan_is_an_error():
    return tf.debugging.check_numerics([1.0, np.nan], "x has gone wrong")


def assert_equal():
    return tf.debugging.assert_equal([1, 2], [1, 2]), tf.debugging.assert_none_equal([1], [2])


def assert_equal_that_fails_is_an_error():
    return tf.debugging.assert_equal([1, 2], [1, 3], message="they differ")


def assert_comparisons():
    tf.debugging.assert_less([1], [2])
    tf.debugging.assert_less_equal([2], [2])
    tf.debugging.assert_greater([3], [2])
    tf.debugging.assert_greater_equal([2], [2])
    return True


def assert_less_that_fails_is_an_error():
    return tf.debugging.assert_less([3], [2])


def assert_signs():
    tf.debugging.assert_positive([1.0])
    tf.debugging.assert_non_negative([0.0])
    tf.debugging.assert_negative([-1.0])
    tf.debugging.assert_non_positive([0.0])
    return True


def assert_positive_that_fails_is_an_error():
    return tf.debugging.assert_positive([0.0])


def assert_near():
    return tf.debugging.assert_near([1.0], [1.0000001])


def assert_near_that_fails_is_an_error():
    return tf.debugging.assert_near([1.0], [1.1])


def assert_ranks():
    x = tf.zeros([2, 3])
    tf.debugging.assert_rank(x, 2)
    tf.debugging.assert_rank_at_least(x, 1)
    tf.debugging.assert_rank_in(x, [1, 2])
    tf.debugging.assert_scalar(tf.constant(1))
    return True


def assert_rank_that_fails_is_an_error():
    return tf.debugging.assert_rank(tf.zeros([2, 3]), 3)


def assert_shapes():
    tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("n", 3)), (tf.zeros([2]), ("n",))])
    return True


def assert_shapes_that_fail_is_an_error():
    return tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("n", 3)), (tf.zeros([4]), ("n",))])


def assert_types():
    tf.debugging.assert_type(tf.constant(1), tf.int32)
    tf.debugging.assert_integer(tf.constant(1))
    tf.debugging.assert_same_float_dtype([tf.constant(1.0), tf.constant(2.0)])
    return tf.debugging.is_numeric_tensor(tf.constant(1.0))


def assert_type_that_fails_is_an_error():
    return tf.debugging.assert_type(tf.constant(1), tf.float32)


def assert_all_finite():
    return tf.debugging.assert_all_finite([1.0, 2.0], "x")


def assert_all_finite_that_fails_is_an_error():
    return tf.debugging.assert_all_finite([1.0, np.inf], "x")


def assert_proper_iterable():
    return tf.debugging.assert_proper_iterable([1, 2])


def Assert_():
    return tf.Assert(tf.constant(True), ["never"]), tf.debugging.Assert(True, [1])


def Assert_that_fails_is_an_error():
    return tf.Assert(tf.reduce_all(tf.constant([1, 2]) > 1), ["values:", tf.constant([1, 2])])


def assert_in_a_function_that_fails_is_an_error():
    @tf.function
    def f(x):
        tf.debugging.assert_less(x, 10.0)
        return x * 2.0

    f(tf.constant(1.0))
    return f(tf.constant(11.0))


def print_():
    tf.print("loss", tf.constant(1.5), [1, 2], {"a": tf.constant([1, 2])})
    return tf.print("to stdout", output_stream=None or "file://print_output.txt")


def print_in_a_function():
    @tf.function
    def f(x):
        tf.print("x is", x)
        return x

    return f(tf.constant([1, 2]))


def print_to_a_file():
    tf.print("x:", tf.constant([1.0, 2.5]), tf.constant(3), "end", output_stream="file://printed.txt")
    tf.print("a", "b", sep=", ", end="!\n", output_stream="file://printed.txt")
    return open("printed.txt").read()


def print_summarize():
    tf.print(tf.range(10), tf.range(4), output_stream="file://summarized.txt")
    tf.print(tf.range(10), summarize=-1, output_stream="file://summarized.txt")
    tf.print(tf.reshape(tf.range(6.0), [2, 3]), True, None, output_stream="file://summarized.txt")
    return open("summarized.txt").read()


def memory_info_keys():
    # The CPU of TensorFlow has no memory info; the call with another device is compared by its keys.
    try:
        info = tf.config.experimental.get_memory_info("CPU:0")
    except ValueError:
        info = {"current": 0, "peak": 0}
    return sorted(info)


def reset_memory_stats():
    try:
        tf.config.experimental.reset_memory_stats("CPU:0")
    except ValueError:
        pass
    return True


def devices():
    return len(tf.config.list_physical_devices("GPU")), len(tf.config.list_physical_devices("CPU")), tf.config.list_logical_devices("GPU")


def threads():
    return tf.config.threading.get_inter_op_parallelism_threads()


def errors_are_classes():
    return issubclass(tf.errors.InvalidArgumentError, tf.errors.OpError), issubclass(tf.errors.OutOfRangeError, Exception)


def invalid_argument_can_be_caught():
    try:
        tf.reshape(tf.range(6), [4])
    except tf.errors.InvalidArgumentError:
        return "caught"


def numeric_of_dtype():
    return tf.debugging.is_numeric_tensor(tf.constant(True)), tf.debugging.is_numeric_tensor("x")


def version():
    return isinstance(tf.__version__, str), tf.__version__.split(".")[0]


def get_logger_levels():
    tf.get_logger().setLevel("ERROR")
    return tf.executing_eagerly()


def debugging_enable_check_numerics():
    tf.debugging.enable_check_numerics()
    y = tf.constant(1.0) / 2.0
    tf.debugging.disable_check_numerics()
    return y
