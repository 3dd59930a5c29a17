"""Longer programs of the kind that people bring who fight with memory and loops."""


def _w(*shape, seed=0, scale=0.3):
    return (np.random.RandomState(seed).randn(*shape) * scale).astype(np.float32)


@close(1e-5)
def rnn_with_while_loop_and_tensor_arrays():
    w, u = tf.Variable(_w(3, 4)), tf.Variable(_w(4, 4, seed=1))
    x = tf.constant(_w(6, 2, 3, seed=2))

    @tf.function
    def loss():
        steps = tf.shape(x)[0]
        inputs = tf.TensorArray(tf.float32, size=steps).unstack(x)
        outputs = tf.TensorArray(tf.float32, size=steps, element_shape=(2, 4))

        def body(t, h, out):
            h = tf.tanh(inputs.read(t) @ w + h @ u)
            return t + 1, h, out.write(t, h)

        _, last, outputs = tf.while_loop(lambda t, h, out: t < steps, body, (0, tf.zeros((2, 4)), outputs), parallel_iterations=1, swap_memory=True)
        return tf.reduce_sum(outputs.stack() ** 2) + tf.reduce_mean(last)

    with tf.GradientTape() as tape:
        value = loss()
    return value, tape.gradient(value, [w, u])


@close(1e-5)
def map_fn_of_pairs_and_its_gradient():
    a, b = tf.Variable(_w(5, 3)), tf.constant(_w(5, 3, 2, seed=1))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(b)
        y, n = tf.map_fn(lambda p: (tf.linalg.matvec(p[1], p[0], transpose_a=True), tf.norm(p[0])), (a, b),
                         fn_output_signature=(tf.float32, tf.float32), parallel_iterations=2)
        z = tf.reduce_sum(y) + tf.reduce_sum(n)
    return y, n, tape.gradient(z, a), tape.gradient(z, b), tape.gradient(y, n)


def gradients_of_micro_batches_are_accumulated():
    w = tf.Variable(_w(4, 1))
    total = [tf.Variable(tf.zeros_like(v), trainable=False) for v in [w]]
    x, y = tf.constant(_w(8, 4, seed=3)), tf.constant(_w(8, 1, seed=4))

    @tf.function
    def accumulate(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y)) / 4.0
        for t, g in zip(total, tape.gradient(loss, [w])):
            t.assign_add(g)
        return loss

    losses = [accumulate(a, b) for a, b in zip(tf.split(x, 4), tf.split(y, 4))]
    tf.keras.optimizers.SGD(0.5).apply_gradients(zip(total, [w]))
    for t in total:
        t.assign(tf.zeros_like(t))
    return tf.add_n(losses), w.read_value(), total[0].numpy(), accumulate.experimental_get_tracing_count()


@close(1e-6)
def list_appended_in_a_loop_with_a_condition():
    @tf.function
    def f(x):
        seen, best = [], tf.constant(-1.0)
        for i in range(5):
            x = tf.where(x > 2.0, x / 2.0, x * 1.5)
            seen.append(tf.reduce_sum(x))
            if seen[-1] > best:
                best = seen[-1]
        return tf.stack(seen), best

    return f(tf.constant([1.0, 2.0, 3.0]))


def loop_with_break_continue_and_return():
    @tf.function
    def first_over(x, limit):
        total = tf.constant(0)
        for i in tf.range(tf.shape(x)[0]):
            if x[i] < 0:
                continue
            total += x[i]
            if total > limit or i > 5:
                break
        if total > limit:
            return total
        else:
            return -total

    x = tf.constant([1, -2, 3, 4, -5, 6, 7, 8])
    return first_over(x, 7), first_over(x, 100), first_over(tf.constant([-1]), 0)


@close(1e-5)
def newton_with_maximum_iterations():
    def step(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x ** 3 - 2.0 * x - 5.0
        return x - y / tape.gradient(y, x), n + 1

    run = tf.function(lambda x: tf.while_loop(lambda x, n: tf.abs(x ** 3 - 2.0 * x - 5.0) > 1e-6, step, (x, 0), maximum_iterations=3))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, n = run(x)
    return y, n, tape.gradient(y, x)


def concatenation_that_grows_with_shape_invariants():
    @tf.function
    def f(n):
        return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, tf.concat([x, x[-1:] * 2], 0)), (tf.constant(0), tf.ones((1, 2))),
                             shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 2])))[1]

    return f(3), f(0)


