# Shapes, indexing, joining and splitting.


def reshape():
    x = tf.range(6)
    return tf.reshape(x, [2, 3]), tf.reshape(x, [-1, 2]), tf.reshape(x, (3, -1)), tf.reshape([1.0], [])


def reshape_by_tensor():
    x = tf.range(6)
    return tf.reshape(x, tf.constant([3, 2])), tf.reshape(x, [tf.constant(2), 3]), tf.reshape(x, tf.TensorShape([6, 1]))


def reshape_wrong_is_an_error():
    return tf.reshape(tf.range(6), [4, 2])


def transpose():
    x = tf.reshape(tf.range(6), [1, 2, 3])
    return tf.transpose(x), tf.transpose(x, [0, 2, 1]), tf.transpose(x, perm=(2, 0, 1))


def concat():
    x, y = tf.constant([[1, 2]]), tf.constant([[3, 4]])
    return tf.concat([x, y], 0), tf.concat([x, y], axis=-1), tf.concat([x], 1)


def concat_of_two_dtypes_is_an_error():
    return tf.concat([tf.constant([1]), tf.constant([1.0])], 0)


def stack_and_unstack():
    x, y = tf.constant([1, 2]), tf.constant([3, 4])
    return tf.stack([x, y]), tf.stack([x, y], axis=1), tf.unstack(tf.stack([x, y])), tf.unstack(tf.stack([x, y]), axis=1)


def stack_of_numbers():
    return tf.stack([1, 2, 3]), tf.stack([1.0, tf.constant(2.0)])


def unstack_num():
    return tf.unstack(tf.zeros([2, 3]), num=2, axis=0)


def split():
    x = tf.range(12)
    return tf.split(x, 3), tf.split(tf.reshape(x, [2, 6]), [1, 2, 3], axis=1), tf.split(x, num_or_size_splits=2)


def split_with_a_rest():
    return tf.split(tf.range(10), [2, -1, 3])


def split_wrong_is_an_error():
    return tf.split(tf.range(10), 3)


def tile():
    x = tf.constant([[1, 2]])
    return tf.tile(x, [2, 3]), tf.tile([1, 2], [2]), tf.tile(x, tf.constant([1, 2]))


def repeat():
    x = tf.constant([[1, 2], [3, 4]])
    return tf.repeat(x, 2), tf.repeat(x, 2, axis=0), tf.repeat(x, [1, 2], axis=1), tf.repeat([5, 6], repeats=[0, 3])


def expand_dims():
    x = tf.zeros([2, 3])
    return tf.expand_dims(x, 0), tf.expand_dims(x, -1), tf.expand_dims(x, axis=1)


def squeeze():
    x = tf.zeros([1, 2, 1, 3])
    return tf.squeeze(x), tf.squeeze(x, [0]), tf.squeeze(x, axis=2)


def squeeze_of_a_wide_axis_is_an_error():
    return tf.squeeze(tf.zeros([2, 3]), axis=0)


def gather():
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    return tf.gather(x, [1, 0, 1]), tf.gather(x, [2, 0], axis=1), tf.gather(x, 1), tf.gather(x, [[0, 1], [1, 0]])


def gather_batch_dims():
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    return tf.gather(x, [[0, 2], [1, 1]], batch_dims=1), tf.gather(x, [0, 2], axis=1, batch_dims=1)


def gather_out_of_range_is_an_error():
    return tf.gather(tf.constant([1, 2, 3]), [5])


def gather_nd():
    x = tf.constant([[1, 2], [3, 4]])
    return tf.gather_nd(x, [[0, 0], [1, 1]]), tf.gather_nd(x, [[1]]), tf.gather_nd(x, [1, 0])


def gather_nd_batch_dims():
    x = tf.reshape(tf.range(8), [2, 2, 2])
    return tf.gather_nd(x, [[1], [0]], batch_dims=1), tf.gather_nd(x, [[[0, 1]], [[1, 0]]], batch_dims=1)


def where():
    c = tf.constant([True, False, True])
    return tf.where(c, [1, 2, 3], [10, 20, 30]), tf.where(c, 1.0, 0.0), tf.where(c), tf.where([[1, 0], [0, 2]])


def where_broadcast():
    return tf.where([[True], [False]], tf.constant([1, 2]), tf.constant(9))


def where_of_two_dtypes_is_an_error():
    return tf.where([True], tf.constant([1]), tf.constant([1.0]))


def one_hot():
    return tf.one_hot([0, 2, 5, -1], 3), tf.one_hot([1], 2, on_value=5, off_value=-1), tf.one_hot([[0], [1]], 2, dtype=tf.int32)


def one_hot_axis():
    return tf.one_hot([0, 2], 3, axis=0), tf.one_hot([0, 1], depth=2, on_value=True, off_value=False, dtype=tf.bool)


def boolean_mask():
    x = tf.constant([[1, 2], [3, 4], [5, 6]])
    return tf.boolean_mask(x, [True, False, True]), tf.boolean_mask(x, x > 2), tf.boolean_mask(x, [True, False], axis=1)


def pad():
    x = tf.constant([[1, 2], [3, 4]])
    return tf.pad(x, [[1, 0], [0, 2]]), tf.pad(x, [[1, 1], [0, 0]], constant_values=9), tf.pad([1.0], [[0, 1]])


def pad_reflect():
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    return tf.pad(x, [[1, 1], [2, 2]], "REFLECT"), tf.pad(x, [[1, 1], [2, 2]], mode="SYMMETRIC")


def slice_():
    x = tf.reshape(tf.range(12), [3, 4])
    return tf.slice(x, [1, 0], [2, 2]), tf.slice(x, [0, 1], [-1, 2])


