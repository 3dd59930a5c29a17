# Tapes, gradients, custom gradients.


def gradient():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x)


def gradient_by_variables():
    w, b = tf.Variable([[1.0], [2.0]]), tf.Variable(0.5)
    x = tf.constant([[1.0, 3.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((x @ w + b) ** 2)
    return tape.gradient(loss, [w, b])


def gradient_by_a_dict():
    p = {"w": tf.Variable(2.0), "b": tf.Variable(1.0)}
    with tf.GradientTape() as tape:
        y = p["w"] * 3.0 + p["b"] ** 2
    return tape.gradient(y, p)


def unconnected_is_none():
    x, z = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * 2.0
    return tape.gradient(y, [x, z])


def unconnected_zero():
    x, z = tf.Variable(1.0), tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    return tape.gradient(y, [x, z], unconnected_gradients=tf.UnconnectedGradients.ZERO)


def unconnected_zero_by_name():
    z = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.constant(1.0)
    return tape.gradient(y, z, unconnected_gradients="zero")


def not_watched_is_none():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        y = x * 2.0
    return tape.gradient(y, x)


def not_trainable_is_none():
    v = tf.Variable(1.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * 2.0
    return tape.gradient(y, v)


def ints_have_no_gradient():
    x = tf.Variable(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x)


def persistent():
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = y * y
    a, b = tape.gradient(y, x), tape.gradient(z, x)
    del tape
    return a, b


def second_use_is_an_error():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    return tape.gradient(y, x)


def watch_accessed_variables_off():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(b)
        y = a * b
    return tape.gradient(y, [a, b])


def watched_variables():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = a * b
    return len(tape.watched_variables()), tape.gradient(y, a)


def output_gradients():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x, output_gradients=tf.constant([1.0, 10.0]))


def gradient_of_several_targets():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y, z = x * 3.0, x * x
    return tape.gradient([y, z], x)


def gradient_of_a_vector_is_summed():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, x)


def second_order():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        g = inner.gradient(y, x)
    return g, outer.gradient(g, x)


def stop_recording():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        with tape.stop_recording():
            z = y * 100.0
        w = y + z
    return tape.gradient(w, x)


def reset():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
        z = x * 3.0
    return tape.gradient(z, x), y


def reset_forgets():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
        z = y + 1.0
    return tape.gradient(z, x)


def jacobian():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stack([x[0] * x[1], x[0] ** 2, x[1]])
    return tape.jacobian(y, x)


def jacobian_of_a_matrix():
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.matmul([[1.0, 1.0]], w)
    return tape.jacobian(y, w)


def batch_jacobian():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.batch_jacobian(y, x)


def hessian():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x[0] ** 2 * x[1] + x[1] ** 3
        g = inner.gradient(y, x)
    return outer.jacobian(g, x)


def stop_gradient():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * tf.stop_gradient(x * x)
    return y, tape.gradient(y, x)


def custom_gradient():
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(upstream):
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    x = tf.constant(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    return tape.gradient(y, x)


def custom_gradient_of_two():
    @tf.custom_gradient
    def f(x, y):
        def grad(dz):
            return dz * 10.0, dz * 20.0

        return x * y, grad

    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = f(a, b) * 2.0
    return z, tape.gradient(z, [a, b])


def custom_gradient_in_a_function():
    @tf.custom_gradient
    def clip_gradient(x):
        return tf.identity(x), lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(clip_gradient(x) * 5.0)
        return tape.gradient(y, x)

    return f(tf.constant([1.0, 2.0]))


def custom_gradient_with_variables():
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        y = w * x

        def grad(dy, variables=None):
            return dy * w, [dy * x * 100.0]

        return y, grad

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, [x, w])


def recompute_grad():
    def block(x):
        return tf.tanh(x) * tf.exp(-x)

    x = tf.constant([0.5, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.recompute_grad(block)(x))
    return y, tape.gradient(y, x)


def gradients_in_a_function():
    @tf.function
    def f(x):
        return tf.gradients(x * x * x, x)

    return f(tf.constant(2.0))


def gradients_of_two_in_a_function():
    @tf.function
    def f(x, y):
        return tf.gradients([x * y], [x, y])

    return f(tf.constant(2.0), tf.constant(5.0))


def gradient_of_a_function_call():
    @tf.function
    def f(x):
        return tf.reduce_sum(tf.sin(x) * x)

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = f(x)
    return tape.gradient(y, x)


def tape_in_a_function():
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((w * x - 1.0) ** 2)
        g = tape.gradient(loss, w)
        w.assign_sub(0.1 * g)
        return loss

    return [step(tf.constant([1.0, 0.5])) for _ in range(4)], w


def gradient_of_a_loop():
    @tf.function
    def f(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(n):
                y = tf.tanh(y) * 2.0
        return tape.gradient(y, x)

    return f(tf.constant([0.1, 0.2]), tf.constant(6))


def gradient_of_a_while_loop():
    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, tf.constant(1.0)))
    return y, tape.gradient(y, x)


def gradient_of_a_map():
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.map_fn(lambda e: e**3, x))
    return tape.gradient(y, x)


def gradient_of_a_scan():
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.scan(lambda a, e: a * e, x)[-1]
    return tape.gradient(y, x)


def gradient_of_a_cond():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.cond(x > 2.0, lambda: x * x, lambda: x)
    return tape.gradient(y, x)


def gradient_of_gather_is_sparse():
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [2, 0, 2]) ** 2)
    g = tape.gradient(y, table)
    return isinstance(g, tf.IndexedSlices), g, tf.convert_to_tensor(g)


