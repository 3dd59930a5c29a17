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


def _stairs(n):
    return tf.data.Dataset.range(1, n + 1).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))


def padded_batch_of_structures():
    ds = _stairs(5).map(lambda x: (x, {"y": tf.cast(x, tf.float32)[None, :]}))
    some = ds.padded_batch(2, padded_shapes=([None], {"y": [2, None]}), padding_values=(tf.constant(7, tf.int64), {"y": -1.0}), drop_remainder=True)
    return list(ds.padded_batch(3)), list(some)


def padded_batch_that_does_not_fit_is_an_error():
    return list(_stairs(4).padded_batch(4, padded_shapes=[2]))


def bucket_by_sequence_length():
    length = lambda x: tf.shape(x)[0]
    a = _stairs(9).bucket_by_sequence_length(length, [3, 6], [2, 2, 3])
    b = _stairs(5).bucket_by_sequence_length(length, [3, 7], [2, 2, 2], pad_to_bucket_boundary=True, drop_remainder=True)
    return list(a), list(b)


def bucket_beyond_its_boundary_is_an_error():
    return list(_stairs(4).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3], [2, 2], pad_to_bucket_boundary=True))


def windows_that_overlap():
    ds = tf.data.Dataset.range(7)
    return [[[int(x) for x in w] for w in ds.window(3, shift=s, stride=t)] for s in (1, 2, 4) for t in (1, 2)]


def interleave_of_several():
    d = tf.data.Dataset
    return [list(d.range(5).interleave(lambda x: d.range(x), cycle_length=c, block_length=b)) for c in (1, 2, 3, 8) for b in (1, 2)]


def shards():
    return [list(tf.data.Dataset.range(10).shard(4, i)) for i in range(4)]


def shard_that_is_none_is_an_error():
    return list(tf.data.Dataset.range(10).shard(4, 4))


def sample_from_datasets():
    d = tf.data.Dataset
    parts = [d.from_tensors(i).repeat(1000) for i in range(3)]
    drawn = [int(x) for x in d.sample_from_datasets(parts, weights=[0.25, 0.0, 0.75], seed=1)]
    share = drawn[:800].count(0) / 800
    return len(drawn), drawn.count(1), 0.18 < share < 0.32


def text_lines():
    import gzip
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        plain, packed = folder + "/a.txt", folder + "/b.txt.gz"
        with open(plain, "w", newline="") as file:
            file.write("one\r\n\ntwo words\nthree")
        with gzip.open(packed, "wt") as file:
            file.write("four\nfive\n")
        lines = [line.numpy().decode() for line in tf.data.TextLineDataset([plain])]
        zipped = [line.numpy().decode() for line in tf.data.TextLineDataset(packed, compression_type="GZIP").skip(1)]
        return lines, zipped


def csv_rows():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/a.csv"
        with open(path, "w") as file:
            file.write("a,b,c\n1,2.5,3\n4,,6\n7,NA,\"9\"\n")
        rows = tf.data.experimental.CsvDataset(path, [tf.int32, 0.5, tf.constant([1], tf.int64)], header=True, na_value="NA")
        two = tf.data.experimental.CsvDataset([path, path], [tf.int64, tf.float32], header=True, select_cols=[0, 2])
        return list(rows), list(two)


def csv_without_a_required_value_is_an_error():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/a.csv"
        with open(path, "w") as file:
            file.write("1,2\n,4\n")
        return list(tf.data.experimental.CsvDataset(path, [tf.int32, tf.int32]))


def _png(width, height, depth, color, rows, extra=b""):
    import struct
    import zlib

    chunk = lambda name, body: struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _chunk(name, body):
    import struct
    import zlib

    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def decode_png():
    draw = np.random.default_rng(1)
    rows = lambda h, n: b"".join(b"\0" + draw.integers(0, 256, n, np.uint8).tobytes() for _ in range(h))
    files = {
        "grey": _png(5, 4, 8, 0, rows(4, 5)), "rgb": _png(5, 4, 8, 2, rows(4, 15)), "rgba": _png(3, 2, 8, 6, rows(2, 12)),
        "grey alpha": _png(3, 2, 8, 4, rows(2, 6)), "bits": _png(9, 3, 1, 0, rows(3, 2)), "deep": _png(3, 2, 16, 2, rows(2, 18)),
        "palette": _png(4, 1, 8, 3, b"\0\0\1\2\1", _chunk(b"PLTE", bytes(range(9)))),
    }
    made = {name: tf.io.decode_png(file) for name, file in files.items()}
    for channels in (1, 3, 4):
        made[f"rgb as {channels}"] = tf.io.decode_png(files["rgb"], channels=channels)
    made["grey as rgb"] = tf.io.decode_png(files["grey"], channels=3)
    made["rgba as rgb"] = tf.io.decode_png(files["rgba"], channels=3)
    return made


# 17 x 13, colour, made by tf.io.encode_jpeg(image, quality=60).
JPEG = (
    "/9j/4AAQSkZJRgABAQEBLAEsAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZP"
    "NS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAANABEDASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL"
    "/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1"
    "dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQF"
    "BgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVm"
    "Z2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDk7XSuny1s"
    "WukdPlrbs7KLityzsYuK8qFb2hGW5pJWOW/sf/ZorufsMVFa+zPov7Vkf//Z"
)


def decode_jpeg():
    import base64

    file = base64.b64decode(JPEG)
    exact = dict(dct_method="INTEGER_ACCURATE")
    return tf.io.decode_jpeg(file, **exact), tf.io.decode_jpeg(file, channels=1, **exact), tf.io.decode_image(file).shape


def decode_of_a_damaged_file_is_an_error():
    return tf.io.decode_png(b"\x89PNG\r\n\x1a\n what follows is no chunk")


def read_file():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tf.io.write_file(folder + "/a.png", _png(2, 1, 8, 0, b"\0\7\x09"))
        return tf.io.decode_png(tf.io.read_file(folder + "/a.png"))


def read_of_no_file_is_an_error():
    return tf.io.read_file("/no/such/file")

