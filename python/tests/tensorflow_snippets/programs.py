# Programs of the kind that people post about memory and loops.


def ragged_lengths_in_map_fn():
    lengths = tf.constant([3, 1, 4, 2])
    rows = tf.reshape(tf.range(20, dtype=tf.float32), [4, 5])

    @tf.function
    def means(rows, lengths):
        return tf.map_fn(lambda e: tf.reduce_mean(e[0][:e[1]]), (rows, lengths), fn_output_signature=tf.float32)

    return means(rows, lengths)


def ragged_slices_padded_in_map_fn():
    lengths = tf.constant([3, 1, 4, 2])
    rows = tf.reshape(tf.range(20, dtype=tf.float32), [4, 5])

    def one(e):
        row, n = e
        part = tf.cumsum(row[:n])
        return tf.pad(part, [[0, 5 - n]])

    return tf.map_fn(one, (rows, lengths), fn_output_signature=tf.TensorSpec([5], tf.float32))


def ragged_mask_in_map_fn_of_a_function():
    lengths = tf.constant([3, 1, 4, 2])
    rows = tf.reshape(tf.range(20, dtype=tf.float32), [4, 5])

    @tf.function
    def f(rows, lengths):
        def one(e):
            row, n = e
            mask = tf.sequence_mask(n, 5, dtype=tf.float32)
            return tf.reduce_sum(row * mask), tf.reduce_max(tf.where(mask > 0, row, tf.fill([5], -1e9)))
        return tf.map_fn(one, (rows, lengths), fn_output_signature=(tf.float32, tf.float32), parallel_iterations=1)

    return f(rows, lengths)


def beam_search():
    vocabulary, width, steps = 7, 3, 5
    rng = np.random.default_rng(0)
    table = tf.nn.log_softmax(tf.constant(rng.normal(size=(vocabulary, vocabulary)).astype(np.float32)))

    @tf.function
    def search(start):
        tokens = tf.fill([1, 1], start)
        scores = tf.zeros([1])
        tokens = tf.tile(tokens, [width, steps + 1])
        scores = tf.constant([0.0, -1e9, -1e9])
        for step in tf.range(steps):
            last = tokens[:, step]
            following = tf.gather(table, last) + scores[:, None]
            scores, flat = tf.math.top_k(tf.reshape(following, [-1]), width)
            beam, token = flat // vocabulary, flat % vocabulary
            tokens = tf.gather(tokens, beam)
            column = tf.one_hot(step + 1, steps + 1, dtype=tf.int32)
            tokens = tokens * (1 - column) + token[:, None] * column
        return tokens, scores

    return search(tf.constant(2))


