# Optimizers and schedules: the same few updates from the same values.


def _steps(optimizer, n=4):
    w, b = tf.Variable([1.0, -2.0, 3.0]), tf.Variable([[0.5]])
    for i in range(n):
        optimizer.apply_gradients([(w * 0.3 + float(i), w), (tf.constant([[0.2]]) * (i - 1.0), b)])
    return w, b, optimizer.iterations


def sgd():
    o = tf.keras.optimizers
    return _steps(o.SGD()), _steps(o.SGD(0.1)), _steps(o.SGD(learning_rate=0.1, momentum=0.9)), _steps(o.SGD(0.1, momentum=0.9, nesterov=True))


def adam():
    o = tf.keras.optimizers
    return _steps(o.Adam()), _steps(o.Adam(0.1)), _steps(o.Adam(learning_rate=0.1, beta_1=0.8, beta_2=0.9, epsilon=1e-3))


def adam_amsgrad():
    return _steps(tf.keras.optimizers.Adam(0.1, amsgrad=True))


def adamw():
    o = tf.keras.optimizers
    return _steps(o.AdamW(0.1)), _steps(o.AdamW(learning_rate=0.1, weight_decay=0.1))


def rmsprop():
    o = tf.keras.optimizers
    return _steps(o.RMSprop(0.1)), _steps(o.RMSprop(0.1, rho=0.8, momentum=0.9)), _steps(o.RMSprop(0.1, centered=True))


def adagrad():
    return _steps(tf.keras.optimizers.Adagrad(0.1))


def adadelta():
    return _steps(tf.keras.optimizers.Adadelta(1.0))


def adamax():
    return _steps(tf.keras.optimizers.Adamax(0.1))


def nadam():
    return _steps(tf.keras.optimizers.Nadam(0.1))


def ftrl():
    return _steps(tf.keras.optimizers.Ftrl(0.1))


def lion():
    return _steps(tf.keras.optimizers.Lion(0.1))


def clipping():
    o = tf.keras.optimizers
    return _steps(o.SGD(0.1, clipnorm=0.5)), _steps(o.SGD(0.1, clipvalue=0.3)), _steps(o.SGD(0.1, global_clipnorm=0.5))


def weight_decay():
    return _steps(tf.keras.optimizers.SGD(0.1, weight_decay=0.05)), _steps(tf.keras.optimizers.Adam(0.1, weight_decay=0.05))


def moving_average_of_weights():
    o = tf.keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    w, b, n = _steps(o)
    o.finalize_variable_values([w, b])
    return w, b


def gradient_accumulation():
    return _steps(tf.keras.optimizers.SGD(0.1, gradient_accumulation_steps=2))


def learning_rate_can_be_set():
    o = tf.keras.optimizers.SGD(0.1)
    v = tf.Variable(1.0)
    o.apply_gradients([(tf.constant(1.0), v)])
    o.learning_rate = 0.5
    o.apply_gradients([(tf.constant(1.0), v)])
    o.learning_rate.assign(0.01)
    return v, float(o.learning_rate)


def optimizers_by_name():
    return type(tf.keras.optimizers.get("adam")).__name__, _steps(tf.keras.optimizers.get("sgd"))


def none_gradients_are_skipped():
    o = tf.keras.optimizers.SGD(1.0)
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    o.apply_gradients([(tf.constant(0.5), a), (None, b)])
    return a, b


def apply_by_position():
    o = tf.keras.optimizers.Adam(0.1)
    v = tf.Variable([1.0, 2.0])
    o.build([v])
    o.apply([tf.constant([1.0, -1.0])])
    return v, len(o.variables)


def _sparse(rows):
    out = []
    for o in (tf.keras.optimizers.SGD(0.1), tf.keras.optimizers.Adam(0.1), tf.keras.optimizers.Adagrad(0.1)):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        for _ in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(table, rows) ** 2)
            o.apply_gradients(zip(tape.gradient(loss, [table]), [table]))
        out.append(table)
    return out


def sparse_gradients():
    return _sparse([0, 2])


def sparse_gradients_of_a_repeated_row():
    return _sparse([0, 2, 0])


def optimizer_in_a_function():
    o = tf.keras.optimizers.Adam(0.1)
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((v - x) ** 2)
        o.apply_gradients([(tape.gradient(loss, v), v)])
        return loss

    return [step(tf.constant([3.0, 3.0])) for _ in range(3)], v, o.iterations


def exponential_decay():
    s = tf.keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5)
    t = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5, staircase=True)
    return [s(i) for i in (0, 5, 10)], [t(i) for i in (0, 5, 10)]


def piecewise_constant_decay():
    s = tf.keras.optimizers.schedules.PiecewiseConstantDecay([2, 4], [1.0, 0.5, 0.1])
    return [s(i) for i in (0, 2, 3, 4, 5)]


def cosine_decay():
    s = tf.keras.optimizers.schedules.CosineDecay(0.1, 10, alpha=0.1)
    w = tf.keras.optimizers.schedules.CosineDecay(0.0, 10, warmup_target=0.1, warmup_steps=5)
    return [s(i) for i in (0, 5, 10, 20)], [w(i) for i in (0, 3, 5, 9)]


def cosine_restarts():
    s = tf.keras.optimizers.schedules.CosineDecayRestarts(0.1, 5)
    return [s(i) for i in (0, 3, 5, 9, 16)]


def polynomial_decay():
    s = tf.keras.optimizers.schedules.PolynomialDecay(0.1, 10, end_learning_rate=0.01, power=2.0)
    return [s(i) for i in (0, 5, 10, 15)]


def inverse_time_decay():
    s = tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 10, 0.5)
    return [s(i) for i in (0, 10)]


def schedule_in_an_optimizer():
    s = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    return _steps(tf.keras.optimizers.SGD(s)), _steps(tf.keras.optimizers.Adam(s))


def custom_schedule():
    class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return tf.minimum(0.1, 0.02 * (tf.cast(step, tf.float32) + 1.0))

    return _steps(tf.keras.optimizers.SGD(WarmUp()), 7)


def optimizer_config():
    o = tf.keras.optimizers.Adam(0.1)
    return o.get_config()["beta_1"], o.get_config()["epsilon"], tf.keras.optimizers.SGD().get_config()["momentum"]
