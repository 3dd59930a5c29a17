# Models: made in three ways, trained from fixed weights, saved and summarized.


def _fix(model):
    values = []
    for i, w in enumerate(model.get_weights()):
        n = int(np.prod(w.shape))
        values.append(((np.arange(n) * 7 + i * 3) % 11 / 11 - 0.4).reshape(w.shape).astype(w.dtype))
    model.set_weights(values)
    return model


def _data(n=12, d=3):
    x = ((np.arange(n * d) * 5) % 17 / 17 - 0.4).reshape(n, d).astype(np.float32)
    return x, (x.sum(1, keepdims=True) * 2 - 0.3).astype(np.float32)


def _mlp(d=3):
    return _fix(tf.keras.Sequential([tf.keras.Input((d,)), tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)]))


def sequential():
    m = _mlp()
    x, _ = _data()
    return m(x), len(m.layers), len(m.trainable_variables), m.count_params(), m.input_shape, m.output_shape


def sequential_built_by_a_call():
    m = tf.keras.Sequential()
    m.add(tf.keras.layers.Dense(2, activation="relu"))
    m.add(tf.keras.layers.Dense(1))
    m(tf.zeros([1, 3]))
    _fix(m)
    m.pop()
    return m(tf.ones([1, 3])), len(m.weights)


def sequential_with_names():
    m = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3, name="hidden"), tf.keras.layers.Dense(1, name="out")], name="net")
    return m.name, [l.name for l in m.layers], m.get_layer("hidden").units, [w.name for w in m.weights]


def functional():
    a, b = tf.keras.Input(shape=(3,)), tf.keras.Input(shape=(2,), name="b")
    h = tf.keras.layers.Dense(4, activation="relu")(a)
    j = tf.keras.layers.Concatenate()([h, b])
    m = tf.keras.Model(inputs=[a, b], outputs=tf.keras.layers.Dense(1)(j))
    _fix(m)
    return m([tf.ones([2, 3]), tf.ones([2, 2])]), len(m.layers), m.count_params()


def functional_with_arithmetic():
    a = tf.keras.Input((3,))
    h = tf.keras.layers.Dense(3)(a)
    m = tf.keras.Model(a, tf.keras.layers.Add()([h * 2.0, a]) + 1.0)
    _fix(m)
    return m(tf.ones([2, 3]))


def functional_with_two_outputs():
    a = tf.keras.Input((3,))
    h = tf.keras.layers.Dense(2)(a)
    m = tf.keras.Model(a, [h, tf.keras.layers.Dense(1)(h)])
    _fix(m)
    return m(tf.ones([2, 3]))


def functional_with_shared_layers():
    a, b = tf.keras.Input((2,)), tf.keras.Input((2,))
    d = tf.keras.layers.Dense(2)
    m = tf.keras.Model([a, b], tf.keras.layers.Subtract()([d(a), d(b)]))
    _fix(m)
    return m([tf.ones([1, 2]), tf.zeros([1, 2])]), len(m.trainable_weights)


def model_inside_a_model():
    inner = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    a = tf.keras.Input((3,))
    m = tf.keras.Model(a, tf.keras.layers.Dense(1)(inner(a)))
    _fix(m)
    return m(tf.ones([1, 3])), len(m.trainable_weights)


def features_of_a_model():
    m = _mlp()
    features = tf.keras.Model(m.inputs, m.layers[0].output)
    return features(tf.ones([2, 3]))


def subclass():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = tf.keras.layers.Dense(4, activation="relu")
            self.out = tf.keras.layers.Dense(1)

        def call(self, x, training=False):
            return self.out(self.hidden(x))

    m = Net()
    m(tf.zeros([1, 3]))
    _fix(m)
    return m(tf.ones([2, 3])), len(m.trainable_variables), [l.name for l in m.layers] != []


@close(1e-4)
def fit():
    m = _mlp()
    x, y = _data()
    m.compile(optimizer="sgd", loss="mse", metrics=["mae"])
    h = m.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0)
    return h.history, h.epoch, m.get_weights()