def beam_search_with_while_loop_and_invariants():
    table = tf.nn.log_softmax(tf.constant(np.random.default_rng(1).normal(size=(5, 5)).astype(np.float32)))

    def cond(i, tokens, score):
        return tf.logical_and(i < 6, tf.reduce_any(tokens[:, -1] != 4))

    def body(i, tokens, score):
        logits = tf.gather(table, tokens[:, -1]) + score[:, None]
        best, flat = tf.math.top_k(tf.reshape(logits, [-1]), 2)
        tokens = tf.concat([tf.gather(tokens, flat // 5), (flat % 5)[:, None]], axis=1)
        return i + 1, tokens, best

    i, tokens, score = tf.while_loop(cond, body, [tf.constant(0), tf.constant([[0], [1]]), tf.constant([0.0, 0.0])],
                                     shape_invariants=[tf.TensorShape([]), tf.TensorShape([2, None]), tf.TensorShape([2])])
    return i, tokens, score


def seq2seq_with_teacher_forcing():
    tf.keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    units, vocabulary = 8, 11
    emb = tf.Variable(rng.normal(size=(vocabulary, units)).astype(np.float32) * 0.1)
    w = tf.Variable(rng.normal(size=(2 * units, units)).astype(np.float32) * 0.1)
    out = tf.Variable(rng.normal(size=(units, vocabulary)).astype(np.float32) * 0.1)
    source = tf.constant(rng.integers(0, vocabulary, (4, 6)).astype(np.int32))
    target = tf.constant(rng.integers(0, vocabulary, (4, 5)).astype(np.int32))

    def cell(x, h):
        return tf.tanh(tf.concat([x, h], -1) @ w)

    @tf.function
    def loss_of(source, target):
        h = tf.zeros([tf.shape(source)[0], units])
        for t in tf.range(tf.shape(source)[1]):
            h = cell(tf.gather(emb, source[:, t]), h)
        losses = tf.TensorArray(tf.float32, size=tf.shape(target)[1] - 1)
        for t in tf.range(tf.shape(target)[1] - 1):
            h = cell(tf.gather(emb, target[:, t]), h)
            logits = h @ out
            losses = losses.write(t, tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target[:, t + 1], logits=logits)))
        return tf.reduce_mean(losses.stack())

    results = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = loss_of(source, target)
        gradients = tape.gradient(loss, [emb, w, out])
        for v, g in zip([emb, w, out], gradients):
            v.assign_sub(0.5 * tf.convert_to_tensor(g))
        results.append(float(loss))
    return results


def policy_gradient():
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.normal(size=(4, 2)).astype(np.float32) * 0.1)
    optimizer = tf.keras.optimizers.Adam(0.05)
    states = tf.constant(rng.normal(size=(10, 4)).astype(np.float32))
    actions = tf.constant(rng.integers(0, 2, 10).astype(np.int32))
    rewards = tf.constant(rng.normal(size=10).astype(np.float32))

    def returns_of(rewards, gamma):
        n = tf.shape(rewards)[0]
        returns = tf.TensorArray(dtype=tf.float32, size=n)
        rewards = tf.cast(rewards[::-1], dtype=tf.float32)
        discounted = tf.constant(0.0)
        shape = discounted.shape
        for i in tf.range(n):
            discounted = rewards[i] + gamma * discounted
            discounted.set_shape(shape)
            returns = returns.write(i, discounted)
        returns = returns.stack()[::-1]
        return (returns - tf.math.reduce_mean(returns)) / (tf.math.reduce_std(returns) + 1e-6)

    @tf.function
    def train(states, actions, rewards):
        returns = returns_of(rewards, 0.9)
        with tf.GradientTape() as tape:
            logp = tf.nn.log_softmax(states @ w)
            taken = tf.reduce_sum(logp * tf.one_hot(actions, 2), -1)
            loss = -tf.reduce_mean(taken * returns)
        grads = tape.gradient(loss, [w])
        optimizer.apply_gradients(zip(grads, [w]))
        return loss, returns

    out = [train(states, actions, rewards) for _ in range(3)]
    return out[-1], w


def environment_in_a_while_loop():
    """A cart that runs inside the graph until it falls, as in actor-critic tutorials."""
    weights = tf.constant([[0.2], [-0.1]])

    @tf.function
    def episode(state, limit):
        states = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        t = 0
        for t in tf.range(limit):
            states = states.write(t, state)
            force = tf.tanh(state[None] @ weights)[0, 0]
            state = tf.stack([state[0] + 0.1 * state[1], state[1] + 0.1 * (tf.sin(state[0]) + force)])
            if tf.abs(state[0]) > 1.0:
                break
        return states.stack(), state

    a, b = episode(tf.constant([0.1, 0.5]), tf.constant(200))
    return a.shape[1], b


def heat_equation():
    @tf.function
    def simulate(u, steps):
        for _ in tf.range(steps):
            lap = tf.roll(u, 1, 0) + tf.roll(u, -1, 0) + tf.roll(u, 1, 1) + tf.roll(u, -1, 1) - 4.0 * u
            u = u + 0.1 * lap
        return u

    u = np.zeros((8, 8), np.float32)
    u[3:5, 3:5] = 1
    return simulate(tf.constant(u), tf.constant(20))