@close(1e-5)
def recomputed_blocks_have_the_same_gradients():
    w1, w2 = tf.Variable(_w(4, 8)), tf.Variable(_w(8, 2, seed=1))
    x = tf.constant(_w(3, 4, seed=2))

    def block(x):
        return tf.nn.relu(x @ w1) @ w2

    def gradients(f):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(f(x)))
        return tape.gradient(y, [w1, w2])

    return gradients(block), gradients(tf.recompute_grad(block)), tf.function(lambda: gradients(tf.recompute_grad(block)))()


def custom_gradient_with_several_arguments_and_upstream():
    @tf.custom_gradient
    def clip(x, y, scale=1.0):
        def grad(dz):
            return tf.clip_by_value(dz * y, -1.0, 1.0), tf.clip_by_norm(dz * x, 2.0)

        return x * y * scale, grad

    x, y = tf.constant([3.0, -4.0, 0.5]), tf.constant([2.0, 2.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = clip(x, y) * 3.0
    return z, tape.gradient(z, x), tape.gradient(z, y), tape.gradient(z, [x, y], output_gradients=tf.constant([1.0, 0.0, -1.0]))


@close(1e-6)
def custom_gradient_of_a_variable():
    w = tf.Variable([2.0, 3.0])

    @tf.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            return dy * w, [dy * x * 10.0 for _ in variables]

        return x * w, grad

    x = tf.constant([5.0, 7.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(scaled(x))
    return tape.gradient(y, [x, w])


def greedy_decoding_with_a_dynamic_tensor_array():
    table = tf.constant(_w(7, 7))

    @tf.function
    def decode(start):
        out = tf.TensorArray(tf.int32, size=0, dynamic_size=True, clear_after_read=False)
        token, i = start, tf.constant(0)
        used = tf.zeros((7,), tf.bool)
        while i < 6 and not tf.reduce_all(used):
            out = out.write(i, token)
            used = tf.tensor_scatter_nd_update(used, [[token]], [True])
            scores = tf.where(used, -1e9 * tf.ones((7,)), table[token])
            token = tf.argmax(scores, output_type=tf.int32)
            i += 1
        return out.stack(), i, out.size()

    return decode(tf.constant(3)), decode(tf.constant(0))


def dataset_pipeline_of_windows():
    def generate():
        for i in range(10):
            yield {"x": np.full((2,), i, np.float32), "n": i}

    spec = {"x": tf.TensorSpec((2,), tf.float32), "n": tf.TensorSpec((), tf.int32)}
    ds = tf.data.Dataset.from_generator(generate, output_signature=spec)
    ds = ds.filter(lambda e: e["n"] % 3 != 0).map(lambda e: (e["x"] * 2.0, e["n"]), num_parallel_calls=tf.data.AUTOTUNE)
    batches = [(x, n) for x, n in ds.batch(4, drop_remainder=False).prefetch(tf.data.AUTOTUNE)]
    total = ds.reduce((np.float32(0), np.int32(0)), lambda s, e: (s[0] + tf.reduce_sum(e[0]), s[1] + e[1]))
    pairs = [(int(i), n.numpy()) for i, (_, n) in ds.enumerate().take(3)]
    windows = [list(w.as_numpy_iterator()) for w in tf.data.Dataset.range(7).window(3, shift=2, drop_remainder=True)]
    return batches, total, pairs, [[int(v) for v in w] for w in windows], [int(v) for v in tf.data.Dataset.range(3).repeat(2).skip(1)]


def dataset_inside_a_function():
    ds = tf.data.Dataset.range(5).map(lambda x: tf.cast(x, tf.float32)).batch(2)

    @tf.function
    def total(ds):
        s = tf.constant(0.0)
        for x in ds:
            s += tf.reduce_sum(x) ** 2
        return s

    return total(ds)


def module_with_state_and_a_checkpoint():
    import os
    import tempfile

    class Average(tf.Module):
        def __init__(self):
            super().__init__()
            self.sum, self.count = tf.Variable(0.0), tf.Variable(0, dtype=tf.int64)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def update(self, x):
            self.sum.assign_add(tf.reduce_sum(x))
            self.count.assign_add(tf.size(x, out_type=tf.int64))
            return self.sum / tf.cast(self.count, tf.float32)

    a, b = Average(), Average()
    first = [a.update([1.0, 2.0]), a.update(tf.constant([6.0]))]
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=a).save(os.path.join(folder, "ck"))
        tf.train.Checkpoint(model=b).restore(path)
    return first, b.sum.numpy(), b.update([0.0]), sorted(v.shape.rank for v in b.trainable_variables)


@close(1e-4)
def hessian_jacobian_and_batch_jacobian():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.exp(0.1 * x) * x)
        g = inner.gradient(y, x)
    hessian = outer.jacobian(g, x)
    with tf.GradientTape(persistent=True) as tape:
        z = x ** 2 * tf.reduce_sum(x, axis=1, keepdims=True)
    return hessian, tape.jacobian(z, x), tape.batch_jacobian(z, x)


@close(1e-5)
def scan_and_folds_with_structures():
    x = tf.constant(_w(5, 2))
    a = tf.scan(lambda s, e: (s[0] + e[0], s[1] * e[1]), (x, x + 1.0), initializer=(tf.zeros(2), tf.ones(2)))
    b = tf.scan(lambda s, e: s * 0.5 + e, x, reverse=True)
    c = tf.foldl(lambda s, e: s - e, x)
    d = tf.foldr(lambda s, e: s - e, x)
    return a, b, c, d


@close(1e-4)
def custom_train_step_and_metrics():
    tf.keras.utils.set_random_seed(1)

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
            self.seen = tf.keras.metrics.Mean(name="seen")

        def call(self, x, training=False):
            return self.dense(x) * (2.0 if training else 1.0)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(y - self(x, training=True)))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            self.seen.update_state(loss)
            return {"seen": self.seen.result()}

        @property
        def metrics(self):
            return [self.seen]

    x, y = _w(8, 3), _w(8, 1, seed=1)
    model = Model()
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1))
    history = model.fit(x, y, batch_size=4, epochs=3, verbose=0, shuffle=False)
    return [float(v) for v in history.history["seen"]], model.predict(x, verbose=0), model.dense.kernel.numpy()


