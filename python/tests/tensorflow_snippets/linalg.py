# Products and matrices.


def matmul():
    a, b = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[5.0, 6.0], [7.0, 8.0]])
    return tf.matmul(a, b), tf.matmul(a, b, transpose_a=True), tf.linalg.matmul(a, b, transpose_b=True)


def matmul_of_ints():
    return tf.matmul([[1, 2]], [[3], [4]])


def matmul_batched():
    a = tf.reshape(tf.range(12.0), [2, 2, 3])
    return tf.matmul(a, a, transpose_b=True), a @ tf.ones([3, 1])


def matmul_of_wrong_shapes_is_an_error():
    return tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))


def matmul_of_vectors_is_an_error():
    return tf.matmul(tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0]))


def matvec():
    a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return tf.linalg.matvec(a, [1.0, 1.0]), tf.linalg.matvec(a, [1.0, 0.0], transpose_a=True)


def einsum():
    a, b = tf.reshape(tf.range(6.0), [2, 3]), tf.reshape(tf.range(12.0), [3, 4])
    return tf.einsum("ij,jk->ik", a, b), tf.einsum("ij->ji", a), tf.einsum("ij,ij->", a, a), tf.einsum("ij,jk", a, b)


def einsum_batched():
    a = tf.reshape(tf.range(12.0), [2, 2, 3])
    return tf.einsum("bij,bkj->bik", a, a), tf.einsum("bij->b", a)


def einsum_ellipsis():
    a, b = tf.reshape(tf.range(12.0), [2, 2, 3]), tf.ones([3, 2])
    return tf.einsum("...ij,jk->...ik", a, b)


def tensordot():
    a, b = tf.reshape(tf.range(6.0), [2, 3]), tf.reshape(tf.range(12.0), [3, 4])
    return tf.tensordot(a, b, 1), tf.tensordot(a, b, axes=[[1], [0]]), tf.tensordot(a, a, axes=2)


def outer():
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0, 5.0])
    return tf.einsum("i,j->ij", a, b), tf.tensordot(a, b, axes=0)


def norm():
    x = tf.constant([[3.0, -4.0], [6.0, 8.0]])
    return tf.norm(x), tf.norm(x, axis=1), tf.norm(x, ord=1, axis=0), tf.linalg.norm(x, ord=np.inf, axis=1), tf.norm(x, keepdims=True)


def linalg_normalize():
    return tf.linalg.normalize([3.0, 4.0])


def trace():
    return tf.linalg.trace([[1.0, 2.0], [3.0, 4.0]]), tf.linalg.trace([[1, 2, 3], [4, 5, 6]])


def diag():
    return tf.linalg.diag([[1, 2], [3, 4]]), tf.linalg.diag_part([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def set_diag():
    return tf.linalg.set_diag(tf.ones([2, 3]), [5.0, 6.0])


def band_part():
    x = tf.reshape(tf.range(9), [3, 3])
    return tf.linalg.band_part(x, -1, 0), tf.linalg.band_part(x, 0, -1), tf.linalg.band_part(x, 1, 1), tf.linalg.band_part(x, 0, 0)


def matrix_transpose():
    x = tf.reshape(tf.range(6), [1, 2, 3])
    return tf.linalg.matrix_transpose(x), tf.linalg.adjoint(tf.constant([[1.0, 2.0]]))


def linalg_eye():
    return tf.linalg.eye(2), tf.linalg.eye(2, num_columns=3, dtype=tf.float64)


def cross():
    return tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])


def l2_normalize():
    return tf.linalg.l2_normalize([[3.0, 4.0]], axis=1)


def linalg_einsum_and_tensordot():
    a = tf.ones([2, 2])
    return tf.linalg.einsum("ij,jk->ik", a, a), tf.linalg.tensordot(a, a, 1)


def power_iteration():
    a = tf.constant([[2.0, 1.0], [1.0, 3.0]])
    v = tf.constant([[1.0], [1.0]])
    for _ in range(20):
        v = tf.matmul(a, v)
        v = v / tf.norm(v)
    return tf.matmul(v, tf.matmul(a, v), transpose_a=True)


def matmul_bfloat16():
    a = tf.cast([[1.0, 2.0]], tf.bfloat16)
    b = tf.matmul(a, a, transpose_b=True)
    return tf.cast(b, tf.float32), b.dtype.name