def n_body_until_collision():
    def cond(t, position, velocity):
        d = tf.norm(position[:, None] - position[None], axis=-1) + tf.eye(3) * 10.0
        return tf.logical_and(tf.reduce_min(d) > 0.3, t < 100)

    def body(t, position, velocity):
        delta = position[None] - position[:, None]
        r = tf.reduce_sum(delta**2, -1, keepdims=True) + 0.01
        acceleration = tf.reduce_sum(delta / r**1.5, 1)
        velocity = velocity + 0.01 * acceleration
        return t + 1, position + 0.01 * velocity, velocity

    start = tf.constant([[0.0, 0.0], [1.0, 0.0], [0.2, 0.9]])
    return tf.while_loop(cond, body, (tf.constant(0), start, tf.zeros([3, 2])))


def ising_sweeps_with_stateless_draws_have_their_shape():
    @tf.function
    def sweep(spins, seed):
        near = tf.roll(spins, 1, 0) + tf.roll(spins, -1, 0) + tf.roll(spins, 1, 1) + tf.roll(spins, -1, 1)
        flip = tf.random.stateless_uniform(tf.shape(spins), seed=seed) < tf.exp(-2.0 * spins * near * 10.0)
        checker = (tf.range(4)[:, None] + tf.range(4)[None]) % 2 == 0
        return tf.where(tf.logical_and(flip, checker), -spins, spins)

    spins = tf.ones([4, 4])
    for i in range(3):
        spins = sweep(spins, tf.constant([i, 7]))
    return spins


def newton_with_a_tape_in_a_while_loop():
    @tf.function
    def root(x):
        for _ in tf.range(8):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x**3 - 2.0 * x - 5.0
            x = x - y / tape.gradient(y, x)
        return x

    return root(tf.constant(2.0)), root(tf.constant([2.0, 3.0]))


def gradient_penalty():
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.normal(size=(3, 1)).astype(np.float32))
    v = tf.Variable(rng.normal(size=(3, 3)).astype(np.float32))
    x = tf.constant(rng.normal(size=(5, 3)).astype(np.float32))

    @tf.function
    def step(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                score = tf.tanh(x @ v) @ w
            g = inner.gradient(score, x)
            norm = tf.sqrt(tf.reduce_sum(tf.square(g), axis=1) + 1e-12)
            loss = tf.reduce_mean((norm - 1.0) ** 2)
        return loss, outer.gradient(loss, [w, v])

    return step(x)


def maml():
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.normal(size=(2, 1)).astype(np.float32))
    tasks = tf.constant(rng.normal(size=(3, 4, 2)).astype(np.float32))
    targets = tf.constant(rng.normal(size=(3, 4, 1)).astype(np.float32))

    @tf.function
    def outer_loss():
        def one(task):
            x, y = task
            fast = tf.convert_to_tensor(w)
            for _ in range(2):
                with tf.GradientTape() as inner:
                    inner.watch(fast)
                    loss = tf.reduce_mean((x @ fast - y) ** 2)
                fast = fast - 0.1 * inner.gradient(loss, fast)
            return tf.reduce_mean((x @ fast - y) ** 2)

        total = 0.0
        for i in range(3):
            total += one((tasks[i], targets[i]))
        return total / 3

    with tf.GradientTape() as tape:
        loss = outer_loss()
    return loss, tape.gradient(loss, w)


def accumulated_gradients_in_a_traced_loop():
    w = tf.Variable([[1.0], [2.0]])
    x = tf.reshape(tf.range(12, dtype=tf.float32), [6, 2])

    @tf.function
    def grads(x):
        total = tf.zeros_like(w)
        for i in tf.range(3):
            with tf.GradientTape() as tape:
                part = x[2 * i:2 * i + 2]
                loss = tf.reduce_sum((part @ w) ** 2)
            total += tape.gradient(loss, w)
        return total

    return grads(x)


