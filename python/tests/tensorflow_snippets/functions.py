# tf.function: traces, signatures, Python values, autograph.


def decorator():
    @tf.function
    def f(x):
        return x * 2

    return f(tf.constant([1, 2])), f(3)


def called_as_a_function():
    f = tf.function(lambda x: x + 1.0)
    return f(tf.constant(1.0)), f(2.0)


def with_options():
    @tf.function(jit_compile=False, reduce_retracing=True, autograph=True)
    def f(x):
        return x - 1

    return f(tf.constant([5]))


def with_jit_compile():
    @tf.function(jit_compile=True)
    def f(x):
        return tf.reduce_sum(x * x)

    return f(tf.constant([1.0, 2.0]))


def traces_once_for_tensors_of_one_type():
    traces = []

    @tf.function
    def f(x):
        traces.append(1)
        return x + 1

    for i in range(3):
        f(tf.constant(float(i)))
    return len(traces), f.experimental_get_tracing_count()


def traces_again_for_another_shape_and_dtype():
    traces = []

    @tf.function
    def f(x):
        traces.append(x.shape.as_list())
        return x * 2

    f(tf.zeros([2])), f(tf.zeros([3])), f(tf.zeros([2], tf.int32)), f(tf.zeros([2])), f(tf.zeros([4]))
    return traces, f.experimental_get_tracing_count()


def traces_again_for_python_numbers():
    traces = []

    @tf.function
    def f(x, n):
        traces.append(n)
        return x * n

    y = [f(tf.constant(2.0), n) for n in (1, 2, 1)]
    return traces, y


def python_numbers_are_known_while_tracing():
    @tf.function
    def f(x, n):
        for _ in range(n):
            x = x * 2
        return x

    return f(tf.constant(1), 3), f(tf.constant(1), n=4)


def reduce_retracing_opens_sizes():
    traces = []

    @tf.function(reduce_retracing=True)
    def f(x):
        traces.append(1)
        return tf.reduce_sum(x)

    y = [f(tf.ones([n])) for n in (2, 3, 4, 5)]
    return len(traces), y


def input_signature():
    traces = []

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x):
        traces.append(x.shape.as_list())
        return tf.reduce_sum(x, 0)

    return f(tf.ones([3, 2])), f(tf.ones([5, 2])), traces


def input_signature_of_numbers():
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)])
    def f(x, n):
        return x * tf.cast(n, tf.float32)

    return f(2.0, 3), f(tf.constant(4.0), 5)


def input_signature_refuses_a_shape_is_an_error():
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x):
        return x

    return f(tf.ones([3, 3]))


def dynamic_shape_in_a_signature():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def f(x):
        n = tf.shape(x)[0]
        return tf.zeros([n, 2]), tf.reshape(x, [n * 3]), tf.cast(n, tf.float32) * tf.reduce_mean(x)

    return f(tf.ones([2, 3])), f(tf.ones([4, 3]))


def structures_in_and_out():
    @tf.function
    def f(batch):
        return {"sum": batch["a"] + batch["b"][0], "all": (batch["a"], [batch["b"][1]])}

    return f({"a": tf.constant(1.0), "b": (tf.constant(2.0), tf.constant(3.0))})


def none_and_strings():
    @tf.function
    def f(x, mode="double", extra=None):
        y = x * 2 if mode == "double" else x * 3
        return y if extra is None else y + extra

    return f(tf.constant(1)), f(tf.constant(1), "triple"), f(tf.constant(1), extra=tf.constant(10))


def returns_python_numbers_as_tensors():
    @tf.function
    def f(x):
        return 1, 2.5, x, None

    return f(tf.constant(1))


def returns_nothing():
    v = tf.Variable(1.0)

    @tf.function
    def f():
        v.assign_add(1.0)

    return f(), v


def method():
    class Model:
        def __init__(self):
            self.w = tf.Variable(3.0)

        @tf.function
        def call(self, x):
            return self.w * x

    m, other = Model(), Model()
    other.w.assign(10.0)
    return m.call(tf.constant(2.0)), other.call(tf.constant(3.0))


def nested_functions():
    @tf.function
    def g(x):
        return x + 1

    @tf.function
    def f(x):
        return g(x) * g(x * 2)

    return f(tf.constant(2))


def closure_over_a_tensor():
    c = tf.constant([1.0, 2.0])

    @tf.function
    def f(x):
        return x + c

    return f(tf.constant([3.0, 4.0]))


def if_on_a_tensor():
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            return x * 2
        else:
            return -x

    return f(tf.constant([1.0, 2.0])), f(tf.constant([-1.0, -2.0]))


def elif_on_tensors():
    @tf.function
    def f(x):
        if x > 10:
            y = x - 10
        elif x > 5:
            y = x - 5
        else:
            y = x
        return y

    return f(tf.constant(12)), f(tf.constant(7)), f(tf.constant(3))


def while_on_a_tensor():
    @tf.function
    def collatz(n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    return collatz(tf.constant(6)), collatz(tf.constant(1))


def for_over_a_range_of_tensors():
    @tf.function
    def f(n):
        total = 0.0
        for i in tf.range(n):
            total += tf.cast(i, tf.float32)
        return total

    return f(tf.constant(5)), f(tf.constant(0))


def for_over_a_tensor():
    @tf.function
    def f(xs):
        s = tf.zeros([2])
        for x in xs:
            s = s * 0.5 + x
        return s

    return f(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))


