# Control flow as functions: cond, case, while_loop, scan, maps, TensorArray.


def cond():
    x, y = tf.constant(2), tf.constant(5)
    return tf.cond(x < y, lambda: x + y, lambda: x - y), tf.cond(x > y, true_fn=lambda: x, false_fn=lambda: y)


def cond_of_structures():
    return tf.cond(tf.constant(True), lambda: (tf.constant(1), [tf.constant(2.0)]), lambda: (tf.constant(3), [tf.constant(4.0)]))


def cond_in_a_function():
    @tf.function
    def f(x):
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: tf.zeros_like(x))

    return f(tf.constant([1.0, 2.0])), f(tf.constant([-1.0, -2.0]))


def cond_of_a_python_bool():
    return tf.cond(True, lambda: 1, lambda: 2)


def cond_with_side_effects():
    v = tf.Variable(0)

    @tf.function
    def f(p):
        tf.cond(p, lambda: v.assign_add(1), lambda: v.assign_sub(10))
        return v.read_value()

    return f(tf.constant(True)), f(tf.constant(False))


def case():
    x = tf.constant(3)
    return tf.case([(x < 2, lambda: tf.constant(1)), (x < 5, lambda: tf.constant(2))], default=lambda: tf.constant(3))


def case_default():
    return tf.case([(tf.constant(False), lambda: tf.constant(1.0))], default=lambda: tf.constant(9.0))


def case_exclusive():
    x = tf.constant(3)
    return tf.case([(x < 2, lambda: tf.constant(1)), (x >= 2, lambda: tf.constant(2))], exclusive=True)


def switch_case():
    branches = [lambda: tf.constant(10), lambda: tf.constant(20)]
    return tf.switch_case(tf.constant(1), branches), tf.switch_case(tf.constant(0), branches), tf.switch_case(tf.constant(7), branches, default=lambda: tf.constant(-1))


def switch_case_of_a_dict():
    return tf.switch_case(tf.constant(1), {0: lambda: tf.constant(0), 1: lambda: tf.constant(22)}, default=lambda: tf.constant(-1))


def switch_case_in_a_function():
    @tf.function
    def f(i, x):
        return tf.switch_case(i, [lambda: x, lambda: x * 2.0, lambda: x * 3.0])

    return f(tf.constant(0), tf.constant(1.5)), f(tf.constant(2), tf.constant(1.5)), f(tf.constant(9), tf.constant(1.5))


def while_loop():
    return tf.while_loop(lambda i: i < 10, lambda i: [i + 1], [tf.constant(0)])


def while_loop_of_two():
    i, x = tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2.0), (tf.constant(0), tf.constant([1.0, 2.0])))
    return i, x


def while_loop_of_structures():
    out = tf.while_loop(
        lambda i, s: i < 3,
        lambda i, s: (i + 1, {"a": s["a"] + i, "b": [s["b"][0] * 2]}),
        (tf.constant(0), {"a": tf.constant(0), "b": [tf.constant(1)]}),
    )
    return out[0], out[1]["a"], out[1]["b"][0]


def while_loop_options():
    return tf.while_loop(
        lambda i: True, lambda i: [i + 1], [tf.constant(0)], maximum_iterations=7, parallel_iterations=4, swap_memory=True
    )


def while_loop_shape_invariants():
    i, x = tf.while_loop(
        lambda i, x: i < 3,
        lambda i, x: (i + 1, tf.concat([x, [tf.cast(i, tf.float32)]], 0)),
        (tf.constant(0), tf.constant([9.0])),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
    )
    return i, x


def while_loop_in_a_function():
    @tf.function
    def f(n, x):
        _, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(y)), (0, x))
        return y

    return f(tf.constant(5), tf.constant([1.0, 2.0]))


def while_loop_of_numbers():
    return tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + 0.5), (0, 0.0))


def while_loop_dtype_changes_is_an_error():
    @tf.function
    def f():
        return tf.while_loop(lambda i: i < 3, lambda i: [tf.cast(i, tf.float32) + 1.0], [tf.constant(0)])

    return f()


def scan():
    x = tf.constant([1, 2, 3, 4])
    return tf.scan(lambda a, e: a + e, x), tf.scan(lambda a, e: a + e, x, initializer=10)


def scan_reverse():
    x = tf.constant([1.0, 2.0, 3.0])
    return tf.scan(lambda a, e: a * 0.5 + e, x, initializer=tf.constant(0.0), reverse=True)


def scan_of_structures():
    a, b = tf.constant([1, 2, 3]), tf.constant([4, 5, 6])
    return tf.scan(lambda s, e: (s[0] + e[0], s[1] * e[1]), (a, b), initializer=(tf.constant(0), tf.constant(1)))