def accumulators_are_variables():
    w = tf.Variable([1.0, 2.0, 3.0])
    accumulator = [tf.Variable(tf.zeros_like(v), trainable=False) for v in [w]]
    count = tf.Variable(0, trainable=False, dtype=tf.int32)

    @tf.function
    def micro(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w * x)
        for a, g in zip(accumulator, tape.gradient(loss, [w])):
            a.assign_add(g)
        count.assign_add(1)
        if count % 2 == 0:
            for v, a in zip([w], accumulator):
                v.assign_sub(0.1 * a / 2.0)
                a.assign(tf.zeros_like(a))
        return loss

    return [micro(tf.constant(float(i))) for i in range(5)], w, accumulator[0], count


def persistent_tape_over_a_loop():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        values = []
        y = x
        for i in range(4):
            y = y * x
            values.append(y)
    return [tape.gradient(v, x) for v in values]


def recompute_grad_in_a_model():
    rng = np.random.default_rng(0)
    ws = [tf.Variable(rng.normal(size=(4, 4)).astype(np.float32) * 0.5) for _ in range(3)]
    x = tf.constant(rng.normal(size=(2, 4)).astype(np.float32))

    def block(w):
        @tf.recompute_grad
        def f(x):
            return tf.nn.gelu(x @ w) + x
        return f

    with tf.GradientTape() as tape:
        y = x
        for w in ws:
            y = block(w)(y)
        loss = tf.reduce_mean(y**2)
    return loss, tape.gradient(loss, ws)


def recompute_grad_in_a_function_with_keras_layers():
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(4, activation="tanh", kernel_initializer=tf.keras.initializers.Constant(0.1 * (i + 1))) for i in range(3)]
    x = tf.ones([2, 4])
    for layer in layers:
        layer.build((None, 4))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for layer in layers:
                y = tf.recompute_grad(layer)(y)
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, [v for layer in layers for v in layer.trainable_variables])

    return step(x)


def custom_gradient_clipped_backwards():
    @tf.custom_gradient
    def clip_gradient(x):
        def grad(dy):
            return tf.clip_by_norm(dy, 0.5)
        return tf.identity(x), grad

    v = tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(clip_gradient(v * 2.0) ** 2)
    return tape.gradient(loss, v)


def custom_gradient_with_keyword_and_constant():
    @tf.custom_gradient
    def scaled(x, factor):
        def grad(dy):
            return dy * factor * 10.0, None
        return x * factor, grad

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x, tf.constant(3.0))
    return y, tape.gradient(y, x)


def custom_gradient_second_order():
    @tf.custom_gradient
    def cube(x):
        def grad(dy):
            return dy * 3.0 * x**2
        return x**3, grad

    x = tf.constant(2.0)
    with tf.GradientTape() as o:
        o.watch(x)
        with tf.GradientTape() as t:
            t.watch(x)
            y = cube(x)
        g = t.gradient(y, x)
    return y, g, o.gradient(g, x)


def while_loop_with_tensor_array_of_rows_and_gradient():
    w = tf.Variable([[0.5, 0.1], [0.2, 0.4]])
    x = tf.reshape(tf.range(8, dtype=tf.float32), [4, 2])

    @tf.function
    def run(x):
        outputs = tf.TensorArray(tf.float32, size=4, element_shape=[2])
        inputs = tf.TensorArray(tf.float32, size=4).unstack(x)

        def body(i, h, outputs):
            h = tf.tanh(tf.linalg.matvec(w, inputs.read(i)) + h)
            return i + 1, h, outputs.write(i, h)

        _, h, outputs = tf.while_loop(lambda i, h, o: i < 4, body, (0, tf.zeros([2]), outputs), parallel_iterations=1, swap_memory=True)
        return outputs.stack(), h

    with tf.GradientTape() as tape:
        s, h = run(x)
        loss = tf.reduce_sum(s) + tf.reduce_sum(h)
    return s, h, tape.gradient(loss, w)


