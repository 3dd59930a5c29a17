"""tidemark.tensorflow where TensorFlow is not the measure: what it refuses or warns about and Tidemark does, memory, and exact texts of errors."""
import gc
import re
import warnings
import weakref

import numpy as np
import pytest

import tidemark as td
import tidemark.tensorflow as tf


def text_of(call):
    with pytest.raises(Exception) as raised:
        call()
    return str(raised.value).split("\n")[0]


# ---- what TensorFlow refuses ---------------------------------------------------------------------


def test_a_list_appended_in_a_traced_loop_is_a_list():
    @tf.function
    def squares(n):
        out = []
        for i in tf.range(4):
            out.append(i * i + n)
        return tf.stack(out)

    assert squares(tf.constant(10)).numpy().tolist() == [10, 11, 14, 19]


def test_a_traced_loop_may_return():
    @tf.function
    def find(xs, x):
        for i in tf.range(3):
            if xs[i] == x:
                return i
        return -1

    xs = tf.constant([5, 7, 9])
    assert int(find(xs, tf.constant(7))) == 1
    assert int(find(xs, tf.constant(1))) == -1


def test_layers_made_inside_a_function_are_made_once_for_each_trace():
    @tf.function
    def f(x):
        return tf.keras.layers.Dense(2, kernel_initializer="ones")(x)

    x = tf.ones([1, 3])
    assert f(x).numpy().tolist() == [[3.0, 3.0]]
    assert f(x).numpy().tolist() == [[3.0, 3.0]]
    assert f.experimental_get_tracing_count() == 1


def test_variables_made_inside_a_function_are_made_once():
    @tf.function
    def count():
        v = tf.Variable(0.0)
        v.assign_add(1.0)
        return v.read_value()

    assert [float(count()) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_custom_gradients_go_into_sequential_and_train():
    @tf.custom_gradient
    def reversed_gradient(x):
        return tf.identity(x), lambda dy: -dy

    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2), reversed_gradient, tf.keras.layers.Dense(1)])
    plain = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(1)])
    plain.set_weights(model.get_weights())
    x, y = np.ones((4, 2), np.float32), np.zeros((4, 1), np.float32)
    before = model.get_weights()
    for m in (model, plain):
        m.compile(tf.keras.optimizers.SGD(0.1), "mse")
        m.fit(x, y, epochs=1, batch_size=4, verbose=0)
    changed, usual = model.get_weights()[0] - before[0], plain.get_weights()[0] - before[0]
    np.testing.assert_allclose(changed, -usual, rtol=1e-5)
    np.testing.assert_allclose(model.get_weights()[2], plain.get_weights()[2], rtol=1e-5)


def test_methods_of_objects_that_nobody_else_holds():
    class Model:
        def __init__(self):
            self.w = tf.Variable(3.0)

        @tf.function
        def call(self, x):
            return self.w * x

    assert float(Model().call(tf.constant(2.0))) == 6.0


# ---- memory --------------------------------------------------------------------------------------


def test_a_function_knows_its_peak_before_it_runs():
    @tf.function
    def f(x):
        return tf.reduce_sum(tf.exp(x))

    plan = f.plan(tf.TensorSpec([1000], tf.float32))
    assert 4 <= int(plan.peak) < 4000


def test_memory_info_counts_bytes():
    tf.config.experimental.reset_memory_stats("CPU:0")
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    x = tf.zeros([1000, 1000])
    info = tf.config.experimental.get_memory_info("CPU:0")
    assert info["current"] - before == 4_000_000
    assert info["peak"] >= info["current"]
    del x
    assert tf.config.experimental.get_memory_info("CPU:0")["current"] == before


def test_a_training_loop_holds_no_more_bytes_after_a_hundred_steps():
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x, y = np.ones((32, 8), np.float32), np.ones((32, 1), np.float32)
    model.train_on_batch(x, y), model.train_on_batch(x, y)
    held = tf.config.experimental.get_memory_info()["current"]
    for _ in range(100):
        model.train_on_batch(x, y)
    assert tf.config.experimental.get_memory_info()["current"] == held


