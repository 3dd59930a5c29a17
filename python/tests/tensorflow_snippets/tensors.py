# Making tensors, their dtypes and shapes, and arithmetic on them.


def constant_of_ints():
    x = tf.constant([[1, 2], [3, 4]])
    return x, x.dtype.name, x.shape, x.shape.as_list(), x.ndim


def constant_of_floats():
    return tf.constant(1.5), tf.constant([1.0, 2]), tf.constant([True, False])


def constant_with_dtype():
    return tf.constant([1, 2], dtype=tf.float32), tf.constant([1, 2], tf.int64), tf.constant(3, dtype="float64")


def constant_with_shape():
    return tf.constant(7, shape=[2, 3]), tf.constant([1, 2, 3, 4], shape=(2, 2))


def constant_of_numpy():
    return tf.constant(np.array([1.0, 2.0])), tf.constant(np.array([1, 2])), tf.constant(np.float32(3))


def constant_of_float_as_int_is_an_error():
    return tf.constant([1.5], dtype=tf.int32)


def constant_ragged_is_an_error():
    return tf.constant([[1, 2], [3]])


def constant_of_a_large_int():
    return tf.constant(2**40, dtype=tf.int64), tf.constant(255, dtype=tf.uint8)


def constant_of_ints_that_need_64_bits():
    return tf.constant(2**31), tf.constant([1, -(2**40)])


def convert_to_tensor():
    x = tf.constant([1.0])
    return tf.convert_to_tensor([1, 2]), tf.convert_to_tensor(np.ones((2, 2), np.float32)), tf.convert_to_tensor(x)


def convert_to_tensor_dtype_hint():
    return tf.convert_to_tensor([1, 2], dtype=tf.float32), tf.convert_to_tensor([1, 2], dtype_hint=tf.float64)


def convert_to_tensor_of_another_dtype_is_an_error():
    return tf.convert_to_tensor(tf.constant([1.0]), dtype=tf.int32)


def convert_a_list_of_tensors():
    return tf.convert_to_tensor([tf.constant(1.0), tf.constant(2.0)])


def is_tensor():
    return tf.is_tensor(tf.constant(1)), tf.is_tensor([1]), tf.is_tensor(np.ones(2)), tf.is_tensor(tf.Variable(1.0))


def isinstance_of_tensor():
    return isinstance(tf.constant(1), tf.Tensor), isinstance(1, tf.Tensor)


def zeros_and_ones():
    return tf.zeros([2, 3]), tf.ones((2,), tf.int32), tf.zeros([], tf.float64), tf.ones([1], dtype=tf.bool)


def zeros_like_and_ones_like():
    x = tf.constant([[1, 2]])
    return tf.zeros_like(x), tf.ones_like(x), tf.zeros_like(x, dtype=tf.float32), tf.ones_like([1.0, 2.0])


def fill():
    return tf.fill([2, 3], 7.0), tf.fill([2], 9), tf.fill([], True)


def eye():
    return tf.eye(3), tf.eye(2, 3), tf.eye(2, dtype=tf.int32), tf.eye(2, batch_shape=[3])


def linspace():
    return tf.linspace(0.0, 1.0, 5), tf.linspace(10.0, 12.0, 3, name="x"), tf.linspace(2.0, 5.0, 1)


def range_forms():
    return tf.range(5), tf.range(2, 8), tf.range(10, 0, -3), tf.range(0.0, 1.0, 0.25), tf.range(3.0)


def range_with_dtype():
    return tf.range(4, dtype=tf.float32), tf.range(tf.constant(3)), tf.range(0, 6, 2, dtype=tf.int64)


def range_limit_keyword():
    return tf.range(start=1, limit=4), tf.range(1, limit=7, delta=2)


def identity():
    x = tf.constant([1, 2])
    return tf.identity(x), tf.identity(tf.Variable([1.0, 2.0])), tf.identity([1.0])


def identity_n():
    return tf.identity_n([tf.constant(1), tf.constant([2.0])])


def cast_between_kinds():
    x = tf.constant([1.8, -1.8, 0.0])
    return tf.cast(x, tf.int32), tf.cast(x, tf.bool), tf.cast([True, False], tf.float32), tf.cast(x, "float64")


def cast_half():
    return tf.cast(tf.cast([1.0, 0.1], tf.float16), tf.float32), tf.cast(tf.cast([1.0, 0.1], tf.bfloat16), tf.float32)