def tensor_array_clear_after_read_off():
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
    for i in range(3):
        ta = ta.write(i, float(i) * tf.ones([2]))
    return ta.read(1), ta.read(1), ta.stack(), ta.size()


def tensor_array_of_ints_grow_eager():
    ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    for i in range(5):
        if i % 2 == 0:
            ta = ta.write(ta.size(), i)
    return ta.stack()


def retracing_is_counted():
    traces = []

    @tf.function
    def f(x, flag=True, name="a"):
        traces.append((tuple(x.shape), flag, name))
        return x + 1 if flag else x - 1

    f(tf.ones([2]))
    f(tf.zeros([2]))
    f(tf.ones([3]))
    f(tf.ones([2]), False)
    f(tf.ones([2]), flag=False)
    f(tf.ones([2]), name="b")
    return len(traces), f.experimental_get_tracing_count()


def function_in_a_loop_makes_new_functions():
    out = []
    for i in range(3):
        @tf.function
        def f(x):
            return x * i
        out.append(f(tf.constant(2)))
    return out


def method_function_of_two_objects():
    class Counter(tf.Module):
        def __init__(self, start):
            super().__init__()
            self.count = tf.Variable(start)
            self.traces = 0

        @tf.function
        def step(self, by):
            self.traces += 1
            self.count.assign_add(by)
            return self.count.read_value()

    a, b = Counter(0), Counter(10)
    return [a.step(1), a.step(1), b.step(tf.constant(5)), a.step(tf.constant(2))], a.traces, b.traces, len(a.trainable_variables)


def metrics_in_a_traced_epoch():
    loss_metric = tf.keras.metrics.Mean(name="loss")
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    w = tf.Variable(tf.ones([3, 2]) * [[0.1, -0.1]])
    x = tf.reshape(tf.range(24, dtype=tf.float32), [8, 3]) / 10
    y = tf.constant([0, 1, 0, 1, 1, 0, 0, 1])
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(3)
    history = []
    for epoch in range(2):
        loss_metric.reset_state()
        accuracy.reset_state()
        for bx, by in data:
            with tf.GradientTape() as tape:
                logits = bx @ w
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(by, logits))
            w.assign_sub(0.1 * tape.gradient(loss, w))
            loss_metric.update_state(loss)
            accuracy.update_state(by, logits)
        history.append((loss_metric.result(), accuracy.result()))
    return history


def epoch_as_one_function_over_a_dataset():
    w = tf.Variable(1.0)
    data = tf.data.Dataset.from_tensor_slices(tf.range(6, dtype=tf.float32)).batch(2)

    @tf.function
    def epoch(data):
        total = 0.0
        for batch in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((w * batch - 2.0) ** 2)
            w.assign_sub(0.01 * tape.gradient(loss, w))
            total += loss
        return total

    return epoch(data), epoch(data), w


def enumerate_a_dataset_in_a_function():
    data = tf.data.Dataset.range(5)

    @tf.function
    def f(data):
        out = tf.constant(0, tf.int64)
        for i, x in data.enumerate():
            if x == 3:
                break
            out += i * x
        return out

    return f(data)


def pipeline_that_augments_and_windows():
    def parse(i):
        x = tf.cast(i, tf.float32)
        return {"x": tf.stack([x, x * 2]), "y": i % 3}

    data = (tf.data.Dataset.range(20).map(parse, num_parallel_calls=tf.data.AUTOTUNE).filter(lambda e: e["y"] != 1).cache()
            .repeat(2).batch(4, drop_remainder=True).map(lambda e: (tf.reduce_sum(e["x"], 1), e["y"])).prefetch(tf.data.AUTOTUNE))
    return [(x, y) for x, y in data], data.cardinality()