@close(1e-4)
def fit_adam():
    m = _mlp()
    x, y = _data()
    m.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss=tf.keras.losses.MeanSquaredError())
    h = m.fit(x, y, batch_size=5, epochs=4, shuffle=False, verbose=0)
    return h.history["loss"], m.get_weights()


@close(1e-4)
def fit_with_validation():
    m = _mlp()
    x, y = _data()
    m.compile("adam", "mse", metrics=[tf.keras.metrics.MeanAbsoluteError(name="off")])
    h = m.fit(x, y, epochs=2, batch_size=4, validation_data=(x[:4], y[:4]), shuffle=False, verbose=0)
    return {k: v for k, v in h.history.items()}


@close(1e-4)
def fit_with_validation_split():
    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse")
    return m.fit(x, y, epochs=2, batch_size=4, validation_split=0.25, shuffle=False, verbose=0).history


@close(1e-4)
def fit_a_dataset():
    m = _mlp()
    ds = tf.data.Dataset.from_tensor_slices(_data()).batch(4)
    m.compile("sgd", "mse")
    return m.fit(ds, epochs=2, verbose=0).history["loss"], m.evaluate(ds, verbose=0)


@close(1e-4)
def fit_with_steps():
    m = _mlp()
    ds = tf.data.Dataset.from_tensor_slices(_data()).batch(4).repeat()
    m.compile("sgd", "mse")
    return m.fit(ds, epochs=2, steps_per_epoch=2, verbose=0).history["loss"]


@close(1e-4)
def fit_with_sample_and_class_weights():
    x, y = _data()
    a, b = _mlp(), _mlp()
    a.compile("sgd", "mse")
    b.compile("sgd", "mse")
    h = a.fit(x, y, batch_size=4, sample_weight=np.arange(12, dtype=np.float32), shuffle=False, verbose=0)
    c = b.fit(x, (y > 0).astype(np.int32), batch_size=4, class_weight={0: 1.0, 1: 3.0}, shuffle=False, verbose=0)
    return h.history["loss"], c.history["loss"], a.get_weights()[0], b.get_weights()[0]


@close(1e-4)
def fit_a_classifier():
    x = ((np.arange(60) * 7) % 23 / 23).reshape(20, 3).astype(np.float32)
    y = (np.arange(20) * 3) % 4
    m = _fix(tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(4, "softmax")]))
    m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    h = m.fit(x, y, batch_size=5, epochs=3, shuffle=False, verbose=0)
    return h.history, m.predict(x[:3], verbose=0)


@close(1e-4)
def fit_a_binary_classifier():
    x, y = _data()
    m = _fix(tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1, "sigmoid")]))
    m.compile("rmsprop", "binary_crossentropy", metrics=["accuracy"])
    return m.fit(x, (y > 0).astype(np.float32), batch_size=4, epochs=2, shuffle=False, verbose=0).history


@close(1e-4)
def fit_one_hot_labels():
    x = ((np.arange(30) * 7) % 23 / 23).reshape(10, 3).astype(np.float32)
    y = np.eye(2, dtype=np.float32)[(np.arange(10) // 3) % 2]
    m = _fix(tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)]))
    m.compile("sgd", tf.keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return m.fit(x, y, batch_size=5, epochs=2, shuffle=False, verbose=0).history


@close(1e-3)
def fit_a_convolution():
    x = ((np.arange(8 * 36) * 5) % 19 / 19).reshape(8, 6, 6, 1).astype(np.float32)
    y = np.arange(8) % 3
    m = tf.keras.Sequential([
        tf.keras.Input((6, 6, 1)), tf.keras.layers.Conv2D(2, 3, activation="relu"), tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.BatchNormalization(), tf.keras.layers.Flatten(), tf.keras.layers.Dense(3),
    ])
    _fix(m)
    m.layers[2].set_weights([np.ones(2), np.zeros(2), np.zeros(2), np.ones(2)])
    m.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    h = m.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0)
    return h.history["loss"], m.layers[2].moving_mean, m.predict(x[:2], verbose=0)