def strided_slice():
    x = tf.reshape(tf.range(12), [3, 4])
    return tf.strided_slice(x, [0, 1], [3, 4], [2, 2]), tf.strided_slice(x, [2], [0], [-1])


def subscripts():
    x = tf.reshape(tf.range(24), [2, 3, 4])
    return x[0], x[-1, 1], x[:, 1:], x[..., ::2], x[:, ::-1, 0], x[0, ..., tf.newaxis], x[1, 2, 3]


def subscript_by_tensor():
    x, i = tf.constant([10, 20, 30]), tf.constant(1)
    return x[i], x[i:], x[: tf.constant(2)], tf.range(5)[tf.constant(1) : tf.constant(4)]


def subscript_by_mask():
    x = tf.constant([1, 2, 3])
    return x[x > 1]


def subscript_out_of_range_is_an_error():
    return tf.constant([1, 2])[5]


def reverse():
    x = tf.reshape(tf.range(6), [2, 3])
    return tf.reverse(x, [0]), tf.reverse(x, axis=[-1]), tf.reverse(x, [0, 1])


def reverse_sequence():
    x = tf.reshape(tf.range(8), [2, 4])
    return tf.reverse_sequence(x, [3, 2], seq_axis=1, batch_axis=0)


def sort():
    x = tf.constant([[3.0, 1.0, 2.0], [1.0, 9.0, 5.0]])
    return tf.sort(x), tf.sort(x, axis=0), tf.sort(x, direction="DESCENDING")


def argsort():
    x = tf.constant([3, 1, 2, 1])
    return tf.argsort(x), tf.argsort(x, direction="DESCENDING", stable=True), tf.argsort([[2.0, 1.0]], axis=0)


def unique():
    y, idx = tf.unique([4, 2, 4, 7, 2])
    return y, idx


def unique_with_counts():
    r = tf.unique_with_counts([1, 1, 2, 4, 4, 4, 7])
    return r.y, r.idx, r.count


def tensor_scatter_nd_update():
    x = tf.zeros([4], tf.int32)
    return tf.tensor_scatter_nd_update(x, [[1], [3]], [5, 6]), tf.tensor_scatter_nd_update(tf.zeros([2, 2]), [[1]], [[1.0, 2.0]])


def tensor_scatter_nd_update_elements():
    return tf.tensor_scatter_nd_update(tf.zeros([2, 3]), [[0, 1], [1, 2]], [7.0, 8.0])


def tensor_scatter_nd_add():
    return tf.tensor_scatter_nd_add(tf.ones([4]), [[1], [1], [2]], [1.0, 2.0, 3.0])


def tensor_scatter_nd_sub():
    return tf.tensor_scatter_nd_sub(tf.ones([2, 2]), [[0, 0], [1, 0]], [5.0, 6.0])


def tensor_scatter_nd_max_min():
    x = tf.constant([1, 5, 3])
    return tf.tensor_scatter_nd_max(x, [[0], [1]], [4, 4]), tf.tensor_scatter_nd_min(x, [[0], [1]], [4, 4])


def scatter_nd():
    return tf.scatter_nd([[1], [3], [1]], [9, 10, 11], [5]), tf.scatter_nd([[0, 1]], [2.0], [2, 2])


def roll():
    x = tf.reshape(tf.range(6), [2, 3])
    return tf.roll(x, 1, 1), tf.roll(x, shift=[1, -1], axis=[0, 1]), tf.roll(tf.range(4), -1, 0)


def meshgrid():
    a, b = tf.meshgrid([1, 2, 3], [4, 5])
    c, d = tf.meshgrid([1, 2, 3], [4, 5], indexing="ij")
    return a, b, c, d


def sequence_mask():
    return tf.sequence_mask([1, 3, 2], 5), tf.sequence_mask([[1], [2]]), tf.sequence_mask([2], 3, dtype=tf.float32)


def space_to_depth():
    x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    return tf.nn.space_to_depth(x, 2), tf.nn.depth_to_space(tf.nn.space_to_depth(x, 2), 2)


def ensure_shape():
    return tf.ensure_shape(tf.zeros([2, 3]), [2, None])


def ensure_shape_wrong_is_an_error():
    return tf.ensure_shape(tf.zeros([2, 3]), [4, None])


def searchsorted():
    return tf.searchsorted([1, 3, 5, 7], [0, 3, 8]), tf.searchsorted([1.0, 3.0, 3.0], [3.0], side="right")


def dynamic_partition():
    return tf.dynamic_partition(tf.constant([10, 20, 30, 40]), [0, 1, 0, 1], 2)


def dynamic_stitch():
    return tf.dynamic_stitch([[0, 2], [1, 3]], [tf.constant([10, 30]), tf.constant([20, 40])])


def required_and_edge_shapes():
    return tf.reshape(tf.zeros([0, 3]), [-1, 3]), tf.concat([tf.zeros([0, 2]), tf.ones([1, 2])], 0), tf.reduce_sum(tf.zeros([0]))


def fingerprint_of_axes():
    x = tf.reshape(tf.range(24), [2, 3, 4])
    return tf.stack(tf.unstack(x, axis=2), axis=2) - x, tf.gather(x, [0, 1], axis=-1)


def tensor_diag():
    return tf.linalg.diag([1.0, 2.0]), tf.linalg.diag_part([[1, 2], [3, 4]]), tf.linalg.tensor_diag([1, 2])


def image_patches_by_slices():
    x = tf.reshape(tf.range(16), [4, 4])
    return tf.stack([x[i : i + 2, i : i + 2] for i in range(3)])


def bitcast_free_views():
    x = tf.range(4)
    y = tf.reshape(x, [2, 2])
    return tf.transpose(y)[0], y[:, 1], tf.squeeze(y[:1])
