# Keras as people write it.


def _ones_model():
    return tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3, activation="relu", kernel_initializer="ones", name="first"),
                                tf.keras.layers.Dense(1, kernel_initializer="ones", name="second")])


def what_a_model_knows_of_itself():
    m = _ones_model()
    return ([l.name for l in m.layers], m.get_layer("first").units, m.get_layer(index=1).name, len(m.weights), len(m.trainable_weights), m.input_shape, m.output_shape,
            m.count_params(), m.built, m.name.startswith("sequential"), m.layers[0].get_config()["units"], m.trainable, [w.name for w in m.weights])


def weights_are_set_and_read():
    m = _ones_model()
    w = m.get_weights()
    m.set_weights([x * 2 for x in w])
    m.layers[0].set_weights([np.zeros((4, 3), np.float32), np.ones(3, np.float32)])
    return m(tf.ones([2, 4])), [x.shape for x in m.layers[1].get_weights()]


def summary_by_print_fn():
    lines = []
    _ones_model().summary(print_fn=lambda s, **k: lines.append(s))
    text = "\n".join(lines)
    return "first" in text, "19" in text


def pop_and_add_of_sequential():
    m = tf.keras.Sequential()
    m.add(tf.keras.Input((4,)))
    m.add(tf.keras.layers.Dense(3, kernel_initializer="ones"))
    m.add(tf.keras.layers.Dense(2, kernel_initializer="ones"))
    m.pop()
    return m(tf.ones([1, 4])), len(m.layers)


def frozen_base_and_new_head():
    base = _ones_model()
    base.trainable = False
    x = tf.keras.Input((4,))
    y = tf.keras.layers.Dense(1, kernel_initializer="ones")(base(x, training=False))
    m = tf.keras.Model(x, y)
    m.compile("sgd", "mse")
    before = base.get_weights()[0].copy()
    m.fit(np.ones((4, 4), np.float32), np.zeros((4, 1), np.float32), verbose=0)
    return len(m.trainable_weights), len(m.non_trainable_weights), np.array_equal(before, base.get_weights()[0])


def callbacks_in_order():
    log = []

    class C(tf.keras.callbacks.Callback):
        def on_train_begin(self, logs=None): log.append("train_begin")
        def on_train_end(self, logs=None): log.append("train_end")
        def on_epoch_begin(self, epoch, logs=None): log.append(("epoch_begin", epoch))
        def on_epoch_end(self, epoch, logs=None): log.append(("epoch_end", epoch, sorted(logs)))
        def on_train_batch_begin(self, batch, logs=None): log.append(("batch_begin", batch))
        def on_train_batch_end(self, batch, logs=None): log.append(("batch_end", batch, sorted(logs)))
        def on_test_begin(self, logs=None): log.append("test_begin")
        def on_test_end(self, logs=None): log.append(("test_end", sorted(logs)))
        def on_test_batch_end(self, batch, logs=None): log.append(("test_batch", batch))
        def on_predict_batch_end(self, batch, logs=None): log.append(("predict_batch", batch, sorted(logs)))

    m = _ones_model()
    m.compile("sgd", "mse", metrics=["mae"])
    x, y = np.ones((6, 4), np.float32) * 0.01, np.ones((6, 1), np.float32)
    m.fit(x, y, batch_size=3, epochs=2, verbose=0, validation_data=(x[:2], y[:2]), callbacks=[C()])
    m.evaluate(x, y, batch_size=3, verbose=0, callbacks=[C()])
    m.predict(x, batch_size=4, verbose=0, callbacks=[C()])
    return log