@close(1e-3)
def fit_an_lstm():
    x = ((np.arange(6 * 4 * 2) * 5) % 13 / 13).reshape(6, 4, 2).astype(np.float32)
    y = x.sum((1, 2))[:, None]
    m = _fix(tf.keras.Sequential([tf.keras.Input((4, 2)), tf.keras.layers.LSTM(3), tf.keras.layers.Dense(1)]))
    m.compile(tf.keras.optimizers.Adam(0.01), "mse")
    return m.fit(x, y, batch_size=3, epochs=2, shuffle=False, verbose=0).history["loss"], m.get_weights()[1]


@close(1e-3)
def fit_an_embedding():
    x = (np.arange(24) * 5 % 9).reshape(6, 4)
    y = np.arange(6) % 2
    m = _fix(tf.keras.Sequential([tf.keras.Input((4,), dtype="int32"), tf.keras.layers.Embedding(9, 3), tf.keras.layers.GlobalAveragePooling1D(), tf.keras.layers.Dense(1, "sigmoid")]))
    m.compile(tf.keras.optimizers.SGD(0.5), "binary_crossentropy")
    return m.fit(x, y, batch_size=3, epochs=2, shuffle=False, verbose=0).history["loss"], m.get_weights()[0]


@close(1e-4)
def evaluate():
    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse", metrics=["mae"])
    return m.evaluate(x, y, batch_size=5, verbose=0), m.evaluate(x, y, verbose=0, return_dict=True)


def predict():
    m = _mlp()
    x, _ = _data()
    return m.predict(x, verbose=0), m.predict(x, batch_size=5, verbose=0).shape, m.predict_on_batch(x[:2])


def predict_a_dataset():
    m = _mlp()
    return m.predict(tf.data.Dataset.from_tensor_slices(_data()[0]).batch(5), verbose=0)


@close(1e-4)
def train_on_batch():
    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse", metrics=["mae"])
    a = m.train_on_batch(x, y)
    b = m.train_on_batch(x, y, return_dict=True)
    return a, b, m.test_on_batch(x, y)


def fit_before_compile_is_an_error():
    x, y = _data()
    return _mlp().fit(x, y, verbose=0)


def save_and_load_weights():
    m, other = _mlp(), _mlp()
    x, _ = _data()
    m.save_weights("training_m.weights.h5")
    other.set_weights([w * 0 for w in other.get_weights()])
    other.load_weights("training_m.weights.h5")
    return other(x), bool(tf.reduce_all(other(x) == m(x)))


def checkpoint_of_a_model():
    m, other = _mlp(), _mlp()
    path = tf.train.Checkpoint(model=m).save("training_ckpt")
    other.set_weights([w * 0 for w in other.get_weights()])
    tf.train.Checkpoint(model=other).restore(path)
    x, _ = _data()
    return bool(tf.reduce_all(other(x) == m(x)))


def summary():
    lines = []
    _mlp().summary(print_fn=lambda line, **options: lines.append(line))
    text = "\n".join(lines)
    return "Total params: 21" in text, "Trainable params: 21" in text, "Non-trainable params: 0" in text


@close(1e-4)
def custom_training_loop():
    m = _mlp()
    x, y = _data()
    o = tf.keras.optimizers.SGD(0.1)
    loss_fn = tf.keras.losses.MeanSquaredError()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, m(x, training=True))
        g = tape.gradient(loss, m.trainable_variables)
        o.apply_gradients(zip(g, m.trainable_variables))
        return loss

    return [step(x, y) for _ in range(4)], m.get_weights()