@close(1e-5)
def weighted_fit_and_callbacks():
    tf.keras.utils.set_random_seed(1)
    lines = []

    class Note(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            lines.append((epoch, sorted(logs)))

        def on_train_batch_end(self, batch, logs=None):
            lines.append(batch)

    model = tf.keras.Sequential([tf.keras.layers.Dense(2, activation="softmax", kernel_initializer="ones")])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.5), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y = _w(6, 3), np.array([0, 1, 0, 1, 1, 0])
    h = model.fit(x, y, batch_size=3, epochs=2, verbose=0, shuffle=False, sample_weight=np.arange(6, dtype=np.float32), callbacks=[Note()])
    return lines, [float(v) for v in h.history["loss"]], model.evaluate(x, y, verbose=0), model.layers[0].get_weights()


def partition_segments_and_unique():
    x, k = tf.constant([5.0, 3.0, 5.0, 1.0, 3.0]), tf.constant([1, 0, 1, 2, 0])
    y, idx = tf.unique(x)
    v, i, c = tf.unique_with_counts(x)
    parts = tf.dynamic_partition(x, k, 3)
    return (y, idx, c, parts, tf.dynamic_stitch([[0, 2], [1, 3]], [[10.0, 30.0], [20.0, 40.0]]), tf.math.segment_sum(x, tf.constant([0, 0, 1, 1, 1])),
            tf.math.unsorted_segment_max(x, k, 4), tf.boolean_mask(tf.reshape(tf.range(6), (2, 3)), [True, False]), tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]))


def retracing_counts_and_signatures():
    traced = []

    @tf.function
    def f(x, n=2):
        traced.append(n)
        return x * tf.cast(n, x.dtype)

    f(tf.ones(2)), f(tf.zeros(2)), f(tf.ones(3)), f(tf.ones(2, tf.int32)), f(tf.ones(2), n=tf.constant(3)), f(tf.ones(2), tf.constant(4))
    g = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    return len(traced) >= 4, g(tf.constant([1.0, 2.0])), [type(n).__name__ == "int" for n in traced][:2]


def sizes_change_from_trip_to_trip_in_eager_code():
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.concat([x, x], 0)), (0, tf.ones(1)))


def lists_and_defaults_under_a_signature():
    f = tf.function(lambda x, y=2.0: x * y, input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)])
    g = tf.function(lambda p: p["a"] + p["b"][0], input_signature=[{"a": tf.TensorSpec([None], tf.float32), "b": [tf.TensorSpec([], tf.float32)]}])
    return f([1.0, 2.0]), f((1, 2), 3), f(np.ones(2, np.float32), y=4.0), g({"a": [1.0, 2.0], "b": [3]}), f.experimental_get_tracing_count()


def number_where_the_signature_has_a_vector():
    return tf.function(lambda x: x, input_signature=[tf.TensorSpec([None], tf.float32)])(3.0)