def scan_fibonacci():
    return tf.scan(lambda a, _: (a[1], a[0] + a[1]), tf.range(6), initializer=(tf.constant(0), tf.constant(1)))


def scan_in_a_function():
    @tf.function
    def f(w, xs):
        return tf.scan(lambda h, x: tf.tanh(h * w + x), xs, initializer=tf.zeros([2]))

    return f(tf.constant([0.5, 2.0]), tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))


def foldl():
    x = tf.constant([1, 2, 3, 4])
    return tf.foldl(lambda a, e: a + e, x), tf.foldl(lambda a, e: a * 10 + e, x, initializer=0)


def foldr():
    return tf.foldr(lambda a, e: a * 10 + e, tf.constant([1, 2, 3]), initializer=0), tf.foldr(lambda a, e: a - e, tf.constant([1, 2, 3]))


def map_fn():
    x = tf.constant([1.0, 2.0, 3.0])
    return tf.map_fn(lambda e: e * e, x), tf.map_fn(tf.math.exp, x, parallel_iterations=2, swap_memory=False)


def map_fn_signature():
    x = tf.constant([1, 2, 3])
    y = tf.map_fn(lambda e: tf.cast(e, tf.float32) / 2.0, x, fn_output_signature=tf.float32)
    z = tf.map_fn(lambda e: (e, e > 1), x, fn_output_signature=(tf.int32, tf.bool))
    return y, z


def map_fn_spec():
    return tf.map_fn(lambda e: tf.stack([e, e + 1]), tf.constant([1, 2]), fn_output_signature=tf.TensorSpec([2], tf.int32))


def map_fn_of_structures():
    a, b = tf.constant([1, 2]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return tf.map_fn(lambda e: tf.cast(e[0], tf.float32) * e[1], (a, b), fn_output_signature=tf.float32), tf.map_fn(
        lambda e: {"y": e["x"] + 1}, {"x": a}, fn_output_signature={"y": tf.int32}
    )


def map_fn_in_a_function():
    @tf.function
    def f(xs):
        return tf.map_fn(lambda x: tf.reduce_max(x) - x, xs)

    return f(tf.constant([[1.0, 5.0], [7.0, 2.0]]))


def map_fn_of_another_dtype_is_an_error():
    return tf.map_fn(lambda e: tf.cast(e, tf.float32), tf.constant([1, 2]))


def vectorized_map():
    x = tf.reshape(tf.range(12.0), [3, 2, 2])
    return tf.vectorized_map(lambda m: tf.matmul(m, m), x), tf.vectorized_map(lambda e: e[0] + e[1], (tf.ones([3]), tf.range(3.0)))


def vectorized_map_in_a_function():
    @tf.function
    def f(xs):
        return tf.vectorized_map(lambda x: tf.reduce_sum(x) * x, xs)

    return f(tf.constant([[1.0, 2.0], [3.0, 4.0]]))


def tensor_array():
    ta = tf.TensorArray(tf.float32, size=3)
    for i in range(3):
        ta = ta.write(i, float(i * i))
    return ta.stack(), ta.size(), ta.dtype


def tensor_array_dynamic():
    ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    for i in range(4):
        ta = ta.write(i, [i, i + 1])
    return ta.stack(), ta.size()


def tensor_array_dynamic_in_a_traced_loop():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def f(x):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(tf.shape(x)[0]):
            ta = ta.write(i, tf.reduce_sum(x[i]))
        return ta.stack()

    return f(tf.ones([4, 3])), f(tf.ones([2, 3])), f.experimental_get_tracing_count()


def tensor_array_dynamic_in_nested_loops():
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(3):
            for j in tf.range(2):
                ta = ta.write(i * 2 + j, x[i] * tf.cast(j, tf.float32))
        return ta.stack()

    return f(tf.constant([1.0, 2.0, 3.0]))


def tensor_array_dynamic_written_in_branches():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(tf.shape(x)[0]):
            if x[i] > 1.5:
                ta = ta.write(i, x[i])
            else:
                ta = ta.write(i, -x[i])
        return ta.stack()

    return f(tf.constant([1.0, 2.0, 3.0])), f(tf.constant([1.0])), f.experimental_get_tracing_count()


def tensor_array_dynamic_appended_to():
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(3):
            ta = ta.write(ta.size(), x[i])
        return ta.stack(), ta.size(), ta.read(1)

    return f(tf.constant([1.0, 2.0, 3.0]))


def tensor_array_dynamic_with_a_first_element():
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=2, dynamic_size=True).write(0, x[2])
        for i in tf.range(1, 3):
            ta = ta.write(i, x[i])
        return ta.stack()

    return f(tf.constant([1.0, 2.0, 3.0]))