def test_a_step_of_sgd_on_a_table_needs_the_rows_and_not_the_table():
    table, optimizer = tf.Variable(tf.zeros([10_000, 16])), tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) - 1.0)
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        return loss

    step(tf.constant([1, 2, 1]))
    assert int(step.plan(tf.TensorSpec([3], tf.int32)).peak) < 10_000
    np.testing.assert_allclose(table.numpy()[:3, 0], [0.0, -0.2, -0.1], rtol=1e-6)


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def held():
    return tf.config.experimental.get_memory_info()["current"]


def make_sequential():
    return tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])


def make_functional():
    x = tf.keras.Input((8,))
    return tf.keras.Model(x, tf.keras.layers.Dense(1)(tf.keras.layers.Dense(16)(x) * 2.0))


@pytest.mark.parametrize("make", [make_sequential, make_functional])
def test_a_model_that_was_trained_is_freed_when_it_is_dropped(make, no_collector):
    x, y = np.ones((32, 8), np.float32), np.ones((32, 1), np.float32)

    def train():
        model = make()
        model.compile("adam", "mse", metrics=["mae"])
        history = model.fit(x, y, epochs=2, batch_size=8, verbose=0)
        model.predict(x, verbose=0)
        return history.history["loss"]

    train()
    before = held()
    train()
    assert held() == before


def test_a_function_is_freed_when_it_is_dropped(no_collector):
    def use():
        w = tf.Variable(tf.ones([1000]))

        @tf.function
        def f(x):
            return tf.reduce_sum(w * x)

        return float(f(tf.ones([1000])))

    use()
    before = held()
    use()
    assert held() == before


def test_a_function_does_not_keep_objects_that_it_was_called_with(no_collector):
    class Scale:
        def __init__(self):
            self.w = tf.Variable(tf.ones([1000]))

    @tf.function
    def f(scale, x):
        return tf.reduce_sum(scale.w * x)

    f(Scale(), tf.ones([1000]))
    scale = Scale()
    f(scale, tf.ones([1000]))
    gone = weakref.ref(scale)
    del scale
    assert gone() is None


def test_traces_are_bounded():
    @tf.function
    def f(x, n):
        return x * n

    with pytest.warns(UserWarning, match="f was traced for 256 kinds of arguments, and the oldest are dropped: pass Python numbers as tensors, or use "):
        for n in range(260):
            f.get_concrete_function(tf.TensorSpec([], tf.int32), n)
    assert len(f._concrete) == 256


def test_a_clone_has_weights_of_its_own():
    model = make_functional()
    clone = tf.keras.models.clone_model(model)
    clone.set_weights([w * 0 for w in clone.get_weights()])
    assert float(tf.reduce_sum(tf.abs(model.get_weights()[0]))) > 0
    assert clone(tf.ones([1, 8])).numpy().tolist() == [[0.0]]


def test_a_function_that_reads_a_dataset_reads_it_anew_in_every_call():
    data = [1, 2]
    dataset = tf.data.Dataset.from_generator(lambda: iter(data), output_signature=tf.TensorSpec([], tf.int64))
    made = []

    @tf.function
    def total(start):
        if not made:
            made.append(tf.Variable(2, dtype=tf.int64))
        for x in dataset:
            start += x * made[0]
        return start

    with pytest.warns(UserWarning, match='function "total" reads a Dataset, so it is not compiled') as caught:
        assert int(total(tf.constant(1, tf.int64))) == 7
    assert caught[0].filename == __file__
    data.append(3)
    assert int(total(tf.constant(1, tf.int64))) == 13