def break_and_continue():
    @tf.function
    def f(xs):
        s = 0
        for x in xs:
            if x == 3:
                continue
            if x > 5:
                break
            s += x
        return s

    return f(tf.constant([1, 3, 2, 9, 4])), f(tf.constant([1, 2]))


def and_or_not_on_tensors():
    @tf.function
    def f(x):
        if x > 0 and x < 10 or not x < 100:
            return 1
        return 0

    return f(tf.constant(5)), f(tf.constant(50)), f(tf.constant(500))


def conditional_expression():
    @tf.function
    def f(x):
        return x + 1 if x > 0 else x - 1

    return f(tf.constant(1)), f(tf.constant(-1))


def python_print_runs_once():
    lines = []

    @tf.function
    def f(x):
        lines.append("traced")
        return x

    f(tf.constant(1)), f(tf.constant(2))
    return lines


def get_concrete_function():
    @tf.function
    def f(x):
        return x * 2

    c = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    return c(tf.constant([1.0, 2.0])), c(tf.constant([1.0]))


def run_functions_eagerly():
    seen = []

    @tf.function
    def f(x):
        seen.append(tf.executing_eagerly())
        return x + 1

    tf.config.run_functions_eagerly(True)
    y = f(tf.constant(1))
    on = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(False)
    return y, seen, on, tf.config.functions_run_eagerly()


def python_function():
    f = tf.function(lambda x: x + 1)
    return f.python_function(tf.constant(1))


def default_arguments():
    @tf.function
    def f(x, y=2.0, *, z=3.0):
        return x + y + z

    return f(tf.constant(1.0)), f(tf.constant(1.0), y=5.0), f(tf.constant(1.0), z=tf.constant(0.0))


def variable_arguments():
    @tf.function
    def f(*xs, **named):
        return tf.add_n(list(xs)) * named["scale"]

    return f(tf.constant(1.0), tf.constant(2.0), scale=tf.constant(3.0))


def numpy_arguments():
    traces = []

    @tf.function
    def f(x):
        traces.append(1)
        return x + 1

    return f(np.array([1.0, 2.0], np.float32)), f(np.array([3.0, 4.0], np.float32)), len(traces)


def init_scope_and_control_dependencies():
    v = tf.Variable(1.0)

    @tf.function
    def f():
        with tf.control_dependencies([v.assign_add(1.0)]):
            return tf.identity(v)

    return f(), tf.group() is None


def no_op_and_group():
    @tf.function
    def f(x):
        tf.no_op()
        return x

    return f(tf.constant(1))


def recursion_in_python():
    @tf.function
    def power(x, n):
        return x * power(x, n - 1) if n > 1 else x

    return power(tf.constant(2.0), 5)


def loop_with_a_matrix():
    @tf.function
    def f(a, n):
        x = tf.eye(2)
        for _ in tf.range(n):
            x = tf.matmul(x, a)
        return x

    return f(tf.constant([[1.0, 1.0], [0.0, 1.0]]), tf.constant(10))


def list_append_of_a_python_loop():
    @tf.function
    def f(x):
        out = []
        for i in range(3):
            out.append(x * i)
        return tf.stack(out)

    return f(tf.constant([1.0, 2.0]))


def while_with_two_conditions():
    @tf.function
    def f(x):
        i = tf.constant(0)
        while tf.logical_and(i < 10, x < 100.0):
            x = x * 2.0
            i += 1
        return x, i

    return f(tf.constant(3.0)), f(tf.constant(0.1))


def newton_in_a_loop():
    @tf.function
    def root(a):
        x = a
        while tf.abs(x * x - a) > 1e-5:
            x = 0.5 * (x + a / x)
        return x

    return root(tf.constant(2.0)), root(tf.constant(9.0))


def experimental_get_text_is_there():
    @tf.function
    def f(x):
        return x + 1

    f(tf.constant(1))
    return f.experimental_get_tracing_count(), callable(f)


def autograph_off():
    @tf.function(autograph=False)
    def f(x):
        return tf.cond(x > 0, lambda: x, lambda: -x)

    return f(tf.constant(-3))


def autograph_off_and_if_on_a_tensor_is_an_error():
    @tf.function(autograph=False)
    def f(x):
        if x > 0:
            return x
        return -x

    return f(tf.constant(1))


def nested_loops():
    @tf.function
    def f(n):
        s = 0
        for i in tf.range(n):
            for j in tf.range(i):
                s += j
        return s

    return f(tf.constant(5))


def attribute_in_a_branch():
    class Box:
        pass

    @tf.function
    def f(x):
        b = Box()
        b.value = x
        if x > 0:
            b.value = x * 10
        return b.value

    return f(tf.constant(2)), f(tf.constant(-2))


def assert_in_a_function():
    @tf.function
    def f(x):
        tf.debugging.assert_positive(x)
        return x * 2

    return f(tf.constant(2.0))


def dict_of_variables_updated():
    vs = {"a": tf.Variable(1.0), "b": tf.Variable(2.0)}

    @tf.function
    def f(x):
        for v in vs.values():
            v.assign_add(x)

    f(tf.constant(1.0))
    return vs["a"], vs["b"]


def tensor_array_in_a_for_loop():
    @tf.function
    def f(n):
        ta = tf.TensorArray(tf.int32, size=n)
        for i in tf.range(n):
            ta = ta.write(i, i * i)
        return ta.stack()

    return f(tf.constant(4))