def callback_reads_the_model_and_params():
    seen = []

    class C(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((self.params["epochs"], self.params["steps"], len(self.model.get_weights()), float(self.model.optimizer.learning_rate), int(self.model.optimizer.iterations)))
            if epoch == 1:
                self.model.stop_training = True

    m = _ones_model()
    m.compile(tf.keras.optimizers.SGD(0.001), "mse")
    m.fit(np.ones((6, 4), np.float32), np.ones((6, 1), np.float32), batch_size=2, epochs=5, verbose=0, callbacks=[C()])
    return seen


def early_stopping_restores_the_best():
    m = _ones_model()
    m.compile(tf.keras.optimizers.SGD(0.2), "mse")
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    y = x.sum(1, keepdims=True)
    h = m.fit(x, y, epochs=10, verbose=0, shuffle=False, callbacks=[tf.keras.callbacks.EarlyStopping(monitor="loss", patience=2, restore_best_weights=True)])
    return len(h.history["loss"]), h.epoch


def metrics_of_many_kinds():
    y = tf.constant([0, 1, 1, 0, 1])
    p = tf.constant([0.1, 0.8, 0.4, 0.6, 0.9])
    out = {}
    for name, m in {"ba": tf.keras.metrics.BinaryAccuracy(), "auc": tf.keras.metrics.AUC(), "pr": tf.keras.metrics.Precision(), "re": tf.keras.metrics.Recall(),
                    "tp": tf.keras.metrics.TruePositives(), "fn": tf.keras.metrics.FalseNegatives(), "bce": tf.keras.metrics.BinaryCrossentropy(),
                    "f1": tf.keras.metrics.F1Score(threshold=0.5)}.items():
        if name == "f1":
            m.update_state(tf.cast(y[:, None], tf.float32), p[:, None])
        else:
            m.update_state(y, p)
        out[name] = m.result()
    return out


def metric_subclass():
    class Ratio(tf.keras.metrics.Metric):
        def __init__(self, name="ratio", **kw):
            super().__init__(name=name, **kw)
            self.a = self.add_weight(name="a", initializer="zeros")
            self.b = self.add_weight(name="b", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.a.assign_add(tf.reduce_sum(tf.cast(y_true, tf.float32)))
            self.b.assign_add(tf.reduce_sum(y_pred))

        def result(self):
            return self.a / self.b

        def reset_state(self):
            self.a.assign(0.0)
            self.b.assign(0.0)

    m = _ones_model()
    m.compile("sgd", "mse", metrics=[Ratio()])
    x, y = np.ones((6, 4), np.float32) * 0.01, np.ones((6, 1), np.float32)
    h = m.fit(x, y, batch_size=3, epochs=2, verbose=0)
    return h.history["ratio"]


def loss_function_of_ones_own():
    def huber(y_true, y_pred):
        e = tf.abs(y_true - y_pred)
        return tf.reduce_mean(tf.where(e < 1.0, 0.5 * e * e, e - 0.5), axis=-1)

    m = _ones_model()
    m.compile(tf.keras.optimizers.SGD(0.01), loss=huber, metrics=[huber])
    x, y = np.ones((6, 4), np.float32), np.ones((6, 1), np.float32)
    return {k: v for k, v in m.fit(x, y, batch_size=3, epochs=2, verbose=0).history.items()}


def loss_subclass():
    class L(tf.keras.losses.Loss):
        def __init__(self, w, **kw):
            super().__init__(**kw)
            self.w = w

        def call(self, y_true, y_pred):
            return self.w * tf.reduce_mean(tf.square(y_true - y_pred), -1)

    return L(3.0)(tf.zeros([2, 2]), tf.ones([2, 2])), L(2.0, reduction="sum")(tf.zeros([2, 2]), tf.ones([2, 2]), sample_weight=[1.0, 0.0]), L(2.0, reduction="none")(tf.zeros([2, 2]), tf.ones([2, 2]))


def residual_network_functional():
    tf.keras.utils.set_random_seed(0)
    x = tf.keras.Input((8, 8, 3))
    y = tf.keras.layers.Conv2D(4, 3, padding="same", kernel_initializer="ones", use_bias=False)(x)
    y = tf.keras.layers.BatchNormalization()(y)
    y = tf.keras.layers.ReLU()(y)
    z = tf.keras.layers.Conv2D(4, 1, kernel_initializer="ones")(x)
    y = tf.keras.layers.add([y, z])
    y = tf.keras.layers.MaxPooling2D()(y)
    y = tf.keras.layers.GlobalAveragePooling2D()(y)
    y = tf.keras.layers.Dropout(0.3)(y)
    y = tf.keras.layers.Dense(2, activation="softmax", kernel_initializer=tf.keras.initializers.Constant(0.1))(y)
    m = tf.keras.Model(x, y)
    image = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype(np.float32)
    return m(image), m(image, training=False), m.count_params(), [l.output.shape for l in m.layers[1:4]]


def layers_that_reshape():
    x = tf.reshape(tf.range(48, dtype=tf.float32), [2, 4, 6])
    L = tf.keras.layers
    return [L.Reshape((6, 4))(x), L.Permute((2, 1))(x), L.RepeatVector(2)(x[:, 0]), L.Flatten()(x), L.ZeroPadding1D(1)(x), L.Cropping1D(1)(x), L.UpSampling1D(2)(x),
            L.TimeDistributed(L.Dense(2, kernel_initializer="ones"))(x), L.Lambda(lambda v: v * 2)(x), L.Masking(0.0)(x), L.GlobalMaxPooling1D()(x), L.AveragePooling1D(2)(x)]


def merges():
    a, b = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 5.0]])
    L = tf.keras.layers
    return [L.Add()([a, b]), L.Subtract()([a, b]), L.Multiply()([a, b]), L.Average()([a, b]), L.Maximum()([a, b]), L.Minimum()([a, b]), L.Dot(1)([a, b]), L.Concatenate(0)([a, b]),
            L.multiply([a, b]), L.concatenate([a, b])]


