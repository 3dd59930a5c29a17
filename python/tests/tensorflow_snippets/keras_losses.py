# Losses and metrics.


def _y():
    return tf.constant([[0.0, 1.0], [1.0, 0.0]]), tf.constant([[0.3, 0.7], [0.6, 0.4]])


def mean_squared_error():
    t, p = _y()
    return tf.keras.losses.MeanSquaredError()(t, p), tf.keras.losses.mse(t, p), tf.keras.losses.MSE(t, p)


def mean_absolute_error():
    t, p = _y()
    return tf.keras.losses.MeanAbsoluteError()(t, p), tf.keras.losses.mae(t, p), tf.keras.losses.MAE(t, p)


def other_regressions():
    t, p = _y()
    k = tf.keras.losses
    return k.MeanAbsolutePercentageError()(t + 1.0, p), k.MeanSquaredLogarithmicError()(t, p), k.LogCosh()(t, p), k.Huber(delta=0.2)(t, p), k.huber(t, p)


def reductions():
    t, p = _y()
    k = tf.keras.losses
    return k.MeanSquaredError(reduction="sum")(t, p), k.MeanSquaredError(reduction="none")(t, p), k.MeanSquaredError(reduction=None)(t, p), k.MeanSquaredError(reduction="mean")(t, p)


def sample_weights():
    t, p = _y()
    k = tf.keras.losses
    return k.MeanSquaredError()(t, p, sample_weight=[1.0, 3.0]), k.MeanSquaredError(reduction="sum")(t, p, sample_weight=[[0.5], [2.0]])


def binary_crossentropy():
    t, p = _y()
    k = tf.keras.losses
    return k.BinaryCrossentropy()(t, p), k.binary_crossentropy(t, p), k.BinaryCrossentropy(from_logits=True)(t, p), k.BinaryCrossentropy(label_smoothing=0.1)(t, p)


def binary_crossentropy_at_the_ends():
    return tf.keras.losses.binary_crossentropy([[0.0, 1.0]], [[1.0, 1.0]])


def categorical_crossentropy():
    t, p = _y()
    k = tf.keras.losses
    return k.CategoricalCrossentropy()(t, p), k.categorical_crossentropy(t, p * 3.0), k.CategoricalCrossentropy(from_logits=True)(t, p), k.CategoricalCrossentropy(label_smoothing=0.2)(t, p)


