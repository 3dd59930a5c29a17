# tf.data.Dataset.


def from_tensor_slices():
    ds = tf.data.Dataset.from_tensor_slices(tf.constant([[1, 2], [3, 4], [5, 6]]))
    return list(ds), len(ds)


def from_tensor_slices_of_a_tuple():
    ds = tf.data.Dataset.from_tensor_slices((np.arange(3, dtype=np.float32), [10, 20, 30]))
    return list(ds)


def from_tensor_slices_of_a_dict():
    ds = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0], "y": [3, 4]})
    return list(ds)


def from_tensors():
    return list(tf.data.Dataset.from_tensors([1, 2, 3]))


def from_generator():
    def numbers():
        for i in range(3):
            yield i, [i * 0.5, 1.0]

    ds = tf.data.Dataset.from_generator(
        numbers, output_signature=(tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.float32))
    )
    return list(ds), list(ds)


def from_generator_of_types():
    ds = tf.data.Dataset.from_generator(lambda: iter([1, 2, 3]), output_types=tf.int64)
    return list(ds)


def range_forms():
    d = tf.data.Dataset
    return list(d.range(3)), list(d.range(2, 6)), list(d.range(0, 10, 4)), list(d.range(5, 0, -2))


def map_():
    return list(tf.data.Dataset.range(4).map(lambda x: x * x)), list(tf.data.Dataset.range(2).map(lambda x: (x, tf.cast(x, tf.float32) / 2.0)))


def map_of_a_tuple():
    ds = tf.data.Dataset.from_tensor_slices(([1, 2], [10, 20])).map(lambda a, b: {"sum": a + b})
    return list(ds)


def map_parallel():
    ds = tf.data.Dataset.range(10).map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return list(ds)


def map_with_python_control_flow():
    def f(x):
        if x % 2 == 0:
            return x * 10
        else:
            return -x

    return list(tf.data.Dataset.range(5).map(f))


def filter_():
    return list(tf.data.Dataset.range(10).filter(lambda x: x % 3 == 0))


def batch():
    ds = tf.data.Dataset.range(7).batch(3)
    return list(ds), list(tf.data.Dataset.range(7).batch(3, drop_remainder=True)), len(ds)


def batch_of_structures():
    ds = tf.data.Dataset.from_tensor_slices({"x": tf.reshape(tf.range(6), [3, 2]), "y": [1.0, 2.0, 3.0]}).batch(2)
    return list(ds)


def unbatch():
    return list(tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(6), [2, 3])).unbatch())


def padded_batch():
    ds = tf.data.Dataset.range(1, 5).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    return list(ds.padded_batch(2)), list(ds.padded_batch(2, padded_shapes=[5], padding_values=tf.constant(-1, tf.int64)))


def shuffle():
    ds = tf.data.Dataset.range(20).shuffle(20, seed=1)
    a, b = [int(x) for x in ds], [int(x) for x in ds]
    return sorted(a), a != list(range(20)), a != b, sorted(b)


def shuffle_without_reshuffling():
    ds = tf.data.Dataset.range(20).shuffle(20, seed=1, reshuffle_each_iteration=False)
    return [int(x) for x in ds] == [int(x) for x in ds]


def shuffle_with_a_small_buffer():
    return int(next(iter(tf.data.Dataset.range(100).shuffle(5)))) < 5


def repeat():
    return list(tf.data.Dataset.range(2).repeat(3)), list(tf.data.Dataset.range(2).repeat().take(5))


def take_and_skip():
    ds = tf.data.Dataset.range(10)
    return list(ds.take(3)), list(ds.skip(8)), list(ds.take(-1).skip(9))


def zip_():
    a, b = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 15)
    return list(tf.data.Dataset.zip((a, b))), list(tf.data.Dataset.zip(a, b))


def zip_of_structures():
    a, b = tf.data.Dataset.range(2), tf.data.Dataset.from_tensor_slices(([1.0, 2.0], [3.0, 4.0]))
    return list(tf.data.Dataset.zip({"a": a, "b": b}))


def concatenate():
    return list(tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(5, 7)))