def saturate_cast():
    return tf.saturate_cast(tf.constant([-5.0, 100.0, 300.0]), tf.uint8), tf.saturate_cast([1, 2], tf.float32)


def numpy_of_a_tensor():
    x = tf.constant([[1.0, 2.0]])
    return x.numpy(), np.asarray(x), tf.constant(3).numpy(), np.sum(x)


def numbers_from_tensors():
    return float(tf.constant(2.5)), int(tf.constant(3)), bool(tf.constant(True)), len(tf.constant([1, 2, 3]))


def truth_of_a_tensor():
    x = tf.constant(0.0)
    return 1 if x else 2, not tf.constant(True), bool(tf.constant([3]))


def truth_of_many_is_an_error():
    return bool(tf.constant([True, False]))


def iterate():
    return [x for x in tf.constant([[1, 2], [3, 4]])]


def iterate_a_scalar_is_an_error():
    return [x for x in tf.constant(1)]


def membership():
    return [int(x) for x in tf.constant([3, 1])], 3 in [int(x) for x in tf.constant([3, 1])]


def arithmetic():
    x, y = tf.constant([6.0, 7.0]), tf.constant([2.0, 4.0])
    return x + y, x - y, x * y, x / y, x // y, x % y, x**y, -x, abs(-x)


def arithmetic_of_ints():
    x, y = tf.constant([7, -7]), tf.constant([2, 2])
    return x + y, x * y, x / y, x // y, x % y, x**2, -x


def arithmetic_with_numbers():
    x = tf.constant([1.0, 2.0])
    return x + 1, 1 + x, 2 - x, 3 * x, 1 / x, 2**x, x - 0.5, 5 // x, 5 % x


def arithmetic_with_numpy_and_lists():
    x = tf.constant([1.0, 2.0])
    return x + np.array([1.0, 2.0], np.float32), x * [3.0, 4.0], x - np.float32(1)


def numpy_on_the_left():
    return np.array([1.0, 2.0], np.float32) * tf.constant([3.0, 4.0])


def int_and_float_mixed_is_an_error():
    return tf.constant([1]) + tf.constant([1.0])


def float32_and_float64_mixed_is_an_error():
    return tf.constant([1.0]) * tf.constant([1.0], tf.float64)


def int_and_a_python_float_mixed_is_an_error():
    return tf.constant([1]) + 0.5


def int32_and_int64_mixed_is_an_error():
    return tf.constant([1]) - tf.constant([1], tf.int64)


def float_and_a_python_int_mix():
    return tf.constant([1.5]) + 1, tf.constant([1.5], tf.float16) * 2, tf.constant(1, tf.int64) + 1


def divide_two_ints():
    return tf.constant(7) / tf.constant(2), tf.constant(7, tf.int64) / 2, 7 / tf.constant(2)


def comparison():
    x, y = tf.constant([1, 2, 3]), tf.constant([3, 2, 1])
    return x < y, x <= y, x > y, x >= y, x == y, x != y, x == 2


def equal_of_another_shape():
    return tf.constant([1, 2]) == tf.constant([1, 2, 3]), tf.constant([1, 2]) != tf.constant([1, 2, 3])


def equal_with_none():
    return tf.constant([1]) == None, tf.constant([1]) != None  # noqa: E711


def logical_operators():
    a, b = tf.constant([True, True, False]), tf.constant([True, False, False])
    return a & b, a | b, a ^ b, ~a


def bit_operators():
    a, b = tf.constant([6, 5]), tf.constant([3, 1])
    return a & b, a | b, a ^ b, ~a


def matmul_operator():
    return tf.constant([[1.0, 2.0]]) @ tf.constant([[3.0], [4.0]])


def augmented_assignment():
    x = tf.constant([1.0])
    y = x
    x += 2
    x *= 3.0
    return x, y


def broadcast():
    x, y = tf.constant([[1.0], [2.0]]), tf.constant([10.0, 20.0, 30.0])
    return x + y, tf.broadcast_to(y, [2, 3]), tf.broadcast_static_shape(x.shape, y.shape)


def broadcast_of_wrong_shapes_is_an_error():
    return tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])


def assignment_to_an_item_is_an_error():
    x = tf.constant([1, 2])
    x[0] = 5
    return x


