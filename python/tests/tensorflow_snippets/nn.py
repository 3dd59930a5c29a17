# tf.nn.


def activations():
    x = tf.constant([-2.0, -0.5, 0.0, 0.5, 7.0])
    return tf.nn.relu(x), tf.nn.relu6(x), tf.nn.elu(x), tf.nn.selu(x), tf.nn.leaky_relu(x), tf.nn.leaky_relu(x, alpha=0.1)


def smooth_activations():
    x = tf.constant([-2.0, -0.5, 0.0, 0.5, 3.0])
    return tf.nn.gelu(x), tf.nn.gelu(x, approximate=True), tf.nn.silu(x), tf.nn.swish(x), tf.nn.softplus(x), tf.nn.softsign(x)


def sigmoid_tanh():
    x = tf.constant([-2.0, 0.5])
    return tf.nn.sigmoid(x), tf.nn.tanh(x), tf.nn.crelu(x)


def softmax():
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    return tf.nn.softmax(x), tf.nn.softmax(x, axis=0), tf.nn.log_softmax(x), tf.nn.log_softmax(x, 0)


def softmax_of_ints_is_an_error():
    return tf.nn.softmax(tf.constant([1, 2]))


def softmax_cross_entropy():
    labels, logits = tf.constant([[0.0, 1.0], [0.3, 0.7]]), tf.constant([[1.0, 2.0], [3.0, 1.0]])
    return tf.nn.softmax_cross_entropy_with_logits(labels, logits), tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, axis=0)


def sparse_softmax_cross_entropy():
    return tf.nn.sparse_softmax_cross_entropy_with_logits([1, 0], [[1.0, 2.0], [3.0, 1.0]])


def sparse_softmax_cross_entropy_of_sequences():
    logits = tf.reshape(tf.range(12.0), [2, 2, 3]) / 5
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[0, 1], [2, 2]], logits=logits)


def sigmoid_cross_entropy():
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=[0.0, 1.0, 0.5], logits=[-3.0, 100.0, 0.0])


def weighted_cross_entropy():
    return tf.nn.weighted_cross_entropy_with_logits(labels=[0.0, 1.0], logits=[-3.0, 1.5], pos_weight=2.0)


def log_poisson_loss():
    return tf.nn.log_poisson_loss([1.0, 2.0], [0.5, 0.1])


def bias_add():
    return tf.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]), tf.nn.bias_add(tf.zeros([1, 2, 1]), [1.0, 2.0], data_format="NCHW")


def moments():
    return tf.nn.moments(tf.constant([[1.0, 2.0], [3.0, 6.0]]), axes=[0]), tf.nn.moments(tf.ones([2, 2]), [0, 1], keepdims=True)


def batch_normalization():
    x = tf.constant([[1.0, 2.0], [3.0, 6.0]])
    mean, variance = tf.constant([2.0, 4.0]), tf.constant([1.0, 4.0])
    return tf.nn.batch_normalization(x, mean, variance, tf.constant([0.1, 0.2]), tf.constant([1.0, 2.0]), 1e-3)


def batch_normalization_without_scale():
    return tf.nn.batch_normalization(tf.ones([2, 2]), 0.5, 4.0, None, None, 0.0)


def l2_loss():
    return tf.nn.l2_loss([3.0, 4.0]), tf.nn.l2_normalize([3.0, 4.0], axis=0)


def embedding_lookup():
    return tf.nn.embedding_lookup(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [[2, 0]])


def conv2d():
    x, w = tf.reshape(tf.range(32.0), [1, 4, 4, 2]), tf.reshape(tf.range(24.0), [2, 2, 2, 3]) / 10
    return tf.nn.conv2d(x, w, 1, "VALID"), tf.nn.conv2d(x, w, strides=[1, 2, 2, 1], padding="SAME"), tf.nn.conv2d(x, w, [2, 1], "SAME")


def conv2d_dilated():
    x, w = tf.reshape(tf.range(25.0), [1, 5, 5, 1]), tf.ones([2, 2, 1, 1])
    return tf.nn.conv2d(x, w, 1, "VALID", dilations=2), tf.nn.conv2d(x, w, 1, "SAME", dilations=[1, 2, 2, 1])


def conv2d_explicit_padding():
    x, w = tf.reshape(tf.range(9.0), [1, 3, 3, 1]), tf.ones([2, 2, 1, 1])
    return tf.nn.conv2d(x, w, 1, [[0, 0], [1, 0], [0, 1], [0, 0]])


def conv1d():
    x, w = tf.reshape(tf.range(8.0), [1, 4, 2]), tf.ones([2, 2, 3])
    return tf.nn.conv1d(x, w, 1, "VALID"), tf.nn.conv1d(x, w, stride=2, padding="SAME")


def depthwise_conv2d():
    x, w = tf.reshape(tf.range(32.0), [1, 4, 4, 2]), tf.reshape(tf.range(8.0), [2, 2, 2, 1])
    return tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID"), tf.nn.depthwise_conv2d(x, tf.ones([2, 2, 2, 3]), [1, 2, 2, 1], "SAME")


def separable_conv2d():
    x = tf.reshape(tf.range(32.0), [1, 4, 4, 2])
    return tf.nn.separable_conv2d(x, tf.ones([2, 2, 2, 1]), tf.ones([1, 1, 2, 3]), [1, 1, 1, 1], "VALID")


