# Layers: each is built, given fixed weights and called.


def _fix(layer):
    """Sets the weights of a layer to fixed numbers that do not depend on the initializer."""
    values = []
    for i, w in enumerate(layer.get_weights()):
        n = int(np.prod(w.shape))
        values.append(((np.arange(n) * 7 + i * 3) % 11 / 11 - 0.4).reshape(w.shape).astype(w.dtype))
    layer.set_weights(values)
    return layer


def _run(layer, x, **options):
    layer.build(x.shape)
    _fix(layer)
    return layer(x, **options), [list(w.shape) for w in layer.get_weights()]


def _x(*shape):
    n = int(np.prod(shape))
    return tf.constant((np.arange(n) % 13 / 13 - 0.3).reshape(shape).astype(np.float32))


def dense():
    return _run(tf.keras.layers.Dense(3), _x(2, 4)), _run(tf.keras.layers.Dense(3, activation="relu", use_bias=False), _x(2, 2, 4))


def dense_attributes():
    d = tf.keras.layers.Dense(3, name="head")
    d(_x(2, 4))
    return d.units, d.name, d.kernel.shape, d.bias.shape, d.built, len(d.trainable_weights), d.count_params()


def dense_default_weights():
    d = tf.keras.layers.Dense(50)
    d(_x(2, 70))
    limit = (6 / 120) ** 0.5
    return bool(tf.reduce_max(tf.abs(d.kernel)) <= limit), bool(tf.math.reduce_std(d.kernel) > limit / 2), d.bias


def dense_activations():
    return [_run(tf.keras.layers.Dense(3, activation=a), _x(2, 4))[0] for a in (None, "tanh", "sigmoid", "softmax", "gelu", "elu", "selu", "softplus", "swish", tf.nn.relu)]


def embedding():
    return _run(tf.keras.layers.Embedding(5, 3), tf.constant([[1, 4], [0, 1]]))


def flatten_reshape_permute():
    x = _x(2, 3, 4)
    return tf.keras.layers.Flatten()(x), tf.keras.layers.Reshape((4, 3))(x), tf.keras.layers.Reshape([-1])(x), tf.keras.layers.Permute((2, 1))(x)


def repeat_vector():
    return tf.keras.layers.RepeatVector(2)(_x(2, 3))


def dropout_in_inference():
    x = _x(4, 5)
    return tf.keras.layers.Dropout(0.5)(x), tf.keras.layers.Dropout(0.5)(x, training=False)


def dropout_in_training():
    y = tf.keras.layers.Dropout(0.5)(tf.ones([1000]), training=True)
    return sorted(set(y.numpy().tolist())), bool(abs(float(tf.reduce_mean(y)) - 1) < 0.2)


def spatial_dropout_and_noise():
    y = tf.keras.layers.SpatialDropout1D(0.5)(tf.ones([8, 4, 6]), training=True)
    per_channel = tf.reduce_all(y == y[:, :1])
    return bool(per_channel), tf.keras.layers.GaussianNoise(0.1)(_x(2, 2)), tf.keras.layers.GaussianDropout(0.1)(_x(2, 2))


def conv2d():
    return _run(tf.keras.layers.Conv2D(2, 3), _x(1, 5, 5, 3)), _run(tf.keras.layers.Conv2D(2, (3, 2), strides=2, padding="same", activation="relu"), _x(1, 5, 5, 3))


def conv2d_dilated_and_grouped():
    return _run(tf.keras.layers.Conv2D(4, 2, dilation_rate=2), _x(1, 5, 5, 2)), _run(tf.keras.layers.Conv2D(4, 2, groups=2), _x(1, 4, 4, 2))


def conv1d():
    return _run(tf.keras.layers.Conv1D(3, 2), _x(2, 5, 2)), _run(tf.keras.layers.Conv1D(3, 2, padding="causal"), _x(2, 5, 2)), _run(tf.keras.layers.Conv1D(3, 3, strides=2, padding="same"), _x(2, 5, 2))


