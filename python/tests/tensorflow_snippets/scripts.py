# Whole programs, as users write them; what they give does not depend on draws.


def gpt():
    vocabulary, width, heads, steps, batch = 50, 32, 4, 16, 8

    class Block(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = tf.keras.layers.LayerNormalization(epsilon=1e-5), tf.keras.layers.LayerNormalization(epsilon=1e-5)
            self.qkv, self.proj = tf.keras.layers.Dense(3 * width), tf.keras.layers.Dense(width)
            self.up, self.down = tf.keras.layers.Dense(4 * width, activation=tf.nn.gelu), tf.keras.layers.Dense(width)
            self.drop = tf.keras.layers.Dropout(0.1)

        def call(self, x, training=False):
            b, t, d = tf.shape(x)[0], x.shape[1], x.shape[2]
            q, k, v = tf.split(self.qkv(self.n1(x)), 3, axis=-1)

            def apart(z):
                return tf.transpose(tf.reshape(z, [b, t, heads, d // heads]), [0, 2, 1, 3])

            s = tf.matmul(apart(q), apart(k), transpose_b=True) / tf.math.sqrt(tf.cast(d // heads, tf.float32))
            mask = tf.linalg.band_part(tf.ones([t, t]), -1, 0)
            s = tf.where(mask[tf.newaxis, tf.newaxis] > 0, s, tf.constant(-1e9))
            a = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(s, axis=-1), apart(v)), [0, 2, 1, 3]), [b, t, d])
            x = x + self.drop(self.proj(a), training=training)
            return x + self.down(self.up(self.n2(x)))

    class GPT(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.tokens = tf.keras.layers.Embedding(vocabulary, width)
            self.places = self.add_weight(shape=(steps, width), initializer="zeros", name="places")
            self.blocks = [Block() for _ in range(2)]
            self.norm, self.head = tf.keras.layers.LayerNormalization(), tf.keras.layers.Dense(vocabulary)

        def call(self, ids, training=False):
            x = self.tokens(ids) + self.places
            for block in self.blocks:
                x = block(x, training=training)
            return self.head(self.norm(x))

    tf.random.set_seed(1)
    model, optimizer = GPT(), tf.keras.optimizers.AdamW(3e-3, weight_decay=0.01)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    text = (np.arange(4000) * 7 % vocabulary).astype(np.int32)
    pairs = tf.data.Dataset.from_tensor_slices(text).batch(steps + 1, drop_remainder=True).map(lambda c: (c[:-1], c[1:]))
    batches = pairs.shuffle(500, seed=1).repeat().batch(batch, drop_remainder=True).prefetch(2)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, model.trainable_variables), 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def generate(ids, n):
        for _ in tf.range(n):
            following = tf.argmax(model(ids)[:, -1], -1, output_type=tf.int32)
            ids = tf.concat([ids[:, 1:], following[:, None]], 1)
        return ids

    losses = [float(step(x, y)) for x, y in batches.take(60)]
    return losses[0] > 3.5, losses[-1] < 0.5, generate(tf.constant(text[None, :steps]), tf.constant(5))


def adversarial():
    g = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(2)])
    d = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.LeakyReLU(0.2), tf.keras.layers.Dense(1)])
    g_optimizer, d_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5), tf.keras.optimizers.Adam(1e-3)
    bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def step(real):
        z = tf.random.normal([tf.shape(real)[0], 4])
        with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
            fake = g(z, training=True)
            of_real, of_fake = d(real, training=True), d(fake, training=True)
            g_loss = bce(tf.ones_like(of_fake), of_fake)
            d_loss = bce(tf.ones_like(of_real), of_real) + bce(tf.zeros_like(of_fake), of_fake)
        g_optimizer.apply_gradients(zip(g_tape.gradient(g_loss, g.trainable_variables), g.trainable_variables))
        d_optimizer.apply_gradients(zip(d_tape.gradient(d_loss, d.trainable_variables), d.trainable_variables))
        return g_loss, d_loss

    results = [step(tf.ones([16, 2])) for _ in range(3)]
    return [x.shape for x in results[-1]], len(g.trainable_variables), g_optimizer.iterations


def first_call_builds_the_model_inside_the_function():
    model, optimizer = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(2)]), tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    losses = [float(step(tf.ones([4, 3]))) for _ in range(3)]
    return losses[0] > losses[1] > losses[2], len(model.trainable_variables), optimizer.iterations


def two_named_inputs_from_a_dataset():
    a, b = tf.keras.Input((3,), name="a"), tf.keras.Input((2,), name="b")
    x = tf.keras.layers.concatenate([tf.keras.layers.Dense(4, activation="relu")(a), b])
    model = tf.keras.Model({"a": a, "b": b}, tf.keras.layers.Dense(1, name="out")(x))
    model.compile("adam", "mse", metrics=["mae"])
    parts = {"a": np.ones((20, 3), np.float32), "b": np.ones((20, 2), np.float32)}
    history = model.fit(tf.data.Dataset.from_tensor_slices((parts, np.ones((20, 1), np.float32))).batch(8), epochs=2, verbose=0)
    return sorted(history.history), model.predict({"a": parts["a"][:2], "b": parts["b"][:2]}, verbose=0).shape