def convolution():
    x, w = tf.reshape(tf.range(32.0), [1, 4, 4, 2]), tf.ones([2, 2, 2, 1])
    return tf.nn.convolution(x, w, padding="VALID"), tf.nn.convolution(x, w, strides=2, padding="SAME")


def conv3d():
    x, w = tf.reshape(tf.range(2 * 4 * 4 * 5 * 2.0), [2, 4, 4, 5, 2]) / 100, tf.reshape(tf.range(2 * 3 * 2 * 2 * 3.0), [2, 3, 2, 2, 3]) / 50
    return tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "VALID"), tf.nn.conv3d(x, w, [1, 2, 1, 2, 1], "SAME"), tf.nn.convolution(x, w)


def conv_transpose():
    x, w = tf.reshape(tf.range(24.0), [1, 3, 4, 2]), tf.reshape(tf.range(3 * 3 * 5 * 2.0), [3, 3, 5, 2]) / 10
    return (
        tf.nn.conv2d_transpose(x, w, [1, 6, 8, 5], 2), tf.nn.conv2d_transpose(x, w, [1, 5, 7, 5], [1, 2, 2, 1], "SAME"),
        tf.nn.conv2d_transpose(x, w, [1, 7, 9, 5], 2, "VALID"), tf.nn.conv2d_transpose(x, w, [1, 8, 10, 5], 2, "VALID"),
        tf.nn.conv1d_transpose(x[0], w[0], [3, 8, 5], 2), tf.nn.conv3d_transpose(x[:, None], w[None], [1, 1, 6, 8, 5], [1, 2, 2]),
    )


def pool_3d():
    x = tf.reshape(tf.range(2 * 4 * 3 * 4 * 2.0), [2, 4, 3, 4, 2]) % 17
    return tf.nn.max_pool3d(x, 2, 2, "VALID"), tf.nn.avg_pool3d(x, [2, 3, 2], 1, "SAME"), tf.nn.max_pool(x, 2, 2, "SAME")


@close(1e-2)
def image_resize_by_a_rounded_table():
    """TensorFlow's cubic without antialias has its weights at 1024 places between two pixels."""
    x = tf.reshape(tf.range(2 * 5 * 6 * 3.0), [2, 5, 6, 3]) % 23
    return tf.image.resize(x, [9, 4], "bicubic"), tf.image.resize(x, [3, 11], "bicubic")


@close(2e-5)
def image_resize():
    x = tf.reshape(tf.range(2 * 5 * 6 * 3.0), [2, 5, 6, 3]) % 23
    forms = (("bilinear", False), ("bilinear", True), ("nearest", False), ("bicubic", True))
    return [tf.image.resize(x, size, method, antialias=antialias) for size in ([9, 4], [3, 11]) for method, antialias in forms], tf.image.resize(tf.cast(x[0], tf.int32), [3, 4]), tf.image.resize(tf.cast(x, tf.uint8), [7, 3], "nearest")


def image_patches_and_flips():
    x = tf.reshape(tf.range(2 * 5 * 6 * 3.0), [2, 5, 6, 3])
    return (
        tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"), tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 3, 1], [1, 2, 1, 1], "SAME"),
        tf.image.flip_left_right(x), tf.image.flip_up_down(x[0]), tf.image.pad_to_bounding_box(x, 1, 2, 8, 9), tf.image.crop_to_bounding_box(x, 1, 2, 3, 2),
    )


def max_pool():
    x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    return tf.nn.max_pool2d(x, 2, 2, "VALID"), tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), tf.nn.max_pool2d(x, ksize=3, strides=1, padding="VALID")


def avg_pool():
    x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    return tf.nn.avg_pool2d(x, 2, 2, "VALID"), tf.nn.avg_pool(x, 3, 2, "SAME")


def pool_1d():
    x = tf.reshape(tf.range(8.0), [1, 4, 2])
    return tf.nn.max_pool1d(x, 2, 2, "VALID"), tf.nn.avg_pool1d(x, 2, 1, "SAME")


def dropout_keeps_the_mean():
    tf.random.set_seed(1)
    y = tf.nn.dropout(tf.ones([10000]), rate=0.25)
    values = sorted(set(np.round(y.numpy(), 4).tolist()))
    return values, bool(abs(float(tf.reduce_mean(y)) - 1) < 0.05), tf.nn.dropout(tf.constant([1.0, 2.0]), 0.0)


def top_k_sorted():
    return tf.nn.top_k(tf.constant([[3.0, 1.0, 2.0]]), k=3)


def zero_fraction():
    return tf.nn.zero_fraction([0, 1, 1, 0])


def weighted_moments():
    return tf.nn.weighted_moments(tf.constant([1.0, 2.0, 4.0]), axes=[0], frequency_weights=[1.0, 1.0, 2.0])


def attention_by_hand():
    q = tf.reshape(tf.range(12.0), [1, 3, 4]) / 12
    s = tf.matmul(q, q, transpose_b=True) / tf.sqrt(4.0)
    mask = tf.linalg.band_part(tf.ones([3, 3]), -1, 0)
    s = tf.where(mask > 0, s, -1e9)
    return tf.matmul(tf.nn.softmax(s), q)


def local_response_free_scale():
    x = tf.reshape(tf.range(8.0), [1, 2, 2, 2])
    return x / tf.pow(1.0 + 0.5 * tf.reduce_sum(x * x, axis=-1, keepdims=True), 0.75)


def log_uniform_candidates_free():
    return tf.nn.softmax(tf.constant([1000.0, 1000.0])), tf.nn.log_softmax(tf.constant([0.0, -1000.0]))