def bidirectional_and_stacked():
    L = tf.keras.layers
    x = tf.reshape(tf.range(24, dtype=tf.float32), [2, 4, 3]) / 24
    k = dict(kernel_initializer="ones", recurrent_initializer="ones")
    return [L.Bidirectional(L.LSTM(2, return_sequences=True, **k))(x), L.Bidirectional(L.GRU(2, **k), merge_mode="sum")(x), L.SimpleRNN(2, **k)(x),
            L.LSTM(2, return_state=True, go_backwards=True, **k)(x), L.GRU(2, return_sequences=True, reset_after=False, **k)(x)]


def masked_lstm():
    L = tf.keras.layers
    ids = tf.constant([[1, 2, 0, 0], [3, 1, 2, 0]])
    e = L.Embedding(4, 3, mask_zero=True, embeddings_initializer="ones")
    x = e(ids)
    y = L.LSTM(2, kernel_initializer="ones", recurrent_initializer="ones")(x, mask=e.compute_mask(ids))
    m = tf.keras.Sequential([L.Embedding(4, 3, mask_zero=True, embeddings_initializer="ones"), L.LSTM(2, kernel_initializer="ones", recurrent_initializer="ones")])
    return y, m(ids)


def attention_layers():
    L = tf.keras.layers
    q = tf.reshape(tf.range(24, dtype=tf.float32), [2, 3, 4]) / 24
    a = L.MultiHeadAttention(2, 2, kernel_initializer="ones")
    y, s = a(q, q, return_attention_scores=True, use_causal_mask=True)
    return y, s, L.Attention()([q, q]), L.AdditiveAttention(use_scale=False)([q, q])


def normalizations():
    L = tf.keras.layers
    x = tf.reshape(tf.range(24, dtype=tf.float32), [2, 3, 4]) / 7
    b = L.BatchNormalization(momentum=0.5)
    y = b(x, training=True)
    return [y, b(x), b.moving_mean, b.moving_variance, L.LayerNormalization()(x), L.UnitNormalization()(x), L.GroupNormalization(2)(x), L.Normalization(mean=1.0, variance=4.0)(x), L.Rescaling(2.0, 1.0)(x)]


def convolutions():
    L = tf.keras.layers
    x = tf.reshape(tf.range(200, dtype=tf.float32), [2, 5, 5, 4]) / 100
    k = dict(kernel_initializer="ones")
    d = dict(depthwise_initializer="ones")
    return [L.Conv2D(3, 3, strides=2, **k)(x), L.Conv2D(2, 2, dilation_rate=2, padding="same", **k)(x), L.Conv2D(4, 3, groups=2, **k)(x), L.Conv2DTranspose(2, 3, strides=2, padding="same", **k)(x),
            L.DepthwiseConv2D(3, depth_multiplier=2, **d)(x), L.SeparableConv2D(3, 3, pointwise_initializer="ones", **d)(x), L.Conv1D(3, 2, padding="causal", **k)(x[:, 0]),
            L.AveragePooling2D(2, padding="same")(x), L.MaxPooling2D(3, strides=1)(x), L.ZeroPadding2D((1, 2))(x), L.Cropping2D(1)(x), L.UpSampling2D(2)(x), L.GlobalMaxPooling2D(keepdims=True)(x)]


def activations_by_name():
    x = tf.constant([-2.0, -0.5, 0.0, 0.5, 2.0, 7.0])
    names = "elu exponential gelu hard_sigmoid linear mish relu relu6 selu sigmoid silu softmax softplus softsign swish tanh leaky_relu log_softmax".split()
    return [tf.keras.activations.get(n)(x[None]) for n in names] + [tf.keras.layers.Activation(n)(x[None]) for n in ("relu", "softmax")]