def depthwise_conv2d():
    return _run(tf.keras.layers.DepthwiseConv2D(2), _x(1, 4, 4, 3)), _run(tf.keras.layers.DepthwiseConv2D(2, depth_multiplier=2, padding="same"), _x(1, 4, 4, 2))


def separable_conv2d():
    return _run(tf.keras.layers.SeparableConv2D(3, 2), _x(1, 4, 4, 2))


def convolutions_of_other_axes():
    k = tf.keras.layers
    return (
        _run(k.Conv3D(3, 2, padding="same"), _x(1, 3, 4, 4, 2)), _run(k.Conv3D(4, (1, 2, 3), strides=(1, 2, 1), groups=2), _x(1, 3, 4, 4, 2)),
        _run(k.DepthwiseConv1D(2, depth_multiplier=2), _x(2, 5, 3)), _run(k.SeparableConv1D(3, 2, padding="same"), _x(2, 5, 3)),
    )


def transposed_convolutions():
    k = tf.keras.layers
    return (
        _run(k.Conv2DTranspose(3, 3, strides=2, padding="same"), _x(1, 4, 3, 2)), _run(k.Conv2DTranspose(3, 2, strides=3), _x(1, 3, 2, 2)),
        _run(k.Conv2DTranspose(2, (3, 4), strides=(1, 2), padding="same", output_padding=(0, 1)), _x(1, 3, 4, 2)), _run(k.Conv2DTranspose(2, 3), _x(1, 4, 3, 2)),
        _run(k.Conv1DTranspose(3, 4, strides=2, padding="same"), _x(2, 5, 2)), _run(k.Conv3DTranspose(2, 2, strides=2), _x(1, 2, 3, 2, 2)),
    )


def pools_and_sizes_of_volumes():
    k = tf.keras.layers
    x = _x(1, 4, 4, 6, 2)
    return (
        k.MaxPooling3D(2)(x), k.AveragePooling3D((1, 2, 3), strides=2, padding="same")(x), k.GlobalAveragePooling3D()(x), k.GlobalMaxPooling3D(keepdims=True)(x),
        k.UpSampling3D(2)(x), k.ZeroPadding3D((1, 0, (2, 1)))(x),
    )


@close(2e-5)
def up_sampling_and_resizing():
    k = tf.keras.layers
    return k.UpSampling2D((2, 3), interpolation="bilinear")(_x(1, 3, 4, 2)), k.Resizing(5, 7)(_x(1, 3, 4, 2)), k.Resizing(2, 3, interpolation="nearest")(_x(1, 5, 4, 2))


def pooling_2d():
    x = _x(1, 5, 5, 2)
    k = tf.keras.layers
    return k.MaxPooling2D()(x), k.AveragePooling2D(3, strides=2, padding="same")(x), k.MaxPool2D(2, 1)(x), k.AvgPool2D((2, 3))(x)


def pooling_1d():
    x = _x(2, 5, 2)
    k = tf.keras.layers
    return k.MaxPooling1D(2)(x), k.AveragePooling1D(2, padding="same")(x)


def global_pooling():
    k = tf.keras.layers
    return k.GlobalAveragePooling2D()(_x(2, 3, 3, 2)), k.GlobalMaxPooling2D()(_x(2, 3, 3, 2)), k.GlobalAveragePooling1D()(_x(2, 3, 2)), k.GlobalMaxPooling1D(keepdims=True)(_x(2, 3, 2))


def padding_and_cropping():
    k = tf.keras.layers
    x = _x(1, 3, 3, 1)
    return k.ZeroPadding2D(1)(x), k.ZeroPadding2D(((1, 0), (0, 2)))(x), k.Cropping2D(1)(x), k.ZeroPadding1D(1)(_x(1, 2, 2)), k.Cropping1D((1, 0))(_x(1, 3, 2))


def up_sampling():
    k = tf.keras.layers
    return k.UpSampling2D(2)(_x(1, 2, 2, 1)), k.UpSampling1D(2)(_x(1, 2, 2))


def batch_normalization_in_training():
    b = tf.keras.layers.BatchNormalization()
    x = _x(4, 3)
    y = b(x, training=True)
    return y, b.moving_mean, b.moving_variance, b(x, training=False), len(b.trainable_variables), len(b.non_trainable_variables)