def sequence_to_sequence():
    k = tf.keras.layers
    encoder, decoder = tf.keras.Input((None, 4)), tf.keras.Input((None, 4))
    _, h, c = k.LSTM(8, return_state=True)(encoder)
    y = k.LSTM(8, return_sequences=True)(decoder, initial_state=[h, c])
    model = tf.keras.Model([encoder, decoder], k.TimeDistributed(k.Dense(5, activation="softmax"))(y))
    model.compile("adam", "sparse_categorical_crossentropy")
    inputs = [np.ones((6, 3, 4), np.float32), np.ones((6, 5, 4), np.float32)]
    history = model.fit(inputs, np.zeros((6, 5), np.int32), epochs=1, verbose=0)
    return model.output_shape, len(history.history["loss"])


def variational_autoencoder():
    class VAE(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = tf.keras.layers.Dense(4), tf.keras.layers.Dense(6)
            self.total = tf.keras.metrics.Mean(name="total")

        @property
        def metrics(self):
            return [self.total]

        def call(self, x):
            return self.decoder(self.encoder(x)[:, :2])

        def train_step(self, data):
            x = data[0] if isinstance(data, tuple) else data
            with tf.GradientTape() as tape:
                mean, log_variance = tf.split(self.encoder(x), 2, axis=1)
                z = mean + tf.exp(0.5 * log_variance) * tf.random.normal(tf.shape(mean))
                error = tf.reduce_mean(tf.reduce_sum((self.decoder(z) - x) ** 2, 1))
                loss = error - 0.5 * tf.reduce_mean(1 + log_variance - mean**2 - tf.exp(log_variance))
            gradients = tape.gradient(loss, self.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
            self.total.update_state(loss)
            return {"total": self.total.result()}

    model = VAE()
    model.compile(optimizer=tf.keras.optimizers.Adam(1e-2))
    history = model.fit(np.ones((16, 6), np.float32), epochs=8, verbose=0, batch_size=8).history
    return list(history), history["total"][0] > history["total"][-1]


def q_learning():
    q = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(2)])
    slow = tf.keras.models.clone_model(q)
    slow.set_weights(q.get_weights())
    optimizer, huber = tf.keras.optimizers.Adam(1e-3), tf.keras.losses.Huber()

    @tf.function
    def train(state, action, reward, after, done):
        target = reward + 0.99 * tf.reduce_max(slow(after), axis=1) * (1 - done)
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(q(state) * tf.one_hot(action, 2), axis=1)
            loss = huber(target, value)
        optimizer.apply_gradients(zip(tape.gradient(loss, q.trainable_variables), q.trainable_variables))
        return loss

    ones, zeros = tf.ones([8, 4]), tf.zeros([8])
    losses = [float(train(ones, tf.zeros([8], tf.int32), zeros + 1.0, ones, zeros)) for _ in range(5)]
    for a, b in zip(slow.trainable_variables, q.trainable_variables):
        a.assign(0.9 * a + 0.1 * b)
    return losses[0] > losses[-1]


def gradient_of_a_long_loop():
    w = tf.Variable(tf.eye(8) * 0.9)

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            _, y = tf.while_loop(
                lambda i, y: i < 100, lambda i, y: (i + 1, tf.tanh(y @ w)), (0, x), swap_memory=True, parallel_iterations=1
            )
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, w)

    return f(tf.ones([2, 8]))


def fit_from_a_generator():
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def batches():
        while True:
            yield np.ones((4, 2), np.float32), np.zeros((4, 1), np.float32)

    return len(model.fit(batches(), steps_per_epoch=5, epochs=2, verbose=0).history["loss"])


def weights_of_a_subclass_in_a_file():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.rest = tf.keras.layers.Dense(3), [tf.keras.layers.Dense(2), tf.keras.layers.BatchNormalization()]

        def call(self, x, training=False):
            x = self.first(x)
            for layer in self.rest:
                x = layer(x)
            return x

    a, b, x = Net(), Net(), tf.ones([1, 4])
    a(x), b(x)
    a.save_weights("script_net.weights.h5")
    b.load_weights("script_net.weights.h5")
    return tf.reduce_all(a(x) == b(x)), len(a.weights)


def training_goes_on_from_a_checkpoint():
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x, y = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
    model.fit(x, y, verbose=0)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path, saved = checkpoint.write("script_goes_on"), model.get_weights()
    model.fit(x, y, verbose=0)
    checkpoint.read(path)
    return model.optimizer.iterations, all(bool(np.all(a == b)) for a, b in zip(saved, model.get_weights()))


def pairwise_distances_in_a_map():
    @tf.function
    def kernel_sums(xs):
        return tf.map_fn(lambda x: tf.reduce_sum(tf.exp(-tf.square(x[:, None] - x[None, :]))), xs, parallel_iterations=1)

    return kernel_sums(tf.reshape(tf.range(60.0), [5, 12]) / 30.0)
