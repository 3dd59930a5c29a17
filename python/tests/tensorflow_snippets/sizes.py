# Sizes that depend on values, in functions.


def _run(f, *args):
    return tf.function(f)(*args)


def mask():
    return _run(lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 0)), tf.constant([1.0, -1.0, 2.0]))


def mask_whole():
    return _run(lambda x: tf.boolean_mask(x, x > 0), tf.constant([1.0, -1.0, 2.0]))


def mask_by_subscript():
    return _run(lambda x: x[x > 0] * 2, tf.constant([1.0, -1.0, 2.0]))


def where_positions():
    return _run(lambda x: tf.where(x > 0), tf.constant([1.0, -1.0, 2.0]))


def where_then_gather():
    return _run(lambda x: tf.gather_nd(x, tf.where(x > 0)), tf.constant([1.0, -1.0, 2.0]))


def unique_in_a_function():
    return _run(lambda x: tf.unique(x), tf.constant([3, 1, 3]))


def partition():
    return _run(lambda x: tf.dynamic_partition(x, tf.cast(x > 0, tf.int32), 2), tf.constant([1.0, -1.0, 2.0]))


def repeat_by_counts():
    return _run(lambda x, n: tf.repeat(x, n), tf.constant([1.0, -1.0, 2.0]), tf.constant([2, 0, 1]))


def range_of_a_tensor():
    return _run(lambda n: tf.range(n) * 2, tf.constant(4))


def range_from_to():
    return _run(lambda a, b: tf.reduce_sum(tf.range(a, b)), tf.constant(2), tf.constant(6))


def zeros_of_a_tensor():
    return _run(lambda n: tf.zeros([n, 2]) + 1.0, tf.constant(3))


def fill_of_a_tensor():
    return _run(lambda n: tf.fill([n], 2.5), tf.constant(3))


def tile_by_a_tensor():
    return _run(lambda x, n: tf.tile(x, [n, 1]), tf.ones([1, 2]), tf.constant(3))


def reshape_by_a_tensor():
    return _run(lambda x, n: tf.reshape(x, [n, -1]), tf.range(6), tf.constant(3))


def reshape_by_a_shape_tensor():
    return _run(lambda x, n: tf.reshape(x, n), tf.range(6), tf.constant([3, 2]))


def one_hot_depth():
    return _run(lambda x, n: tf.one_hot(x, n), tf.constant([0, 2]), tf.constant(3))


def sequence_mask_without_a_length():
    return _run(lambda n: tf.sequence_mask(n), tf.constant([1, 3, 2]))


def sequence_mask_of_the_longest():
    return _run(lambda n: tf.sequence_mask(n, tf.reduce_max(n), dtype=tf.float32), tf.constant([1, 3, 2]))


def pad_by_a_tensor():
    return _run(lambda x, n: tf.pad(x, [[0, n]]), tf.ones([2]), tf.constant(3))


def slice_by_tensors():
    return _run(lambda x, b, n: tf.slice(x, [b], [n]), tf.range(6), tf.constant(1), tf.constant(3))


def slice_of_known_size():
    return _run(lambda x, b: tf.slice(x, [b], [3]), tf.range(6), tf.constant(1))


def slice_vectors():
    return _run(lambda x, b, n: tf.slice(x, b, n), tf.reshape(tf.range(6), [2, 3]), tf.constant([0, 1]), tf.constant([2, 2]))


def subscript_to_a_tensor():
    return _run(lambda x, n: x[:n], tf.range(6), tf.constant(4))


def subscript_from_a_tensor():
    return _run(lambda x, n: x[n:], tf.range(6), tf.constant(4))


def subscript_of_two():
    return _run(lambda x, n: x[:, :n, ...], tf.reshape(tf.range(6), [2, 3]), tf.constant(2))


def eye_of_a_tensor():
    return _run(lambda n: tf.eye(n), tf.constant(3))


def linspace_of_a_tensor():
    return _run(lambda n: tf.linspace(0.0, 1.0, n), tf.constant(3))


def normal_of_a_tensor():
    return _run(lambda n: tf.shape(tf.random.normal([n, 2])), tf.constant(3))


def broadcast_by_a_tensor():
    return _run(lambda x, n: tf.broadcast_to(x, [n, 2]), tf.ones([2]), tf.constant(3))


def split_sizes():
    return _run(lambda x: tf.split(x, [2, -1]), tf.range(6))


def top_k_of_a_tensor():
    return _run(lambda x, k: tf.math.top_k(x, k).values, tf.constant([3.0, 1.0, 2.0]), tf.constant(2))


def concat_in_a_loop():
    @tf.function
    def f(n):
        out = tf.zeros([0, 2])
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(out, tf.TensorShape([None, 2]))])
            out = tf.concat([out, tf.ones([1, 2]) * tf.cast(i, tf.float32)], 0)
        return out
    return f(tf.constant(3))


def batch_of_a_signature():
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])
    def f(x):
        n = tf.shape(x)[1]
        half = n // 2
        return x[:, :half], x[:, half:], tf.zeros([n, half]), tf.reshape(x, [-1, half, 2])
    return f(tf.ones([3, 4])), f(tf.ones([2, 6]))


def value_in_a_python_function():
    @tf.function
    def f(x):
        return x * float(2) + len(x.shape)
    return f(tf.ones([2]))


def gradient_through_a_mask():
    @tf.function
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = tf.reduce_sum(tf.boolean_mask(x, x > 0) ** 2)
        return t.gradient(y, x)
    return f(tf.constant([1.0, -1.0, 2.0]))


def gradient_through_a_slice_of_a_traced_size():
    @tf.function
    def f(x, n):
        with tf.GradientTape() as t:
            t.watch(x)
            y = tf.reduce_sum(x[:n] ** 2)
        return t.gradient(y, x)
    return f(tf.constant([1.0, -1.0, 2.0]), tf.constant(2))


def map_fn_of_ranges_padded():
    @tf.function
    def f(n):
        return tf.map_fn(lambda k: tf.reduce_sum(tf.range(k)), n)
    return f(tf.constant([1, 3, 5]))


def window_that_slides():
    @tf.function
    def f(x, w):
        out = tf.TensorArray(tf.float32, size=4)
        for i in tf.range(4):
            out = out.write(i, tf.reduce_mean(x[i:i + w]))
        return out.stack()
    return f(tf.range(6, dtype=tf.float32), 3), f(tf.range(6, dtype=tf.float32), tf.constant(2))


def minibatches_in_a_loop():
    x, y = tf.reshape(tf.range(24, dtype=tf.float32), [12, 2]), tf.range(12, dtype=tf.float32)
    w = tf.Variable([0.1, 0.2])

    @tf.function
    def epoch():
        for i in tf.range(0, 12, 4):
            bx, by = x[i:i + 4], y[i:i + 4]
            with tf.GradientTape() as t:
                loss = tf.reduce_mean((tf.linalg.matvec(bx, w) - by) ** 2)
            w.assign_sub(0.001 * t.gradient(loss, w))
        return loss
    return epoch(), epoch(), w