def sparse_categorical_crossentropy():
    p = tf.constant([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    k = tf.keras.losses
    return k.SparseCategoricalCrossentropy()(tf.constant([1, 2]), p), k.sparse_categorical_crossentropy(tf.constant([1, 2]), p), k.SparseCategoricalCrossentropy(from_logits=True)(tf.constant([[1], [2]]), p)


def sparse_categorical_crossentropy_of_sequences():
    logits = tf.reshape(tf.range(12.0), [2, 2, 3]) / 7
    ids = tf.constant([[0, 1], [2, 2]])
    k = tf.keras.losses
    return k.sparse_categorical_crossentropy(ids, logits, from_logits=True), k.SparseCategoricalCrossentropy(from_logits=True)(ids, logits)


def sparse_categorical_crossentropy_ignores_a_class():
    p = tf.constant([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    return tf.keras.losses.sparse_categorical_crossentropy(tf.constant([1, -1]), p, ignore_class=-1)


def hinge_losses():
    t, p = tf.constant([[-1.0, 1.0]]), tf.constant([[0.4, 0.6]])
    k = tf.keras.losses
    return k.Hinge()(t, p), k.SquaredHinge()(t, p), k.CategoricalHinge()(tf.constant([[0.0, 1.0]]), p)


def divergences():
    t, p = tf.constant([[0.2, 0.8], [0.5, 0.5]]), tf.constant([[0.3, 0.7], [0.6, 0.4]])
    k = tf.keras.losses
    return k.KLDivergence()(t, p), k.KLD(t, p), k.Poisson()(t, p), k.CosineSimilarity()(t, p), k.cosine_similarity(t, p, axis=0)


def focal_losses():
    t, p = _y()
    k = tf.keras.losses
    return k.BinaryFocalCrossentropy()(t, p), k.CategoricalFocalCrossentropy()(t, p)


def losses_by_name():
    t, p = _y()
    return tf.keras.losses.get("mse")(t, p), tf.keras.losses.get("binary_crossentropy")(t, p)


def custom_loss():
    class Weighted(tf.keras.losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_mean(tf.abs(y_true - y_pred) * 3.0, axis=-1)

    t, p = _y()
    return Weighted()(t, p), Weighted(reduction="sum")(t, p)


def loss_of_ints_and_floats():
    return tf.keras.losses.MeanSquaredError()([[1, 2]], [[1.5, 2.5]]), tf.keras.losses.mse(np.array([1, 2]), np.array([1.0, 3.0], np.float32))


def gradient_of_losses():
    t, p = _y()
    out = []
    for loss in (tf.keras.losses.MeanSquaredError(), tf.keras.losses.BinaryCrossentropy(), tf.keras.losses.CategoricalCrossentropy(), tf.keras.losses.Huber()):
        with tf.GradientTape() as tape:
            tape.watch(p)
            y = loss(t, p)
        out.append(tape.gradient(y, p))
    return out


def mean_metric():
    m = tf.keras.metrics.Mean(name="loss")
    m.update_state(1.0)
    m.update_state([2.0, 4.0])
    a = m.result()
    m.reset_state()
    m(10.0)
    return a, m.result(), m.name


def mean_metric_weighted():
    m = tf.keras.metrics.Mean()
    m.update_state([1.0, 3.0], sample_weight=[3.0, 1.0])
    return m.result(), tf.keras.metrics.Sum()([1.0, 2.0])


def accuracy():
    m = tf.keras.metrics.Accuracy()
    m.update_state([1, 2, 3, 4], [1, 2, 0, 4])
    return m.result(), m([1], [0])


def sparse_categorical_accuracy():
    m = tf.keras.metrics.SparseCategoricalAccuracy()
    m.update_state([[2], [1]], [[0.1, 0.6, 0.3], [0.05, 0.95, 0.0]])
    return m.result(), tf.keras.metrics.sparse_categorical_accuracy([2, 1], [[0.1, 0.6, 0.3], [0.05, 0.95, 0.0]])


def categorical_accuracy():
    t, p = _y()
    return tf.keras.metrics.CategoricalAccuracy()(t, p), tf.keras.metrics.categorical_accuracy(t, p)


def binary_accuracy():
    return tf.keras.metrics.BinaryAccuracy()([[1], [1], [0], [0]], [[0.98], [1], [0], [0.6]]), tf.keras.metrics.BinaryAccuracy(threshold=0.7)([1, 0], [0.6, 0.6])


def top_k_accuracy():
    t = tf.constant([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    p = tf.constant([[0.1, 0.9, 0.8], [0.05, 0.95, 0.0]])
    return tf.keras.metrics.TopKCategoricalAccuracy(k=2)(t, p), tf.keras.metrics.SparseTopKCategoricalAccuracy(k=1)([2, 1], p)


def regression_metrics():
    t, p = _y()
    k = tf.keras.metrics
    return k.MeanSquaredError()(t, p), k.MeanAbsoluteError()(t, p), k.RootMeanSquaredError()(t, p), k.CosineSimilarity(axis=1)(t, p), k.R2Score()(t, p)


def loss_metrics():
    t, p = _y()
    k = tf.keras.metrics
    return k.BinaryCrossentropy()(t, p), k.CategoricalCrossentropy()(t, p), k.SparseCategoricalCrossentropy()(tf.constant([1, 0]), p), k.KLDivergence()(t, p)


def precision_and_recall():
    t, p = [0, 1, 1, 1], [1, 0, 1, 1]
    a, b = tf.keras.metrics.Precision(), tf.keras.metrics.Recall()
    a.update_state(t, p), b.update_state(t, p)
    return a.result(), b.result()


def precision_with_thresholds():
    m = tf.keras.metrics.Precision(thresholds=[0.2, 0.8])
    m.update_state([0, 1, 1], [0.3, 0.9, 0.1])
    return m.result()


def counts():
    t, p = [0, 1, 1, 0], [1, 0, 1, 0]
    k = tf.keras.metrics
    return k.TruePositives()(t, p), k.FalsePositives()(t, p), k.TrueNegatives()(t, p), k.FalseNegatives()(t, p)


@close(1e-3)
def auc():
    m = tf.keras.metrics.AUC()
    m.update_state([0, 0, 1, 1, 1], [0.1, 0.6, 0.5, 0.9, 0.4])
    return m.result()


def f1_score():
    m = tf.keras.metrics.F1Score(threshold=0.5)
    m.update_state([[1, 1, 1], [1, 0, 0], [1, 1, 0]], [[0.2, 0.6, 0.7], [0.2, 0.6, 0.6], [0.6, 0.8, 0.0]])
    return m.result()


def mean_iou():
    m = tf.keras.metrics.MeanIoU(num_classes=2)
    m.update_state([0, 0, 1, 1], [0, 1, 0, 1])
    return m.result()


def custom_metric():
    class Count(tf.keras.metrics.Metric):
        def __init__(self, name="count", **options):
            super().__init__(name=name, **options)
            self.n = self.add_weight(name="n", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.n.assign_add(tf.reduce_sum(tf.cast(y_true == y_pred, tf.float32)))

        def result(self):
            return self.n

    m = Count()
    m.update_state(tf.constant([1, 2]), tf.constant([1, 3]))
    m.update_state(tf.constant([5]), tf.constant([5]))
    a = float(m.result())
    m.reset_state()
    return a, float(m.result())


def metric_of_a_function():
    m = tf.keras.metrics.MeanMetricWrapper(lambda t, p: tf.abs(t - p), name="off")
    m.update_state(tf.constant([1.0, 2.0]), tf.constant([1.5, 4.0]))
    return m.result(), m.name


def metrics_by_name():
    return tf.keras.metrics.get("mae")([[1.0]], [[3.0]]), tf.keras.metrics.MSE([[1.0]], [[3.0]])


def metric_in_a_function():
    m = tf.keras.metrics.Mean()

    @tf.function
    def step(x):
        m.update_state(x)

    step(tf.constant(1.0)), step(tf.constant(3.0))
    return m.result()


def regularizers():
    r = tf.keras.regularizers
    x = tf.constant([[1.0, -2.0]])
    return r.L1(0.1)(x), r.L2(0.1)(x), r.L1L2(0.1, 0.2)(x), r.l1_l2(l1=0.1, l2=0.1)(x), r.l2()(x)