def nested_list_where_the_signature_has_a_vector():
    return tf.function(lambda x: x, input_signature=[tf.TensorSpec([None], tf.float32)])([[1.0]])


def text_where_the_signature_has_numbers():
    return tf.function(lambda x: x, input_signature=[tf.TensorSpec([], tf.float32)])("a")


def signature_is_checked():
    f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    f(tf.ones((3, 2)))
    return f(tf.ones((3, 3)))


def floats_and_integers_do_not_mix_in_a_loop():
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + i), (tf.constant(0), tf.constant(1.0)))


def carry_that_changes_its_dtype():
    return tf.function(lambda: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.cast(x, tf.float64)), (0, tf.constant(1.0))))()


def carry_that_changes_its_shape():
    return tf.function(lambda: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.concat([x, x], 0)), (0, tf.ones(1))))()


def tape_is_used_twice():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    return tape.gradient(y, x)


def gradients_of_what_is_not_connected():
    x, n = tf.Variable(2.0), tf.Variable(3)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.stop_gradient(x) * 3.0
        z = tf.cast(n, tf.float32) * x
        flat = [tf.round(x), tf.floor(x), tf.math.ceil(x), tf.math.rint(x), x // 3.0, 7.0 // x, tf.math.floordiv(x, 2.0)]
        slope = [tf.sign(x), x % 3.0, 7.0 % x]
    return [tape.gradient(t, x) for t in flat + slope], tape.gradient(y, x), tape.gradient(z, [x, n]), tape.gradient(y, x, unconnected_gradients="zero")


@close(1e-4)
def power_iteration_with_linear_algebra():
    a = _w(5, 5, scale=1.0)
    a = tf.constant(a @ a.T + np.eye(5, dtype=np.float32))

    @tf.function
    def largest(a, n):
        v = tf.ones((5, 1))
        for _ in tf.range(n):
            v = a @ v
            v /= tf.norm(v)
        return tf.squeeze(tf.transpose(v) @ a @ v)

    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.linalg.logdet(a) + tf.reduce_sum(tf.linalg.solve(a, tf.ones((5, 1))))
    return largest(a, 60), tf.linalg.eigvalsh(a)[-1], tape.gradient(y, a), tf.linalg.cholesky(a)


@close(1e-5)
def schedule_clipping_and_moving_average():
    v = tf.Variable([1.0, -2.0])
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.5, 2, 0.5, staircase=True)
    opt = tf.keras.optimizers.Adam(schedule, clipnorm=1.0)
    average, path = tf.Variable(tf.zeros(2), trainable=False), []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v ** 4)
        grads, norm = tf.clip_by_global_norm(tape.gradient(loss, [v]), 5.0)
        opt.apply_gradients(zip(grads, [v]))
        average.assign(0.9 * average + 0.1 * v)
        path.append(norm)
    return v.numpy(), average.numpy(), path, int(opt.iterations), [float(schedule(i)) for i in range(4)]


def nested_loops_with_slices_of_variables():
    table = tf.Variable(tf.zeros((3, 4)))

    @tf.function
    def fill():
        for i in tf.range(3):
            for j in tf.range(4):
                if (i + j) % 2 == 0:
                    table[i, j].assign(tf.cast(i * 10 + j, tf.float32))
        return table.read_value()

    first = fill()
    table.scatter_nd_add([[0, 0], [2, 3]], [100.0, 200.0])
    table.scatter_update(tf.IndexedSlices(tf.ones((1, 4)), tf.constant([1])))
    return first, table.numpy()


def vectorized_map_and_while_agree():
    x = tf.constant(_w(4, 3, 3, scale=1.0))
    f = lambda m: tf.reduce_sum(tf.linalg.diag_part(m @ m)) + tf.cast(tf.argmax(m[0]), tf.float32)
    return tf.reduce_all(tf.abs(tf.vectorized_map(f, x) - tf.map_fn(f, x)) < 1e-4)


def switch_case_and_case_in_a_loop():
    @tf.function
    def run(codes):
        x = tf.constant(1)
        for c in codes:
            x = tf.switch_case(c, {0: lambda: x + 1, 1: lambda: x * 3}, default=lambda: -x)
        return tf.case([(x > 100, lambda: tf.constant(100)), (x < -100, lambda: tf.constant(-100))], default=lambda: x)

    return run(tf.constant([0, 1, 1, 2, 0])), run(tf.constant([1, 1, 1, 1, 1, 1])), run(tf.constant([7]))