def test_jacobian_by_several_sources():
    a, b, c = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0]), tf.constant([5.0])
    with tf.GradientTape() as tape:
        tape.watch([a, c])
        y = a * b
    by = tape.jacobian(y, {"a": a, "b": b, "c": c})
    assert by["a"].numpy().tolist() == [[3.0, 0.0], [0.0, 4.0]] and by["b"].numpy().tolist() == [[1.0, 0.0], [0.0, 2.0]] and by["c"] is None
    with pytest.raises(RuntimeError, match="non-persistent GradientTape can only be used to compute one set of gradients"):
        tape.jacobian(y, a)
    with tf.GradientTape() as tape:
        tape.watch([a, c])
        y = a * 2.0
    by = tape.jacobian(y, [a, c], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert by[1].numpy().tolist() == [[0.0], [0.0]]


# ---- names ---------------------------------------------------------------------------------------


def test_a_name_that_is_not_there_says_what_is_nearest():
    assert text_of(lambda: tf.reduce_summ) == "tidemark.tensorflow has no reduce_summ; the nearest name is reduce_sum"
    assert text_of(lambda: tf.nn.relu7) == "tidemark.tensorflow has no nn.relu7; the nearest name is nn.relu"
    assert text_of(lambda: tf.keras.layers.Dens) == "tidemark.tensorflow has no keras.layers.Dens; the nearest name is keras.layers.Dense"
    assert text_of(lambda: tf.quite_unlike_anything) == "tidemark.tensorflow has no quite_unlike_anything"


def test_tab_completion_shows_tensorflows_names():
    assert {"reduce_sum", "exp", "top_k"} <= set(dir(tf.math))
    assert not {"convert", "wrap", "td", "pair"} & set(dir(tf.math))
    assert "Dense" in dir(tf.keras.layers)


def test_ops_that_tidemark_does_not_have_are_named():
    assert text_of(lambda: tf.linalg.sqrtm) == "tidemark.tensorflow has no linalg.sqrtm: Tidemark has no op for it yet"
    assert text_of(lambda: tf.nn.fractional_max_pool) == "tidemark.tensorflow has no nn.fractional_max_pool: Tidemark has no op for it yet"
    assert text_of(lambda: tf.qint8) == (
        "tidemark.tensorflow has no qint8: the dtypes are float16, bfloat16, float32, float64, int8, int16, int32, int64, "
        "uint8, uint16, uint32, uint64, bool, complex64, complex128")


def test_saved_model_is_refused_with_the_remedy():
    assert text_of(lambda: tf.saved_model) == (
        "tidemark.tensorflow has no saved_model: save the Variables instead: tf.train.Checkpoint(model=model).write(path) writes safetensors, and "
        "model.save_weights(path) too"
    )


# ---- texts of errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("call, text", [
    (lambda: tf.constant([1]) + tf.constant([1.0]),
     "add: the operands are int32(1,) and float32(1,), and TensorFlow's dtypes do not mix; write tf.cast(x, tf.int32) around one of them"),
    (lambda: tf.exp(tf.constant([1])), "exp: TensorFlow takes floats here, and this tensor is int32(1,); write tf.cast(x, tf.float32)"),
    (lambda: tf.concat([tf.constant([1]), tf.constant([1.0])], 0), "concat: tensors of int32 and float32; write tf.cast(x, tf.int32) around one of them"),
    (lambda: tf.matmul(tf.ones([2]), tf.ones([2])),
     "matmul: the operands are float32(2,) and float32(2,); each needs two axes or more: tf.linalg.matvec, or tf.expand_dims"),
    (lambda: tf.TensorArray(tf.float32, size=2).write(5, 1.0), "TensorArray.write: index 5 of an array of size 2; dynamic_size=True lets it grow"),
    (lambda: tf.map_fn(lambda e: tf.cast(e, tf.float32), tf.constant([1])),
     "map_fn: the function returns float32 and int32 was expected; write fn_output_signature=tf.float32"),
])
def test_errors_say_what_to_write(call, text):
    assert text_of(call) == text