def tensor_array_dynamic_made_in_a_loop():
    @tf.function
    def f(x):
        total = tf.constant(0.0)
        for k in tf.range(4):
            ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in tf.range(3):
                ta = ta.write(i, x[i] * tf.cast(k, tf.float32))
            total += tf.reduce_sum(ta.stack())
        return total

    return f(tf.constant([1.0, 2.0, 3.0]))


def tensor_array_dynamic_gradient():
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in tf.range(3):
                ta = ta.write(i, v[i] * v[i])
            s = tf.reduce_sum(ta.stack() * tf.constant([1.0, 10.0, 100.0]))
        return tf.convert_to_tensor(tape.gradient(s, v))

    return f()


def tensor_array_of_an_open_size():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def f(x):
        ta = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
        for i in tf.range(tf.shape(x)[0]):
            ta = ta.write(i, x[i] * 2.0)
        return ta.stack(), ta.size()

    return f(tf.ones([4, 3])), f(tf.ones([2, 3])), f.experimental_get_tracing_count()


def tensor_array_read_twice():
    ta = tf.TensorArray(tf.float32, size=2, clear_after_read=False)
    ta = ta.write(0, 1.0).write(1, 2.0)
    return ta.read(0), ta.read(0), ta.read(1)


def tensor_array_unstack():
    ta = tf.TensorArray(tf.float32, size=3).unstack([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return ta.read(2), ta.size()


def tensor_array_concat():
    ta = tf.TensorArray(tf.int32, size=2, infer_shape=False)
    ta = ta.write(0, [1, 2]).write(1, [3])
    return ta.concat()


def tensor_array_gather_scatter():
    ta = tf.TensorArray(tf.float32, size=3).scatter([0, 2, 1], tf.constant([1.0, 3.0, 2.0]))
    return ta.gather([2, 0]), ta.stack()


def tensor_array_in_a_while_loop():
    @tf.function
    def f(x, n):
        ta = tf.TensorArray(tf.float32, size=n, element_shape=[2])
        _, _, ta = tf.while_loop(lambda i, x, ta: i < n, lambda i, x, ta: (i + 1, x * 2.0, ta.write(i, x)), (0, x, ta))
        return ta.stack()

    return f(tf.constant([1.0, 3.0]), tf.constant(3))


def tensor_array_of_a_known_size_in_a_while_loop():
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=3)
        _, _, ta = tf.while_loop(lambda i, x, ta: i < 3, lambda i, x, ta: (i + 1, x * 2.0, ta.write(i, x)), (0, x, ta))
        return ta.stack()

    return f(tf.constant([1.0, 3.0]))


def tensor_array_of_a_shape_in_a_for_loop():
    @tf.function
    def f(xs):
        ta = tf.TensorArray(tf.float32, size=tf.shape(xs)[0])
        for i in tf.range(tf.shape(xs)[0]):
            ta = ta.write(i, xs[i] * 2.0)
        return ta.stack(), ta.read(0)

    return f(tf.constant([1.0, 3.0]))


def tensor_array_of_another_shape_is_an_error():
    ta = tf.TensorArray(tf.float32, size=2)
    ta = ta.write(0, [1.0, 2.0])
    return ta.write(1, [1.0])


def tensor_array_of_another_dtype_is_an_error():
    return tf.TensorArray(tf.float32, size=2).write(0, tf.constant(1))


def tensor_array_out_of_range_is_an_error():
    return tf.TensorArray(tf.float32, size=2).write(5, 1.0)


def rnn_by_hand():
    w = tf.constant([[0.5, -0.2], [0.1, 0.3]])

    @tf.function
    def run(xs):
        h = tf.zeros([1, 2])
        out = tf.TensorArray(tf.float32, size=tf.shape(xs)[0])
        for t in tf.range(tf.shape(xs)[0]):
            h = tf.tanh(tf.matmul(h, w) + xs[t])
            out = out.write(t, h)
        return out.stack(), h

    return run(tf.reshape(tf.range(6.0), [3, 1, 2]) / 6)


def sieve_in_a_loop():
    @tf.function
    def primes(n):
        is_prime = tf.ones([20], tf.bool)
        i = tf.constant(2)
        while i < n:
            hits = tf.logical_and(tf.range(20) % i == 0, tf.range(20) > i)
            is_prime = tf.logical_and(is_prime, tf.logical_not(hits))
            i += 1
        return is_prime

    return primes(tf.constant(20))


def run_length_by_while():
    x = tf.constant([3, 1, 4, 1, 5])
    i, best = tf.while_loop(lambda i, b: i < 5, lambda i, b: (i + 1, tf.maximum(b, x[i])), (0, -1))
    return i, best