def time_series_windows():
    series = tf.range(12, dtype=tf.float32)
    data = tf.data.Dataset.from_tensor_slices(series).window(5, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(5)).map(lambda w: (w[:-1], w[-1]))
    return list(data.batch(2).as_numpy_iterator())


def interleaved_generators():
    def gen(n):
        for i in range(int(n)):
            yield int(n) * 10 + i

    data = tf.data.Dataset.range(1, 4).interleave(
        lambda n: tf.data.Dataset.from_generator(gen, args=(n,), output_signature=tf.TensorSpec([], tf.int64)), cycle_length=2, block_length=1)
    return list(data.as_numpy_iterator())


def generator_of_ragged_rows_padded():
    def gen():
        for n in (3, 1, 2, 4):
            yield np.arange(n, dtype=np.int32), n

    data = tf.data.Dataset.from_generator(gen, output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)))
    return list(data.padded_batch(2, padded_shapes=([None], []), padding_values=(-1, 0)))


def functional_model_with_callbacks():
    tf.keras.utils.set_random_seed(3)
    seen = []

    class Watch(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((epoch, sorted(logs)))

        def on_train_batch_end(self, batch, logs=None):
            seen.append(batch)

    a, b = tf.keras.Input((3,), name="a"), tf.keras.Input((2,), name="b")
    x = tf.keras.layers.Dense(4, activation="relu", kernel_initializer="ones")(a)
    z = tf.keras.layers.Concatenate()([x, b])
    out = tf.keras.layers.Dense(1, kernel_initializer="ones", name="out")(z)
    model = tf.keras.Model([a, b], out)
    model.compile(optimizer=tf.keras.optimizers.SGD(1e-4), loss="mse", metrics=["mae"])
    x1, x2, y = np.ones((8, 3), np.float32), np.ones((8, 2), np.float32), np.zeros((8, 1), np.float32)
    history = model.fit([x1, x2], y, batch_size=4, epochs=2, verbose=0, callbacks=[Watch()], shuffle=False)
    return seen, history.history, model.predict([x1, x2], verbose=0), model.count_params()


def custom_layer_with_build_and_config():
    class Linear(tf.keras.layers.Layer):
        def __init__(self, units=2, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], self.units), initializer="ones", trainable=True, name="w")
            self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=False)

        def call(self, x):
            return tf.matmul(x, self.w) + self.b

        def get_config(self):
            return {**super().get_config(), "units": self.units}

    layer = Linear(3, name="line")
    y = layer(tf.ones([2, 4]))
    other = Linear.from_config(layer.get_config())
    return y, other.units, other.name, len(layer.trainable_weights), len(layer.non_trainable_weights), other(tf.ones([1, 2]))


def model_with_a_custom_train_step_and_metrics_property():
    tf.keras.utils.set_random_seed(0)

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.d = tf.keras.layers.Dense(1, kernel_initializer="ones")
            self.tracker = tf.keras.metrics.Mean(name="loss")

        def call(self, x, training=False):
            return self.d(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            self.tracker.update_state(loss)
            return {"loss": self.tracker.result()}

        @property
        def metrics(self):
            return [self.tracker]

    model = Model()
    model.compile(optimizer=tf.keras.optimizers.SGD(0.01))
    x, y = np.arange(12, dtype=np.float32).reshape(6, 2) / 10, np.ones((6, 1), np.float32)
    return model.fit(x, y, batch_size=3, epochs=3, verbose=0, shuffle=False).history


def saved_weights_go_into_a_copy():
    def make():
        return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(2)])

    a, b = make(), make()
    a.save_weights("a.weights.h5")
    b.load_weights("a.weights.h5")
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    return np.allclose(a(x), b(x)), [w.shape for w in a.get_weights()]