def indexed_slices():
    s = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([0, 2]), dense_shape=tf.constant([3, 2]))
    return s, tf.convert_to_tensor(s), s.dense_shape, s.dtype


def gradient_of_common_ops():
    x = tf.constant([0.3, 0.7, 1.4])
    out = []
    for f in (tf.exp, tf.math.log, tf.sqrt, tf.tanh, tf.sigmoid, tf.nn.softplus, tf.nn.gelu, tf.nn.elu, tf.atan, tf.math.erf, tf.sinh):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x))
        out.append(tape.gradient(y, x))
    return out


def gradient_of_reductions():
    x = tf.constant([[1.0, 5.0], [3.0, 2.0]])
    out = []
    for f in (tf.reduce_max, tf.reduce_mean, tf.reduce_prod, tf.reduce_logsumexp, tf.math.reduce_std, tf.norm):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        out.append(tape.gradient(y, x))
    return out


def gradient_of_shapes():
    x = tf.reshape(tf.range(6.0), [2, 3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.concat([tf.transpose(x)[:2], tf.pad(x, [[0, 0], [0, 0]])[:, :2]], 0)
        z = tf.reduce_sum(tf.tile(y, [2, 1]) * tf.cumsum(tf.ones([8, 2])))
    return tape.gradient(z, x)


def gradient_at_zero():
    x = tf.constant([0.0, -1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, b = tf.abs(x), tf.nn.relu(x)
    return tape.gradient(a, x), tape.gradient(b, x)


def gradient_of_a_convolution():
    x, w = tf.reshape(tf.range(16.0), [1, 4, 4, 1]) / 16, tf.Variable(tf.ones([2, 2, 1, 2]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME") ** 2)
    return tape.gradient(y, w)


def gradient_of_where_and_clip():
    x = tf.constant([-1.0, 0.5, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.where(x > 0.0, x * x, -x) + tf.clip_by_value(x, 0.0, 1.0)
    return tape.gradient(y, x)


def forward_accumulator():
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
        y = tf.reduce_sum(x * x * x)
    return acc.jvp(y)


def sgd_by_hand():
    w = tf.Variable(5.0)
    losses = []
    for _ in range(10):
        with tf.GradientTape() as tape:
            loss = (w - 2.0) ** 2
        w.assign_sub(0.1 * tape.gradient(loss, w))
        losses.append(loss)
    return losses[-1], w


def gradient_through_assignment():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(10.0)
        y += v
    return y, tape.gradient(y, v)


def tape_outside_of_its_block():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * 2.0
    z = y * 5.0
    return tape.gradient(z, x), tape is not None


def gradient_of_float64():
    x = tf.Variable(2.0, dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = x**2
    return tape.gradient(y, x)


def straight_through():
    x = tf.Variable([0.2, 0.8])
    with tf.GradientTape() as tape:
        y = x + tf.stop_gradient(tf.round(x) - x)
        z = tf.reduce_sum(y * [1.0, 2.0])
    return y, tape.gradient(z, x)