@close(1e-4)
def custom_train_step():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.d = tf.keras.layers.Dense(1)

        def call(self, x):
            return self.d(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            g = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(g, self.trainable_variables))
            return {"loss": loss, "twice": loss * 2.0}

    m = Net()
    m(tf.zeros([1, 3]))
    _fix(m)
    x, y = _data()
    m.compile(optimizer="sgd")
    h = m.fit(x, y, batch_size=12, epochs=2, shuffle=False, verbose=0)
    return h.history, m.get_weights()


@close(1e-4)
def add_loss_in_a_model():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.d = tf.keras.layers.Dense(1)

        def call(self, x):
            y = self.d(x)
            self.add_loss(0.5 * tf.reduce_mean(y * y))
            return y

    m = Net()
    m(tf.zeros([1, 3]))
    _fix(m)
    x, y = _data()
    m.compile("sgd", "mse")
    return m.fit(x, y, batch_size=12, epochs=2, shuffle=False, verbose=0).history["loss"]


@close(1e-4)
def regularized_training():
    m = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_regularizer=tf.keras.regularizers.L2(0.1))])
    _fix(m)
    x, y = _data()
    m.compile("sgd", "mse")
    return m.fit(x, y, batch_size=6, epochs=2, shuffle=False, verbose=0).history["loss"], len(m.losses), m.get_weights()


@close(1e-4)
def two_outputs_with_two_losses():
    a = tf.keras.Input((3,))
    h = tf.keras.layers.Dense(4, "tanh")(a)
    m = tf.keras.Model(a, [tf.keras.layers.Dense(1, name="p")(h), tf.keras.layers.Dense(2, name="q")(h)])
    _fix(m)
    x, y = _data()
    z = np.concatenate([y, -y], 1)
    m.compile("sgd", loss=["mse", "mae"], loss_weights=[1.0, 0.5])
    h = m.fit(x, [y, z], batch_size=6, epochs=2, shuffle=False, verbose=0)
    return h.history, m.get_weights()[0]


@close(1e-4)
def outputs_by_name():
    a, b = tf.keras.Input((3,), name="a"), tf.keras.Input((2,), name="b")
    h = tf.keras.layers.Dense(4, "tanh")(tf.keras.layers.Concatenate()([a, b]))
    m = tf.keras.Model([a, b], {"p": tf.keras.layers.Dense(1, name="p")(h), "q": tf.keras.layers.Dense(2, name="q")(h)})
    _fix(m)
    x, y = _data()
    m.compile("sgd", loss={"p": "mse", "q": "mae"}, loss_weights={"p": 1.0, "q": 0.5})
    history = m.fit([x, x[:, :2]], {"p": y, "q": np.concatenate([y, -y], 1)}, batch_size=6, epochs=5, initial_epoch=3, shuffle=False, verbose=0)
    return {name: values for name, values in sorted(history.history.items())}, history.epoch


# ---- mixed precision ----


def policies():
    p = tf.keras.mixed_precision.Policy("mixed_bfloat16")
    layer = tf.keras.layers.Dense(2, dtype=p)
    y = layer(tf.ones([2, 3]))
    head = tf.keras.layers.Dense(1, dtype="float32")
    return p.name, p.compute_dtype, p.variable_dtype, str(y.dtype).split("'")[-2] if "'" in str(y.dtype) else str(y.dtype), layer.compute_dtype, layer.variable_dtype, head(y).dtype == tf.float32


def global_policy():
    before = tf.keras.mixed_precision.global_policy().name
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        layer = tf.keras.layers.Dense(2)
        y = layer(tf.ones([2, 3]))
        return before, layer.dtype_policy.name, y.dtype == tf.float16, tf.as_dtype(layer.kernel.dtype).name
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")


@close(0.02)
def training_in_bfloat16():
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        m = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.LayerNormalization(), tf.keras.layers.Dense(1, dtype="float32")])
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    _fix(m)
    x, y = _data()
    m.compile("sgd", "mse")
    return m.fit(x, y, batch_size=6, epochs=4, shuffle=False, verbose=0).history["loss"], m.get_weights()