def lstm_by_keras_cell_in_a_loop():
    cell = tf.keras.layers.LSTMCell(3, kernel_initializer="ones", recurrent_initializer="ones")
    x = tf.reshape(tf.range(24, dtype=tf.float32), [2, 4, 3]) / 24
    state = [tf.zeros([2, 3]), tf.zeros([2, 3])]
    for t in range(4):
        out, state = cell(x[:, t], state)
    rnn = tf.keras.layers.RNN(tf.keras.layers.LSTMCell(3, kernel_initializer="ones", recurrent_initializer="ones"), return_sequences=True, return_state=True)
    return out, state, rnn(x)


def exponential_moving_average_of_weights():
    w = tf.Variable([1.0, 2.0])
    ema = tf.train.ExponentialMovingAverage(decay=0.9)
    ema.apply([w])
    w.assign([3.0, 4.0])
    ema.apply([w])
    return ema.average(w)


def learning_rate_schedules():
    s = [tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5), tf.keras.optimizers.schedules.CosineDecay(0.1, 20),
         tf.keras.optimizers.schedules.PiecewiseConstantDecay([5, 10], [1.0, 0.5, 0.1]), tf.keras.optimizers.schedules.PolynomialDecay(0.1, 10, 0.01),
         tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 5, 0.5), tf.keras.optimizers.schedules.CosineDecayRestarts(0.1, 5)]
    return [[f(i) for i in (0, 3, 7, 12, 25)] for f in s]


def dynamic_loop_over_unknown_batch():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def f(x):
        total = tf.zeros([3])
        for row in x:
            if tf.reduce_sum(row) < 0:
                continue
            total += row
        return total

    return f(tf.constant([[1.0, 2, 3], [-4, 0, 0], [1, 1, 1]])), f(tf.ones([7, 3]))


def prime_sieve():
    @tf.function
    def primes(n):
        out = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        count = 0
        for i in tf.range(2, n):
            prime = True
            for j in tf.range(2, i):
                if i % j == 0:
                    prime = False
                    break
            if prime:
                out = out.write(count, i)
                count += 1
        return out.stack(), count

    return primes(tf.constant(30))


def collatz():
    @tf.function
    def steps(n):
        count = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            count += 1
        return count

    return steps(tf.constant(27)), steps(tf.constant(1))


def mandelbrot_complex():
    x, y = tf.meshgrid(tf.linspace(-2.0, 0.5, 6), tf.linspace(-1.0, 1.0, 4))
    c = tf.complex(x, y)

    @tf.function
    def run(c):
        z, n = tf.zeros_like(c), tf.zeros(c.shape, tf.float32)
        for _ in tf.range(10):
            z = tf.where(tf.abs(z) < 2.0, z * z + c, z)
            n += tf.cast(tf.abs(z) < 2.0, tf.float32)
        return n

    return run(c)


def attention_with_a_cache():
    rng = np.random.default_rng(0)
    wq, wk, wv = (tf.constant(rng.normal(size=(4, 4)).astype(np.float32)) for _ in range(3))

    @tf.function
    def decode(x, steps):
        cache_k, cache_v = tf.zeros([6, 4]), tf.zeros([6, 4])
        outs = tf.TensorArray(tf.float32, size=steps)
        for t in tf.range(steps):
            q, k, v = x @ wq, x @ wk, x @ wv
            cache_k = tf.tensor_scatter_nd_update(cache_k, [[t]], k)
            cache_v = tf.tensor_scatter_nd_update(cache_v, [[t]], v)
            s = tf.matmul(q, cache_k, transpose_b=True) / 2.0
            s = tf.where(tf.range(6)[None] <= t, s, -1e9)
            x = tf.nn.softmax(s) @ cache_v
            outs = outs.write(t, x[0])
        return outs.stack()

    return decode(tf.ones([1, 4]), 6)


def losses_that_grow_a_python_list_in_eager_code():
    w = tf.Variable(0.5)
    history = []
    for i in tf.range(4):
        with tf.GradientTape() as t:
            l = (w - tf.cast(i, tf.float32)) ** 2
        w.assign_sub(0.1 * t.gradient(l, w))
        history.append(l)
    return tf.stack(history), np.array([float(h) for h in history])