def batch_normalization_options():
    b = tf.keras.layers.BatchNormalization(momentum=0.8, epsilon=1e-5, scale=False)
    x = _x(2, 3, 3, 2)
    return b(x, training=True), b.moving_mean, [w.shape for w in b.get_weights()]


def layer_normalization():
    return _run(tf.keras.layers.LayerNormalization(), _x(2, 5)), _run(tf.keras.layers.LayerNormalization(epsilon=1e-6, center=False), _x(2, 3, 4))


def layer_normalization_axes():
    return _run(tf.keras.layers.LayerNormalization(axis=[1, 2]), _x(2, 3, 4))


def group_normalization():
    return _run(tf.keras.layers.GroupNormalization(groups=2), _x(2, 3, 3, 4))


def unit_normalization():
    return tf.keras.layers.UnitNormalization()(_x(2, 3))


def rms_normalization():
    return _run(tf.keras.layers.RMSNormalization(), _x(2, 5))


def activation_layers():
    x = tf.constant([[-2.0, -0.5, 0.0, 1.5, 8.0]])
    k = tf.keras.layers
    return k.Activation("tanh")(x), k.ReLU()(x), k.ReLU(max_value=6.0, negative_slope=0.1)(x), k.LeakyReLU()(x), k.ELU()(x), k.Softmax()(x)


def prelu():
    return _run(tf.keras.layers.PReLU(), _x(2, 3))


def merging_layers():
    a, b = _x(2, 3), _x(2, 3) * 2.0
    k = tf.keras.layers
    return k.Add()([a, b]), k.Subtract()([a, b]), k.Multiply()([a, b]), k.Average()([a, b]), k.Maximum()([a, b]), k.Minimum()([a, b]), k.Concatenate()([a, b]), k.Concatenate(axis=0)([a, b])


def merging_functions():
    a, b = _x(2, 3), _x(2, 3) * 2.0
    k = tf.keras.layers
    return k.add([a, b]), k.concatenate([a, b], axis=1), k.multiply([a, b])


def dot():
    return tf.keras.layers.Dot(axes=1)([_x(2, 3), _x(2, 3)]), tf.keras.layers.Dot(axes=(2, 1))([_x(2, 3, 4), _x(2, 4, 2)])


def lambda_layer():
    return tf.keras.layers.Lambda(lambda x: x * 2.0 + 1.0)(_x(2, 2))


def lstm():
    return _run(tf.keras.layers.LSTM(3), _x(2, 4, 2)), _run(tf.keras.layers.LSTM(3, return_sequences=True), _x(2, 4, 2))


def lstm_states():
    l = tf.keras.layers.LSTM(2, return_sequences=True, return_state=True)
    x = _x(1, 3, 2)
    l.build(x.shape)
    _fix(l)
    y, h, c = l(x)
    return y, h, c, l(x, initial_state=[h, c])[0]


def lstm_backwards():
    return _run(tf.keras.layers.LSTM(2, go_backwards=True, return_sequences=True), _x(1, 3, 2))


def lstm_default_weights():
    l = tf.keras.layers.LSTM(4)
    l(_x(1, 2, 3))
    k, r, b = l.get_weights()
    return k.shape, np.round(r @ r.T, 4), b


def gru():
    return _run(tf.keras.layers.GRU(3), _x(2, 4, 2)), _run(tf.keras.layers.GRU(3, return_sequences=True, reset_after=False), _x(2, 4, 2))


def gru_states():
    l = tf.keras.layers.GRU(2, return_state=True)
    x = _x(1, 3, 2)
    l.build(x.shape)
    _fix(l)
    return l(x)


def simple_rnn():
    return _run(tf.keras.layers.SimpleRNN(3), _x(2, 4, 2)), _run(tf.keras.layers.SimpleRNN(3, activation="relu", return_sequences=True), _x(2, 4, 2))


def rnn_of_a_cell():
    l = tf.keras.layers.RNN(tf.keras.layers.LSTMCell(3), return_sequences=True)
    return _run(l, _x(2, 4, 2))