def test_a_tensor_array_of_unknown_size_is_refused_with_the_remedy():
    @tf.function(jit_compile=True)
    def f(n):
        return tf.TensorArray(tf.float32, size=n).stack()

    assert text_of(lambda: f(tf.constant(3))) == (
        "TensorArray: the size is a tensor whose value is known only at run time, so the bytes are not; pass a Python int, or tf.shape(x)[0], whose "
        "value the plan knows"
    )


def test_a_dynamic_tensor_array_in_a_loop_without_a_bound_runs_op_by_op():
    def doubled(x):
        ta, i = tf.TensorArray(tf.float32, size=0, dynamic_size=True), 0
        while tf.reduce_sum(x) < 100.0:
            ta, x, i = ta.write(i, x), x * 2, i + 1
        return ta.stack()

    remedy = ("TensorArray: dynamic_size=True in a traced loop whose number of trips is not known, and so the bytes are not; write TensorArray(dtype, "
              "size=n) with the most elements there can be")
    f = tf.function(doubled)
    with pytest.warns(UserWarning, match=re.escape("doubled is not compiled: every call runs it as Python, op by op. " + remedy)) as caught:
        y = f(np.array([1.0, 2.0], np.float32))
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(y, [[2.0**i, 2.0 ** (i + 1)] for i in range(6)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # It is said once.
        assert f(tf.constant([30.0])).shape == (2, 1)
    with tf.GradientTape() as tape:
        x = tf.constant([1.0, 2.0])
        tape.watch(x)
        y = tf.reduce_sum(f(x))
    np.testing.assert_array_equal(tape.gradient(y, x), [63.0, 63.0])
    assert text_of(lambda: tf.function(doubled, jit_compile=True)(tf.constant([1.0, 2.0]))) == remedy
    assert text_of(lambda: f.plan(tf.constant([1.0, 2.0]))) == remedy
    outer = tf.function(lambda x: f(x) + 1)
    with pytest.warns(UserWarning, match="lambda is not compiled"):
        assert outer(tf.constant([30.0])).numpy().tolist() == [[31.0], [61.0]]


def test_a_tensor_array_with_the_size_of_a_tensor_runs_op_by_op():
    @tf.function
    def squares(n):
        ta = tf.TensorArray(tf.int32, size=n)
        for i in tf.range(n):
            ta = ta.write(i, i * i)
        return ta.stack()

    with pytest.warns(UserWarning, match="squares is not compiled"):
        assert squares(tf.constant(4)).numpy().tolist() == [0, 1, 4, 9]
    assert squares(tf.constant(2)).numpy().tolist() == [0, 1]


def test_a_dynamic_tensor_array_with_fewer_elements_than_trips_fails_when_it_is_read():
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(3):
            if x[i] > 1.5:
                ta = ta.write(ta.size(), x[i])
        return ta.stack()

    np.testing.assert_array_equal(f(tf.constant([2.0, 3.0, 4.0])), [2.0, 3.0, 4.0])
    assert text_of(lambda: f(tf.constant([1.0, 2.0, 3.0]))) == (
        "assert_that: TensorArray: dynamic_size=True, and its loop did not write one further element in each trip; write TensorArray(dtype, size=n)"
    )


def test_errors_name_the_users_line():
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        tf.reshape(tf.range(6), [4])
    assert re.search(r"test_tensorflow_words\.py:\d+", str(raised.value))
    assert isinstance(raised.value.__cause__, td.UserError)


def test_equal_seeds_give_equal_draws_and_models():
    def weights():
        tf.random.set_seed(4)
        return tf.keras.layers.Dense(3)(tf.ones([1, 2])).numpy().tolist(), tf.random.normal([2]).numpy().tolist()

    assert weights() == weights()


def test_a_table_keeps_row_sparse_gradients():
    table = tf.Variable(tf.zeros([1000, 4]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2]))
    g = tape.gradient(y, table)
    assert isinstance(g, tf.IndexedSlices)
    assert g.values.shape == [2, 4]