def regularizers_and_constraints():
    L = tf.keras.layers
    d = L.Dense(2, kernel_initializer="ones", kernel_regularizer=tf.keras.regularizers.L2(0.1), bias_regularizer="l1", activity_regularizer=tf.keras.regularizers.L1(0.01),
                kernel_constraint=tf.keras.constraints.MaxNorm(1.0))
    y = d(tf.ones([3, 4]))
    m = tf.keras.Sequential([tf.keras.Input((4,)), d])
    m.compile(tf.keras.optimizers.SGD(0.1), "mse")
    m.fit(np.ones((4, 4), np.float32), np.zeros((4, 2), np.float32), verbose=0)
    return y, d.kernel


def optimizers_after_some_steps():
    out = {}
    O = tf.keras.optimizers
    for name, o in {"sgd": O.SGD(0.1, momentum=0.9, nesterov=True), "adam": O.Adam(0.1, amsgrad=True), "adamw": O.AdamW(0.1), "rms": O.RMSprop(0.1, centered=True, momentum=0.5), "adagrad": O.Adagrad(0.1),
                    "adadelta": O.Adadelta(1.0), "adamax": O.Adamax(0.1), "nadam": O.Nadam(0.1), "ftrl": O.Ftrl(0.1), "lion": O.Lion(0.01), "clip": O.SGD(0.1, clipnorm=0.5), "value": O.SGD(0.1, clipvalue=0.2),
                    "global": O.SGD(0.1, global_clipnorm=0.3), "decay": O.Adam(0.1, weight_decay=0.1)}.items():
        v = tf.Variable([1.0, -2.0, 3.0])
        for i in range(4):
            with tf.GradientTape() as t:
                loss = tf.reduce_sum(v * v) * (i + 1.0)
            o.apply_gradients([(t.gradient(loss, v), v)])
        out[name] = (v, o.iterations)
    return out


def optimizer_with_a_schedule_and_learning_rate_set():
    o = tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5))
    v = tf.Variable(1.0)
    seen = []
    for _ in range(3):
        o.apply_gradients([(tf.constant(1.0), v)])
        seen.append(float(v))
    p = tf.keras.optimizers.SGD(0.1)
    p.learning_rate = 0.01
    p.apply_gradients([(tf.constant(1.0), v)])
    p.learning_rate.assign(0.5)
    p.apply_gradients([(tf.constant(1.0), v)])
    return seen, v


def losses_by_name_and_reduction():
    y, p = tf.constant([[0.0, 1.0], [1.0, 0.0]]), tf.constant([[0.2, 0.8], [0.6, 0.4]])
    L = tf.keras.losses
    out = [L.get(n)(y, p) for n in ("mse", "mae", "mape", "msle", "binary_crossentropy", "categorical_crossentropy", "kl_divergence", "hinge", "squared_hinge", "categorical_hinge", "log_cosh", "poisson", "huber")]
    out += [c(reduction=r)(y, p) for c in (L.MeanSquaredError, L.BinaryCrossentropy, L.CategoricalCrossentropy, L.Huber, L.CosineSimilarity) for r in ("sum", "none", "sum_over_batch_size")]
    return out + [L.CategoricalCrossentropy(label_smoothing=0.1)(y, p), L.BinaryFocalCrossentropy()(y, p), L.CategoricalFocalCrossentropy()(y, p)]


def predict_in_batches_keeps_structure():
    x = tf.keras.Input((3,))
    m = tf.keras.Model(x, {"a": tf.keras.layers.Dense(1, kernel_initializer="ones")(x), "b": x * 2})
    return m.predict(np.ones((5, 3), np.float32), batch_size=2, verbose=0)


def train_and_test_on_batch():
    m = _ones_model()
    m.compile(tf.keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
    x, y = np.ones((4, 4), np.float32), np.ones((4, 1), np.float32)
    return m.train_on_batch(x, y), m.test_on_batch(x, y), m.predict_on_batch(x), m.evaluate(x, y, verbose=0, return_dict=True), m.train_on_batch(x, y, return_dict=True)


def subclassed_autoencoder_with_nested_models():
    class AE(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="relu", kernel_initializer="ones")])
            self.decoder = tf.keras.Sequential([tf.keras.layers.Dense(4, kernel_initializer="ones")])

        def call(self, x):
            return self.decoder(self.encoder(x))

    m = AE()
    m.compile("adam", "mse")
    x = np.ones((4, 4), np.float32)
    m.fit(x, x, verbose=0, epochs=2)
    m.save_weights("ae.weights.h5")
    n = AE()
    n(x)
    n.load_weights("ae.weights.h5")
    return np.allclose(m(x), n(x)), len(m.layers), m.encoder(x).shape