def rnn_cells():
    cell = tf.keras.layers.GRUCell(2)
    x, h = _x(1, 2), _x(1, 2)
    cell.build(x.shape)
    _fix(cell)
    y, states = cell(x, [h])
    return y, states


def bidirectional():
    l = tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(2, return_sequences=True))
    return _run(l, _x(1, 3, 2))


def bidirectional_sum():
    return _run(tf.keras.layers.Bidirectional(tf.keras.layers.GRU(2), merge_mode="sum"), _x(1, 3, 2))


def time_distributed():
    l = tf.keras.layers.TimeDistributed(tf.keras.layers.Dense(2))
    l(_x(2, 3, 4))
    _fix(l)
    return l(_x(2, 3, 4))


def multi_head_attention():
    l = tf.keras.layers.MultiHeadAttention(num_heads=2, key_dim=3)
    x = _x(2, 4, 5)
    l(x, x)
    _fix(l)
    return l(x, x), [w.shape for w in l.get_weights()], l(x, x, use_causal_mask=True)


def multi_head_attention_scores():
    l = tf.keras.layers.MultiHeadAttention(num_heads=2, key_dim=3, value_dim=4, output_shape=6)
    q, v = _x(1, 2, 5), _x(1, 3, 5)
    l(q, v)
    _fix(l)
    mask = tf.constant([[[True, False, True], [True, True, False]]])
    return l(q, v, attention_mask=mask, return_attention_scores=True)


def attention():
    return tf.keras.layers.Attention()([_x(1, 2, 3), _x(1, 4, 3)]), tf.keras.layers.Attention(use_scale=False)([_x(1, 2, 3), _x(1, 4, 3), _x(1, 4, 3) * 2.0])


def identity_and_masking_free():
    return tf.keras.layers.Identity()(_x(2, 2))


def custom_layer():
    class Scale(tf.keras.layers.Layer):
        def __init__(self, units, **options):
            super().__init__(**options)
            self.units = units

        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="ones", name="w")
            self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=False)

        def call(self, x):
            return tf.matmul(x, self.w) + self.b

    l = Scale(3)
    y = l(_x(2, 4))
    return y, len(l.trainable_weights), len(l.non_trainable_weights), len(l.weights), l.w.shape


def custom_layer_with_training():
    class Noise(tf.keras.layers.Layer):
        def call(self, x, training=False):
            return x + 1.0 if training else x

    l = Noise()
    return l(_x(2, 2)), l(_x(2, 2), training=True)