@close(1e-3)
def a_scaled_loss():
    v = tf.Variable([1.0, -2.0])
    o = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1), initial_scale=8.0, dynamic_growth_steps=2)
    seen = []
    for factor in (1.0, 1.0, float("inf"), 1.0, 1.0, 1.0):
        with tf.GradientTape() as tape:
            loss = o.scale_loss(tf.reduce_sum(v * v) * factor)
        o.apply_gradients([(tape.gradient(loss, v), v)])
        seen.append((float(o.dynamic_scale), np.array(v), int(o.iterations)))
    return seen


def float16_models_scale_their_loss():
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        m = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(1, dtype="float32")])
        m.compile("sgd", "mse")
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    return type(m.optimizer).__name__, float(m.optimizer.initial_scale)


@close(1e-4)
def frozen_layers():
    m = _mlp()
    m.layers[0].trainable = False
    before = m.layers[0].get_weights()[0]
    x, y = _data()
    m.compile("sgd", "mse")
    m.fit(x, y, epochs=1, batch_size=12, shuffle=False, verbose=0)
    return len(m.trainable_variables), bool(np.all(before == m.layers[0].get_weights()[0])), m.layers[1].get_weights()


@close(1e-4)
def early_stopping():
    m = _mlp()
    x, y = _data()
    m.compile(tf.keras.optimizers.SGD(5.0), "mse")
    stop = tf.keras.callbacks.EarlyStopping(monitor="loss", patience=2, restore_best_weights=True)
    h = m.fit(x, y, epochs=20, batch_size=12, shuffle=False, verbose=0, callbacks=[stop])
    return len(h.history["loss"]), stop.stopped_epoch


@close(1e-4)
def learning_rate_scheduler():
    m = _mlp()
    x, y = _data()
    m.compile(tf.keras.optimizers.SGD(0.1), "mse")
    c = tf.keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.5)
    h = m.fit(x, y, epochs=3, batch_size=6, shuffle=False, verbose=0, callbacks=[c])
    return h.history["loss"], h.history["learning_rate"]


@close(1e-4)
def reduce_on_plateau():
    m = _mlp()
    x, y = _data()
    m.compile(tf.keras.optimizers.SGD(0.0), "mse")
    m.optimizer.learning_rate = 1e-9
    c = tf.keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.1, patience=1, min_delta=1e-3)
    m.fit(x, y, epochs=4, batch_size=12, shuffle=False, verbose=0, callbacks=[c])
    return float(m.optimizer.learning_rate) < 1e-9


def model_checkpoint():
    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse")
    c = tf.keras.callbacks.ModelCheckpoint("training_best.weights.h5", save_weights_only=True, monitor="loss", save_best_only=True)
    m.fit(x, y, epochs=2, verbose=0, callbacks=[c])
    other = _mlp()
    other.load_weights("training_best.weights.h5")
    return bool(tf.reduce_all(other(x) == m(x)))