def learning_phase_of_dropout_and_noise():
    L = tf.keras.layers
    x = tf.ones([1000, 10])
    y = L.Dropout(0.5, seed=1)(x, training=True)
    return float(tf.reduce_mean(tf.cast(y == 0, tf.float32))) > 0.4, L.Dropout(0.5)(x)[0], L.GaussianNoise(0.1)(x)[0], L.SpatialDropout1D(0.5)(x[None])[0, 0], L.AlphaDropout(0.3)(x)[0]


def model_checkpoint_best_only():
    m = _ones_model()
    m.compile(tf.keras.optimizers.SGD(0.001), "mse")
    x, y = np.ones((4, 4), np.float32), np.ones((4, 1), np.float32)
    m.fit(x, y, epochs=3, verbose=0, callbacks=[tf.keras.callbacks.ModelCheckpoint("best.weights.h5", save_weights_only=True, save_best_only=True, monitor="loss")])
    n = _ones_model()
    n.load_weights("best.weights.h5")
    return np.allclose(n.get_weights()[0], m.get_weights()[0], atol=1e-2)


def gradient_of_a_functional_model_by_input():
    m = _ones_model()
    x = tf.Variable(tf.ones([2, 4]))
    with tf.GradientTape() as t:
        y = m(x)
    return t.gradient(y, x)


def fit_on_a_dataset_with_steps_and_validation_freq():
    m = _ones_model()
    m.compile(tf.keras.optimizers.SGD(1e-4), "mse")
    d = tf.data.Dataset.from_tensor_slices((np.ones((8, 4), np.float32), np.ones((8, 1), np.float32))).batch(2).repeat()
    v = tf.data.Dataset.from_tensor_slices((np.ones((4, 4), np.float32), np.ones((4, 1), np.float32))).batch(2)
    h = m.fit(d, steps_per_epoch=3, epochs=4, validation_data=v, validation_freq=2, verbose=0)
    return {k: len(x) for k, x in h.history.items()}


def sample_weights_in_a_dataset():
    m = _ones_model()
    m.compile(tf.keras.optimizers.SGD(1e-3), "mse")
    d = tf.data.Dataset.from_tensor_slices((np.ones((4, 4), np.float32), np.ones((4, 1), np.float32), np.array([1.0, 0.0, 2.0, 1.0], np.float32))).batch(2)
    return m.fit(d, epochs=2, verbose=0).history


def jit_compiled_model():
    m = _ones_model()
    m.compile(tf.keras.optimizers.SGD(1e-3), "mse", jit_compile=False, run_eagerly=False)
    x, y = np.ones((4, 4), np.float32), np.ones((4, 1), np.float32)
    return m.fit(x, y, epochs=2, verbose=0).history


def normalization_adapts():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    layer = tf.keras.layers.Normalization()
    layer.adapt(x)
    whole = tf.keras.layers.Normalization(axis=None, invert=True, mean=2.0, variance=4.0)
    return layer(x), whole(x)


def activity_regularization():
    layer = tf.keras.layers.ActivityRegularization(l1=0.1, l2=0.2)
    y = layer(tf.constant([[1.0, -2.0]]))
    return y, layer.losses


def pad_sequences():
    rows = [[1, 2, 3], [4], [], [5, 6, 7, 8]]
    pad = tf.keras.utils.pad_sequences
    return pad(rows), pad(rows, maxlen=2), pad(rows, maxlen=3, padding="post", truncating="post", value=-1), pad([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], dtype="float32")


def boolean_mask_in_a_train_step():
    class Masked(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                error = tf.boolean_mask(self(x) - y, y[:, 0] > 0)
                loss = tf.reduce_mean(error**2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"masked": loss}

    m = Masked()
    m.compile(tf.keras.optimizers.SGD(0.01))
    x = np.arange(12, dtype=np.float32).reshape(6, 2) / 10
    y = np.array([1, 0, 1, 1, 0, 1], np.float32)[:, None]
    return m.fit(x, y, batch_size=3, epochs=2, verbose=0, shuffle=False).history