def nested_layers():
    class Block(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.a = tf.keras.layers.Dense(4, activation="relu")
            self.b = tf.keras.layers.Dense(2)
            self.list = [tf.keras.layers.Dense(2)]

        def call(self, x):
            return self.list[0](self.b(self.a(x)))

    l = Block()
    l(_x(2, 3))
    _fix(l)
    return l(_x(2, 3)), len(l.trainable_variables)


def trainable_off():
    d = tf.keras.layers.Dense(2)
    d(_x(1, 2))
    d.trainable = False
    return len(d.trainable_weights), len(d.non_trainable_weights), len(d.weights)


def get_and_set_weights():
    d = tf.keras.layers.Dense(2)
    d(_x(1, 3))
    d.set_weights([np.ones((3, 2)), np.array([1.0, 2.0])])
    return d.get_weights(), d(_x(1, 3))


def set_weights_of_another_shape_is_an_error():
    d = tf.keras.layers.Dense(2)
    d(_x(1, 3))
    d.set_weights([np.ones((2, 2)), np.zeros(2)])


def add_loss():
    class Penalty(tf.keras.layers.Layer):
        def call(self, x):
            self.add_loss(0.1 * tf.reduce_sum(x * x))
            return x

    l = Penalty()
    l(_x(2, 2))
    return l.losses


def regularized():
    d = tf.keras.layers.Dense(2, kernel_regularizer=tf.keras.regularizers.l2(0.1), bias_regularizer="l1")
    d(_x(1, 3))
    _fix(d)
    return d.losses


def constraints():
    c = tf.keras.constraints
    x = tf.constant([[3.0, -4.0], [0.3, 0.4]])
    return c.NonNeg()(x), c.MaxNorm(1.0)(x), c.UnitNorm()(x)


def initializers_fixed():
    i = tf.keras.initializers
    return i.Zeros()([2]), i.Ones()([2]), i.Constant(3.0)([2]), i.Identity()([2, 3]), i.get("zeros")([1])


def initializers_drawn():
    i = tf.keras.initializers
    out = []
    for make, scale in [
        (i.GlorotUniform(seed=1), (2 / 500) ** 0.5), (i.GlorotNormal(seed=1), (2 / 500) ** 0.5), (i.HeNormal(seed=1), (2 / 200) ** 0.5),
        (i.HeUniform(seed=1), (2 / 200) ** 0.5), (i.LecunNormal(seed=1), (1 / 200) ** 0.5), (i.LecunUniform(seed=1), (1 / 200) ** 0.5),
        (i.RandomNormal(stddev=0.5, seed=1), 0.5), (i.RandomUniform(-1.0, 1.0, seed=1), 3**-0.5), (i.TruncatedNormal(stddev=1.0, seed=1), 0.88),
        (i.VarianceScaling(scale=2.0, mode="fan_in", distribution="untruncated_normal", seed=1), 0.1),
    ]:
        w = make([200, 300])
        out.append((w.shape, bool(abs(float(tf.math.reduce_std(w)) / scale - 1) < 0.03)))
    return out


def initializer_orthogonal():
    w = tf.keras.initializers.Orthogonal(seed=1)([4, 4])
    return tf.round(tf.matmul(w, w, transpose_b=True) * 1000.0) / 1000.0 + 0.0


def activations():
    a = tf.keras.activations
    x = tf.constant([[-2.0, -0.5, 0.0, 1.5]])
    return [f(x) for f in (a.relu, a.sigmoid, a.tanh, a.softmax, a.softplus, a.softsign, a.elu, a.selu, a.gelu, a.swish, a.silu, a.linear, a.exponential, a.hard_sigmoid, a.leaky_relu, a.mish, a.relu6, a.log_softmax)]


def activations_by_name():
    return tf.keras.activations.get("relu")(tf.constant([-1.0, 1.0])), tf.keras.activations.get(None)(tf.constant([2.0])), tf.keras.activations.serialize(tf.keras.activations.relu)


def gradient_of_a_dense():
    d = tf.keras.layers.Dense(2, activation="tanh")
    x = _x(3, 4)
    d(x)
    _fix(d)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(d(x) ** 2)
    return tape.gradient(y, d.trainable_variables)


@close(1e-4)
def gradient_of_an_lstm():
    l = tf.keras.layers.LSTM(2)
    x = _x(1, 3, 2)
    l(x)
    _fix(l)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(l(x))
    return tape.gradient(y, l.trainable_variables)


def wrong_rank_is_an_error():
    return tf.keras.layers.Dense(2)(tf.constant(1.0))


def another_size_after_build_is_an_error():
    d = tf.keras.layers.Dense(2)
    d(_x(1, 3))
    return d(_x(1, 4))


def mixed_merge_is_an_error():
    return tf.keras.layers.Add()([_x(2, 3), _x(2, 4)])


def compute_output_shape():
    return tf.keras.layers.Dense(3).compute_output_shape((None, 4)), tf.keras.layers.Conv2D(2, 3).compute_output_shape((1, 5, 5, 3))


def layer_config():
    c = tf.keras.layers.Dense(3, activation="relu", name="d").get_config()
    return c["units"], c["activation"], c["use_bias"], c["name"]


def masking():
    m = tf.keras.layers.Masking(0.0)
    x = tf.constant([[[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]]])
    return m(x), m.compute_mask(x)


def embedding_mask_reaches_lstm():
    e, l = tf.keras.layers.Embedding(4, 2, mask_zero=True), tf.keras.layers.LSTM(2)
    ids = tf.constant([[1, 2, 0, 0], [3, 1, 2, 0]])
    e(ids), l(e(ids))
    _fix(e), _fix(l)
    return l(e(ids)), e.compute_mask(ids)
