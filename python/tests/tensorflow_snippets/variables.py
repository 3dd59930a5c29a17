# tf.Variable, tf.train.Checkpoint, tf.Module.


def variable_of_values():
    v = tf.Variable([1.0, 2.0])
    return v, v.dtype, v.shape, v.numpy(), v.trainable, tf.Variable(3)


def variable_options():
    v = tf.Variable([1, 2], dtype=tf.float32, name="w", trainable=False)
    return v, v.trainable, v.name


def variable_of_a_callable():
    return tf.Variable(lambda: tf.ones([2]))


def assign():
    v = tf.Variable([1.0, 2.0])
    v.assign([3.0, 4.0])
    a = v.numpy()
    v.assign(v * 2)
    return a, v


def assign_add_and_sub():
    v = tf.Variable([1.0, 2.0])
    v.assign_add([1.0, 1.0])
    v.assign_sub([0.5, 0.5])
    return v, v.assign_add([1.0, 0.0])


def assign_returns_the_variable():
    v = tf.Variable(1.0)
    w = v.assign(2.0)
    return w.numpy(), v.assign_add(1.0).numpy(), v.assign(5.0, read_value=False) is None


def assign_of_another_shape_is_an_error():
    return tf.Variable([1.0, 2.0]).assign([1.0, 2.0, 3.0])


def assign_of_another_dtype_is_an_error():
    return tf.Variable([1.0, 2.0]).assign(tf.constant([1, 2]))


def variable_with_open_shape():
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape([None]))
    v.assign([1.0, 2.0, 3.0])
    return v.numpy()


def read_value():
    v = tf.Variable([1.0])
    before = v.read_value()
    v.assign([2.0])
    return before, v.value(), tf.convert_to_tensor(v), v.read_value()


def variable_arithmetic():
    v = tf.Variable([1.0, 2.0])
    return v + 1, 2 * v, v * v, v / 2, -v, v[0], v[1:], v > 1.0, tf.reduce_sum(v)


def variable_is_not_its_old_value():
    v = tf.Variable(1.0)
    y = v + 0.0
    v.assign(5.0)
    return y, v


def variable_slices():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    v[0].assign([9.0, 9.0])
    v[1, 0].assign(7.0)
    v[:, 1].assign([6.0, 5.0])
    return v


def scatter_update():
    v = tf.Variable([1.0, 2.0, 3.0])
    v.scatter_nd_update([[0], [2]], [10.0, 30.0])
    w = tf.Variable([1.0, 2.0, 3.0])
    w.scatter_nd_add([[0], [0]], [1.0, 1.0])
    return v, w


def scatter_of_slices():
    v = tf.Variable([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    v.scatter_sub(tf.IndexedSlices(tf.constant([[1.0, 1.0]]), tf.constant([2])))
    v.scatter_add(tf.IndexedSlices(tf.constant([[1.0, 1.0]]), tf.constant([0])))
    v.scatter_update(tf.IndexedSlices(tf.constant([[8.0, 8.0]]), tf.constant([1])))
    return v


def variable_in_a_function():
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        v.assign_add(x)
        return v * 2

    return f(1.0), f(tf.constant(2.0)), v


def variable_made_once_in_a_function():
    state = []

    @tf.function
    def f(x):
        if not state:
            state.append(tf.Variable(2.0))
        return state[0] * x

    return f(tf.constant(3.0)), f(tf.constant(4.0))


def variable_as_an_argument():
    @tf.function
    def f(v, x):
        v.assign_sub(x)
        return v.read_value()

    v = tf.Variable([3.0, 4.0])
    return f(v, tf.constant([1.0, 1.0])), v


def counter_in_a_loop():
    n = tf.Variable(0)
    for _ in range(5):
        n.assign_add(2)
    return n, n.dtype


def variable_of_float64():
    v = tf.Variable(np.array([1.0, 2.0]))
    return v.dtype, v.assign_add([1.0, 1.0])


def module_finds_variables():
    class Linear(tf.Module):
        def __init__(self):
            super().__init__(name="linear")
            self.w = tf.Variable([[2.0]], name="w")
            self.b = tf.Variable([1.0], name="b", trainable=False)
            self.parts = [tf.Variable(3.0)]

        def __call__(self, x):
            return x @ self.w + self.b

    m = Linear()
    return m(tf.constant([[3.0]])), len(m.variables), len(m.trainable_variables), m.name


def module_finds_submodules():
    class Part(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(1.0)

    class Whole(tf.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Part(), Part()

    m = Whole()
    return len(m.submodules), len(m.trainable_variables)


def checkpoint_restores():
    v, step = tf.Variable([1.0, 2.0]), tf.Variable(0)
    ckpt = tf.train.Checkpoint(v=v, step=step)
    step.assign(7)
    path = ckpt.save("variables_ckpt")
    v.assign([0.0, 0.0])
    step.assign(0)
    ckpt.restore(path)
    return v, step, isinstance(path, str)


def checkpoint_write_and_read():
    v = tf.Variable([1.0, 2.0])
    path = tf.train.Checkpoint(v=v).write("variables_written")
    w = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(v=w).read(path)
    return w


def checkpoint_of_a_module():
    class Net(tf.Module):
        def __init__(self, value):
            super().__init__()
            self.w = tf.Variable(value)

    a, b = Net(3.0), Net(0.0)
    path = tf.train.Checkpoint(net=a).save("variables_net")
    tf.train.Checkpoint(net=b).restore(path).expect_partial()
    return b.w


def checkpoint_manager():
    v = tf.Variable(1.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), "variables_manager", max_to_keep=2)
    for i in range(4):
        v.assign(float(i))
        manager.save()
    v.assign(-1.0)
    tf.train.Checkpoint(v=v).restore(manager.latest_checkpoint)
    return v, len(manager.checkpoints), tf.train.latest_checkpoint("variables_manager") == manager.latest_checkpoint


def initial_value_by_keyword():
    return tf.Variable(initial_value=tf.zeros([2]), dtype=tf.float32), tf.Variable(initial_value=True)


def variable_repr_and_numbers():
    return repr(tf.Variable(1.0, name="x")), float(tf.Variable(2.0)), int(tf.Variable(3)), bool(tf.Variable(True))


def numpy_of_a_variable_is_a_copy():
    v = tf.Variable([1.0, 2.0])
    a = v.numpy()
    v.assign([5.0, 5.0])
    return a


def count_up():
    v = tf.Variable(0)
    while v < 3:
        v.assign_add(1)
    return v


def batch_gather_of_a_variable():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    return tf.gather(v, [1]), tf.nn.embedding_lookup(v, [0, 0]), v.sparse_read([1])


def moving_average():
    v = tf.Variable(0.0)
    for x in [1.0, 2.0, 3.0]:
        v.assign(0.9 * v + 0.1 * x)
    return v
