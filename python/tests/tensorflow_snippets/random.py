# Draws differ in value by design; their shapes, dtypes, moments and repetition are compared.


def _summary(x):
    return x.dtype.name, x.shape.as_list()


def _is_near(x, value, by):
    return bool(abs(float(tf.reduce_mean(tf.cast(x, tf.float32))) - value) < by)


def normal():
    tf.random.set_seed(3)
    x = tf.random.normal([100, 100], mean=2.0, stddev=3.0)
    return _summary(x), _is_near(x, 2.0, 0.2), _is_near((x - 2.0) ** 2, 9.0, 0.5), _summary(tf.random.normal([2], dtype=tf.float64))


def uniform():
    x = tf.random.uniform([10000], minval=-1.0, maxval=3.0)
    return _summary(x), _is_near(x, 1.0, 0.1), bool(tf.reduce_all((x >= -1.0) & (x < 3.0))), _summary(tf.random.uniform([]))


def uniform_ints():
    x = tf.random.uniform([1000], 2, 5, dtype=tf.int32)
    return _summary(x), sorted(set(x.numpy().tolist()))


def uniform_ints_without_a_bound_is_an_error():
    return tf.random.uniform([3], dtype=tf.int32)


def truncated_normal():
    x = tf.random.truncated_normal([10000], mean=1.0, stddev=2.0)
    return _summary(x), bool(tf.reduce_all(tf.abs(x - 1.0) <= 4.0)), _is_near(x, 1.0, 0.15), _is_near((x - 1) ** 2, 0.774 * 4, 0.3)


def categorical():
    x = tf.random.categorical(tf.math.log([[0.2, 0.8], [0.5, 0.5]]), 4000)
    return _summary(x), bool(abs(float(tf.reduce_mean(tf.cast(x[0], tf.float32))) - 0.8) < 0.05), sorted(set(x.numpy().ravel().tolist()))


def categorical_dtype():
    return _summary(tf.random.categorical([[0.0, 0.0, 0.0]], 5, dtype=tf.int32))


def shuffle():
    x = tf.random.shuffle(tf.range(20))
    y = tf.random.shuffle(tf.reshape(tf.range(6), [3, 2]))
    return sorted(x.numpy().tolist()), _summary(y), sorted(y.numpy().tolist())


def set_seed_repeats():
    tf.random.set_seed(5)
    a = tf.random.normal([4])
    b = tf.random.normal([4])
    tf.random.set_seed(5)
    c = tf.random.normal([4])
    return bool(tf.reduce_all(a == c)), bool(tf.reduce_all(a == b))


def op_seed_repeats_after_set_seed():
    tf.random.set_seed(5)
    a = tf.random.uniform([4], seed=1)
    tf.random.set_seed(5)
    b = tf.random.uniform([4], seed=1)
    return bool(tf.reduce_all(a == b))


def stateless_normal():
    a = tf.random.stateless_normal([3], seed=[1, 2])
    b = tf.random.stateless_normal([3], seed=[1, 2])
    c = tf.random.stateless_normal([3], seed=[1, 3])
    return _summary(a), bool(tf.reduce_all(a == b)), bool(tf.reduce_all(a == c))


def stateless_uniform():
    a = tf.random.stateless_uniform([1000], seed=(7, 8), minval=2.0, maxval=4.0)
    b = tf.random.stateless_uniform([1000], seed=(7, 8), minval=0, maxval=3, dtype=tf.int32)
    return _summary(a), _is_near(a, 3.0, 0.2), _summary(b), sorted(set(b.numpy().tolist()))


def stateless_truncated_normal():
    a = tf.random.stateless_truncated_normal([1000], seed=[1, 2])
    return _summary(a), bool(tf.reduce_all(tf.abs(a) <= 2.0))


def stateless_categorical():
    a = tf.random.stateless_categorical([[0.0, 0.0]], 10, seed=[1, 2])
    b = tf.random.stateless_categorical([[0.0, 0.0]], 10, seed=[1, 2])
    return _summary(a), bool(tf.reduce_all(a == b))


def stateless_shuffle():
    a = tf.random.experimental.stateless_shuffle(tf.range(10), seed=[1, 2])
    b = tf.random.experimental.stateless_shuffle(tf.range(10), seed=[1, 2])
    return sorted(a.numpy().tolist()), bool(tf.reduce_all(a == b))


def generator():
    g = tf.random.Generator.from_seed(1)
    h = tf.random.Generator.from_seed(1)
    a, b, c = g.normal([3]), g.normal([3]), h.normal([3])
    return _summary(a), bool(tf.reduce_all(a == c)), bool(tf.reduce_all(a == b))


def generator_kinds():
    g = tf.random.Generator.from_seed(2)
    return _summary(g.uniform([4])), _summary(g.truncated_normal([4])), _summary(g.uniform([2], 0, 9, dtype=tf.int32)), g.split(2)[0].normal([2]).shape


def generator_from_nothing():
    g = tf.random.Generator.from_non_deterministic_state()
    return _summary(g.normal([2, 2])), _summary(tf.random.get_global_generator().normal([1]))


def generator_reset():
    g = tf.random.Generator.from_seed(1)
    a = g.normal([3])
    g.reset_from_seed(1)
    return bool(tf.reduce_all(a == g.normal([3])))


def stateless_split():
    s = tf.random.split([1, 2], num=3)
    f = tf.random.fold_in([1, 2], 5)
    return tf.shape(s), tf.shape(f)


def draws_in_a_function_differ_from_call_to_call():
    @tf.function
    def f():
        return tf.random.normal([4])

    return bool(tf.reduce_all(f() == f()))


def draws_of_a_seeded_function_repeat():
    @tf.function
    def f():
        return tf.random.normal([4])

    tf.random.set_seed(9)
    a = f()
    tf.random.set_seed(9)
    b = f()
    return a.shape, bool(tf.reduce_all(a == b))


def shape_by_tensor():
    return _summary(tf.random.normal(tf.constant([2, 3]))), _summary(tf.random.uniform((tf.constant(2), 3)))
