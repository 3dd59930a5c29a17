# Names that the other files have no place for.


def segment_min_and_xdivy():
    return tf.math.unsorted_segment_min([4.0, 1.0, 3.0], [0, 1, 0], 2), tf.math.xdivy([0.0, 2.0], [0.0, 4.0]), tf.linalg.tensor_diag_part([[1, 2], [3, 4]])


def grad_pass_through():
    x = tf.Variable([0.2, 0.8])
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(tf.round)(x) * [1.0, 2.0]
    return y, tape.gradient(y, x)


def broadcast_dynamic_shape():
    return tf.broadcast_dynamic_shape(tf.constant([2, 1]), tf.constant([3]))


def scopes():
    with tf.init_scope():
        x = tf.constant(1)
    return x, isinstance(x.dtype, tf.DType)


def initializers_by_their_short_names():
    i = tf.keras.initializers
    makers = [i.glorot_uniform, i.glorot_normal, i.he_uniform, i.he_normal, i.lecun_uniform, i.lecun_normal, i.orthogonal, i.random_normal, i.random_uniform, i.variance_scaling]
    return [make()([4, 4]).shape for make in makers], tf.keras.initializers.GlorotUniform(seed=3)([2, 3]).shape


def pools_by_their_short_names():
    k = tf.keras.layers
    line, image = tf.reshape(tf.range(12.0), [1, 6, 2]), tf.reshape(tf.range(32.0), [1, 4, 4, 2])
    return (
        k.MaxPool1D(2)(line), k.AvgPool1D(3)(line), k.GlobalAvgPool1D()(line), k.GlobalMaxPool1D()(line), k.GlobalAvgPool2D()(image), k.GlobalMaxPool2D()(image),
    )


def convolutions_by_their_long_names():
    k = tf.keras.layers
    a = k.Convolution2D(2, 2, kernel_initializer="ones")(tf.ones([1, 3, 3, 1]))
    return a, k.Convolution1D(2, 2, kernel_initializer="ones")(tf.ones([1, 3, 1]))


def rescaling_and_encoding():
    k = tf.keras.layers
    return k.Rescaling(0.5, 1.0)(tf.constant([[2.0, 4.0]])), k.CategoryEncoding(num_tokens=4, output_mode="one_hot")(tf.constant([0, 3]))


def merges_by_function():
    a, b = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 5.0]])
    k = tf.keras.layers
    return k.average([a, b]), k.maximum([a, b]), k.minimum([a, b]), k.subtract([a, b]), k.dot([a, b], axes=1)


def simple_cell():
    cell = tf.keras.layers.SimpleRNNCell(2, kernel_initializer="ones", recurrent_initializer="ones")
    return cell(tf.constant([[0.1, 0.2]]), [tf.constant([[0.3, 0.4]])])


def spatial_dropout_of_images():
    y = tf.keras.layers.SpatialDropout2D(0.5)(tf.ones([4, 3, 3, 8]), training=True)
    return tf.reduce_all(y == y[:, :1, :1]), tf.keras.layers.SpatialDropout2D(0.5)(tf.ones([1, 2, 2, 1]))


def losses_as_functions():
    t, p = tf.constant([[0.0, 1.0], [1.0, 0.0]]), tf.constant([[0.3, 0.7], [0.6, 0.4]])
    k = tf.keras.losses
    return (
        k.mape(t + 1.0, p), k.MAPE(t + 1.0, p), k.msle(t, p), k.MSLE(t, p), k.hinge(t, p), k.squared_hinge(t, p), k.categorical_hinge(t, p), k.poisson(t, p),
        k.binary_focal_crossentropy(t, p), k.categorical_focal_crossentropy(t, p), k.kld(t, p),
    )


def metrics_as_functions():
    t, p = tf.constant([[0.0, 1.0], [1.0, 0.0]]), tf.constant([[0.3, 0.7], [0.6, 0.4]])
    k = tf.keras.metrics
    return k.binary_accuracy(t, p), k.top_k_categorical_accuracy(t, p, k=1), k.sparse_top_k_categorical_accuracy(tf.constant([1, 1]), p, k=1), k.LogCoshError()(t, p)


def hard_activations():
    a = tf.keras.activations
    x = tf.constant([-4.0, -1.0, 0.5, 4.0])
    return a.hard_silu(x), a.hard_swish(x)


def constraints_and_regularizers():
    c, x = tf.keras.constraints, tf.constant([[3.0, -4.0], [0.3, 0.4]])
    return c.MinMaxNorm(0.5, 1.0)(x), c.max_norm(1.0)(x), c.non_neg()(x), c.unit_norm()(x), tf.keras.regularizers.l1(0.2)(x)


def history_is_a_callback():
    m = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    m.compile("sgd", "mse")
    h = m.fit(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32), epochs=2, verbose=0)
    return isinstance(h, tf.keras.callbacks.History), h.params["epochs"], h.history["loss"]


def global_generator():
    tf.random.set_global_generator(tf.random.Generator.from_seed(4))
    a = tf.random.get_global_generator().normal([2])
    tf.random.set_global_generator(tf.random.Generator.from_seed(4))
    return tf.reduce_all(a == tf.random.get_global_generator().normal([2]))