def cache():
    calls = []

    def numbers():
        calls.append(1)
        yield from [1, 2, 3]

    ds = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int32)).cache()
    return list(ds), list(ds), len(calls)


def prefetch():
    return list(tf.data.Dataset.range(5).prefetch(2)), list(tf.data.Dataset.range(3).prefetch(tf.data.AUTOTUNE))


def interleave():
    ds = tf.data.Dataset.range(1, 4).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2
    )
    return list(ds)


def flat_map():
    return list(tf.data.Dataset.range(3).flat_map(lambda x: tf.data.Dataset.range(x)))


def window():
    ds = tf.data.Dataset.range(7).window(3, shift=2, drop_remainder=True)
    return [[int(x) for x in w] for w in ds]


def window_to_batches():
    ds = tf.data.Dataset.range(6).window(3, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(3))
    return list(ds)


def as_numpy_iterator():
    return list(tf.data.Dataset.range(3).as_numpy_iterator()), next(tf.data.Dataset.from_tensor_slices({"a": [1.0]}).as_numpy_iterator())


def cardinality():
    d = tf.data.Dataset
    return (
        d.range(5).cardinality(), d.range(5).repeat().cardinality(), d.range(5).filter(lambda x: x > 1).cardinality(),
        tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY, d.range(7).batch(2).cardinality(),
    )


def len_of_an_unknown_size_is_an_error():
    return len(tf.data.Dataset.range(5).filter(lambda x: x > 1))


def element_spec():
    ds = tf.data.Dataset.from_tensor_slices((tf.zeros([4, 3]), tf.zeros([4], tf.int32))).batch(2)
    return ds.element_spec[0].shape, ds.element_spec[1].shape, ds.element_spec[0].dtype


def reduce():
    return tf.data.Dataset.range(5).reduce(np.int64(0), lambda s, x: s + x)


def enumerate_():
    return list(tf.data.Dataset.from_tensor_slices([10, 20]).enumerate(start=5))


def shard():
    return list(tf.data.Dataset.range(10).shard(num_shards=3, index=1))


def take_while():
    return list(tf.data.Dataset.range(10).take_while(lambda x: x < 4))


def apply():
    return list(tf.data.Dataset.range(4).apply(lambda ds: ds.filter(lambda x: x > 1)))


def scan():
    return list(tf.data.Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, s + x)))


def get_single_element():
    return tf.data.Dataset.from_tensors(7).get_single_element()


def iterator():
    it = iter(tf.data.Dataset.range(2))
    return next(it), it.get_next()


def iterator_past_its_end_is_an_error():
    it = iter(tf.data.Dataset.range(1))
    it.get_next()
    return it.get_next()


def rejection_free_pipeline():
    x, y = np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6)
    ds = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a / 2.0, b)).batch(4).prefetch(1)
    return [(a, b) for a, b in ds]


def for_loop_over_a_dataset_in_a_function():
    ds = tf.data.Dataset.range(5)

    @tf.function
    def total(ds):
        s = tf.constant(0, tf.int64)
        for x in ds:
            s += x
        return s

    return total(ds)


def bucket_free_ragged_rows():
    ds = tf.data.Dataset.from_generator(lambda: iter([[1], [1, 2], [1, 2, 3]]), output_signature=tf.TensorSpec([None], tf.int32))
    return list(ds), list(ds.padded_batch(3))


def sample_and_choose():
    d = tf.data.Dataset
    a, b = d.from_tensors(1).repeat(3), d.from_tensors(2).repeat(3)
    return list(d.choose_from_datasets([a, b], d.range(2).repeat(3)))


def options_are_taken():
    options = tf.data.Options()
    options.deterministic = True
    return list(tf.data.Dataset.range(2).with_options(options))


def random_seeded_augmentation():
    ds = tf.data.Dataset.range(4).map(lambda i: tf.random.stateless_uniform([], seed=[1, i]))
    return [float(x) for x in ds] == [float(x) for x in ds]


def ignore_errors_free_counter():
    return list(tf.data.Dataset.counter(start=3, step=2).take(3))


def rebatch():
    return list(tf.data.Dataset.range(6).batch(2).rebatch(3))