def hash_of_a_tensor_is_an_error():
    return {tf.constant(1): 2}


def reference_as_key():
    x = tf.constant(1)
    return {x.ref(): 2}[x.ref()], x.ref().deref()


def shape_size_rank():
    x = tf.zeros([2, 3, 4])
    return tf.shape(x), tf.size(x), tf.rank(x), tf.shape(x, out_type=tf.int64), tf.shape_n([x, [1, 2]])


def tensor_shape():
    s = tf.TensorShape([2, None, 3])
    return s, s.rank, s.ndims, s[0], s[1], s.as_list(), s.is_fully_defined(), s.num_elements(), len(s)


def tensor_shape_relations():
    s = tf.TensorShape([2, None])
    return s.is_compatible_with([2, 3]), s.is_compatible_with([3, 3]), s.merge_with([2, 5]), s.concatenate([4]), s[:1]


def tensor_shape_equality():
    x = tf.zeros([2, 3])
    return x.shape == [2, 3], x.shape == (2, 3), x.shape == tf.TensorShape([2, 3]), x.shape[-1], tuple(x.shape)


def tensor_shape_unknown():
    s = tf.TensorShape(None)
    return s.rank, s.is_compatible_with([1, 2]), s.is_fully_defined(), str(s), str(tf.TensorShape([1, None]))


def tensor_shape_incompatible_is_an_error():
    return tf.TensorShape([2]).assert_is_compatible_with([3])


def tensor_spec():
    s = tf.TensorSpec([None, 3], tf.float32, name="x")
    return s.shape, s.dtype, s.name, s.is_compatible_with(tf.zeros([4, 3])), s.is_compatible_with(tf.zeros([4, 2]))


def tensor_spec_from_tensor():
    s = tf.TensorSpec.from_tensor(tf.zeros([2], tf.int64))
    return s.shape, s.dtype, s == tf.TensorSpec([2], tf.int64), tf.type_spec_from_value(tf.ones([2])).shape


def dtypes():
    t = tf.float32
    return t.name, t.is_floating, t.is_integer, t.size, t.max, t.as_numpy_dtype == np.float32, t == "float32", t == np.float32


def dtypes_by_name():
    return tf.as_dtype("int32"), tf.dtypes.as_dtype(np.float64), tf.dtypes.cast([1], tf.float32), tf.int64.max, tf.uint8.max


def dtype_of_tensor():
    return tf.constant(1).dtype == tf.int32, tf.constant(1.0).dtype is tf.float32, tf.bool.is_bool, tf.int32 == tf.int64


def tensor_methods():
    x = tf.constant([[1.0, 2.0]])
    return x.get_shape(), x.ndim, x.shape.rank, x.device is not None


def tensor_set_shape():
    x = tf.constant([[1.0, 2.0]])
    x.set_shape([1, None])
    return x


def tensor_set_shape_wrong_is_an_error():
    x = tf.constant([[1.0, 2.0]])
    x.set_shape([3, None])
    return x


def text_of_a_tensor():
    return repr(tf.constant([1, 2])), str(tf.constant(1.5)), f"{tf.constant(2.0):.2f}", repr(tf.constant(True))


def text_of_dtype_and_shape():
    return repr(tf.float32), str(tf.int32), repr(tf.TensorShape([2, None])), str(tf.TensorShape([2, 3]))


def nest():
    s = {"b": [1, 2], "a": (3, {"c": 4})}
    return tf.nest.flatten(s), tf.nest.map_structure(lambda x: x + 1, s), tf.nest.pack_sequence_as(s, [1, 2, 3, 4])


def nest_of_two():
    return tf.nest.map_structure(lambda a, b: a * b, [1, (2, 3)], [4, (5, 6)]), tf.nest.is_nested([1]), tf.nest.is_nested(1)


def nest_structures_that_differ_is_an_error():
    return tf.nest.assert_same_structure([1, 2], [1, [2]])


def name_scope():
    with tf.name_scope("outer"):
        x = tf.add(1, 2, name="sum")
    with tf.device("/CPU:0"):
        y = x * 2
    return x, y


def executing_eagerly():
    @tf.function
    def f(x):
        return tf.constant(tf.executing_eagerly())

    return tf.executing_eagerly(), f(1), tf.inside_function()


def newaxis():
    return tf.constant([1, 2])[:, tf.newaxis], tf.newaxis is None