def callbacks_are_called():
    seen = []

    class Log(tf.keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            seen.append("begin")

        def on_epoch_begin(self, epoch, logs=None):
            seen.append(f"epoch {epoch}")

        def on_train_batch_end(self, batch, logs=None):
            seen.append(f"batch {batch} {sorted(logs)}")

        def on_epoch_end(self, epoch, logs=None):
            seen.append(f"end {epoch} {sorted(logs)} {self.model is not None}")

        def on_train_end(self, logs=None):
            seen.append("done")

    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse", metrics=["mae"])
    m.fit(x, y, epochs=2, batch_size=6, verbose=0, callbacks=[Log()])
    return seen


def lambda_callback_and_stop():
    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse")

    class Stop(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = epoch == 1

    ended = []
    c = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: ended.append(epoch))
    h = m.fit(x, y, epochs=10, verbose=0, callbacks=[c, Stop()])
    return len(h.epoch), ended


def terminate_on_nan():
    m = _mlp()
    x, y = _data()
    m.compile(tf.keras.optimizers.SGD(1e30), "mse")
    h = m.fit(x, y, epochs=10, batch_size=4, verbose=0, callbacks=[tf.keras.callbacks.TerminateOnNaN()])
    return len(h.epoch)


def csv_logger():
    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse")
    m.fit(x, y, epochs=2, batch_size=12, shuffle=False, verbose=0, callbacks=[tf.keras.callbacks.CSVLogger("training.csv")])
    lines = open("training.csv").read().split()
    return lines[0], len(lines)


@close(1e-4)
def initial_epoch_and_again():
    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse")
    a = m.fit(x, y, epochs=2, batch_size=12, shuffle=False, verbose=0)
    b = m.fit(x, y, epochs=4, initial_epoch=2, batch_size=12, shuffle=False, verbose=0)
    return a.history["loss"], b.history["loss"], b.epoch


@close(1e-4)
def run_eagerly():
    m = _mlp()
    x, y = _data()
    m.compile("sgd", "mse", run_eagerly=True)
    return m.fit(x, y, epochs=2, batch_size=4, shuffle=False, verbose=0).history["loss"]


def clone_model():
    m = _mlp()
    c = tf.keras.models.clone_model(m)
    return [w.shape for w in c.get_weights()], len(c.layers)


def to_categorical():
    return tf.keras.utils.to_categorical([0, 2, 1]), tf.keras.utils.to_categorical([1], num_classes=4), tf.keras.utils.normalize(np.array([[3.0, 4.0]]))


def set_random_seed():
    tf.keras.utils.set_random_seed(3)
    a = tf.keras.layers.Dense(2)
    a(tf.zeros([1, 2]))
    tf.keras.utils.set_random_seed(3)
    b = tf.keras.layers.Dense(2)
    b(tf.zeros([1, 2]))
    return bool(tf.reduce_all(a.kernel == b.kernel))


def backend():
    k = tf.keras.backend
    k.clear_session()
    return k.epsilon(), k.floatx(), k.image_data_format()


def float64_model():
    m = tf.keras.Sequential([tf.keras.layers.Dense(2, dtype="float64")])
    m(tf.zeros([1, 3], tf.float64))
    _fix(m)
    return m(tf.ones([1, 3], tf.float64))


@close(1e-3)
def transformer_block():
    class Block(tf.keras.layers.Layer):
        def __init__(self, d):
            super().__init__()
            self.att = tf.keras.layers.MultiHeadAttention(2, d // 2)
            self.up = tf.keras.layers.Dense(d * 2, activation="gelu")
            self.down = tf.keras.layers.Dense(d)
            self.n1 = tf.keras.layers.LayerNormalization(epsilon=1e-6)
            self.n2 = tf.keras.layers.LayerNormalization(epsilon=1e-6)

        def call(self, x, training=False):
            n = self.n1(x)
            x = x + self.att(n, n, use_causal_mask=True)
            return x + self.down(self.up(self.n2(x)))

    b = Block(4)
    x = tf.constant(((np.arange(24) * 5) % 13 / 13).reshape(1, 6, 4).astype(np.float32))
    b(x)
    _fix(b)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(b(x, training=True) ** 2)
    g = tape.gradient(loss, b.trainable_variables)
    return b(x), loss, g[0]


@close(1e-3)
def autoencoder_with_a_sampler():
    class Sampling(tf.keras.layers.Layer):
        def call(self, inputs):
            mean, log_var = inputs
            return mean + tf.exp(0.5 * log_var) * 0.1

    a = tf.keras.Input((3,))
    h = tf.keras.layers.Dense(4, activation="relu")(a)
    mean, log_var = tf.keras.layers.Dense(2)(h), tf.keras.layers.Dense(2)(h)
    z = Sampling()([mean, log_var])
    m = tf.keras.Model(a, tf.keras.layers.Dense(3)(z))
    _fix(m)
    x, _ = _data()
    m.compile("adam", "mse")
    return m.fit(x, x, batch_size=6, epochs=2, shuffle=False, verbose=0).history["loss"]