def kmeans():
    rng = np.random.default_rng(0)
    points = tf.constant(rng.normal(size=(30, 2)).astype(np.float32))

    @tf.function
    def fit(points, centers):
        change = tf.constant(1e9)
        n = 0
        while change > 1e-4 and n < 50:
            d = tf.reduce_sum((points[:, None] - centers[None]) ** 2, -1)
            nearest = tf.argmin(d, 1)
            sums = tf.math.unsorted_segment_sum(points, nearest, 3)
            counts = tf.math.unsorted_segment_sum(tf.ones([30, 1]), nearest, 3)
            new = tf.math.divide_no_nan(sums, counts)
            change = tf.reduce_max(tf.abs(new - centers))
            centers = new
            n += 1
        return centers, n

    return fit(points, points[:3])


def linear_regression_by_lbfgs_like_line_search():
    a = tf.constant([[3.0, 1.0], [1.0, 2.0]])
    b = tf.constant([1.0, -1.0])

    def f(x):
        return 0.5 * tf.tensordot(x, tf.linalg.matvec(a, x), 1) - tf.tensordot(b, x, 1)

    @tf.function
    def minimize(x):
        for _ in tf.range(20):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            g = tape.gradient(y, x)
            t = tf.constant(1.0)
            while f(x - t * g) > y - 0.5 * t * tf.reduce_sum(g * g):
                t *= 0.5
            x = x - t * g
        return x

    return minimize(tf.zeros([2]))


def viterbi():
    rng = np.random.default_rng(0)
    emit = tf.constant(rng.normal(size=(6, 4)).astype(np.float32))
    move = tf.constant(rng.normal(size=(4, 4)).astype(np.float32))

    @tf.function
    def decode(emit):
        n = tf.shape(emit)[0]
        back = tf.TensorArray(tf.int32, size=n)
        score = emit[0]
        for t in tf.range(1, n):
            both = score[:, None] + move
            back = back.write(t, tf.argmax(both, 0, output_type=tf.int32))
            score = tf.reduce_max(both, 0) + emit[t]
        path = tf.TensorArray(tf.int32, size=n)
        last = tf.argmax(score, output_type=tf.int32)
        path = path.write(n - 1, last)
        for t in tf.range(n - 1, 0, -1):
            last = tf.gather(back.read(t), last)
            path = path.write(t - 1, last)
        return path.stack(), tf.reduce_max(score)

    return decode(emit)


def ctc_like_forward_in_scan():
    logp = tf.nn.log_softmax(tf.constant(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)))
    start = tf.constant([0.0, -1e9, -1e9])

    def step(alpha, row):
        moved = tf.concat([[-1e9], alpha[:-1]], 0)
        return tf.reduce_logsumexp(tf.stack([alpha, moved]), 0) + row

    return tf.scan(step, logp, initializer=start)


def more_names():
    v, i = tf.Variable([1.0, 2.0]), tf.constant([[1.0, -1.0]])
    tf.assert_equal(1, 1)
    tf.assert_greater(2, 1)
    tf.assert_less(1, 2)
    tf.assert_rank(i, 2)
    return (tf.truediv(3, 2), tf.math.softmax(i), tf.math.log_softmax(i), tf.zeros_initializer()((2,)), tf.ones_initializer()((2,)), tf.constant_initializer(3.0)((1, 2)),
            tf.random_normal_initializer()((2, 3)).shape, tf.random_uniform_initializer()((2, 3)).shape, v)


def functions_that_autograph_leaves_alone():
    @tf.autograph.experimental.do_not_convert
    def plain(x):
        return x + 1 if isinstance(x, int) else x * 2

    return tf.function(lambda x: plain(x) + plain(1))(tf.constant(3))
