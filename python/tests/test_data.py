"""td.data: order, values, bytes and errors of datasets of Python structures."""

import collections
import dataclasses
import gc
import threading
import weakref

import numpy as np
import pytest

import tidemark as td
from tidemark import data


def numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset]


def error_of(call, kind=td.UserError):
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.file == __file__, caught.value
    lines = str(caught.value).split("\n")
    return "\n".join(line for line in lines if not line.startswith("  at "))


def test_rows_of_tensors_are_views():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    before = td.memory.current()
    rows = data.from_tensor_slices(x)
    walked = list(rows)
    assert td.memory.current() == before, "views of the array"
    assert [r.tolist() for r in walked] == [[0, 1], [2, 3], [4, 5]]
    assert len(rows) == rows.count() == 3


Pair = collections.namedtuple("Pair", "x y")


@dataclasses.dataclass
class Example:
    image: object
    label: object


@pytest.mark.parametrize(
    "make, image, label",
    [
        (lambda x, y: (x, y), lambda e: e[0], lambda e: e[1]),
        (lambda x, y: [x, {"y": y}], lambda e: e[0], lambda e: e[1]["y"]),
        (lambda x, y: {"x": x, "y": (y,)}, lambda e: e["x"], lambda e: e["y"][0]),
        (Pair, lambda e: e.x, lambda e: e.y),
        (Example, lambda e: e.image, lambda e: e.label),
    ],
)
def test_elements_are_structures(make, image, label):
    x, y = np.arange(12).reshape(6, 2), np.arange(6)
    rows = data.from_tensor_slices(make(x, y))
    (first, *_), (batch, last) = rows, rows.batch(4)
    assert type(first) is type(make(x, y)) is type(batch)
    assert np.array_equal(np.asarray(image(first)), x[0]) and int(label(first)) == 0
    assert np.array_equal(np.asarray(image(batch)), x[:4]) and np.asarray(label(last)).tolist() == [4, 5]
    mapped = rows.map(lambda *e: make(image(e[0] if len(e) == 1 else e) * 2, label(e[0] if len(e) == 1 else e)))
    again = list(mapped.batch(6))[0]
    assert np.array_equal(np.asarray(image(again)), 2 * x)


def test_map_takes_the_parts_of_a_tuple_or_the_whole():
    pairs = data.zip(data.range(3), data.range(10, 13))
    assert numbers(pairs.map(lambda a, b: a + b)) == [10, 12, 14]
    assert numbers(pairs.map(lambda e: e[0] * e[1])) == [0, 11, 24]
    assert numbers(pairs.map(td.maximum)) == [10, 11, 12]
    assert numbers(pairs.filter(lambda a, b: a == 1).map(lambda a, b: b)) == [11]


def test_functions_may_be_traced_and_change_the_structure():
    f = td.function(lambda x: {"double": x * 2, "name": x + 1})
    mapped = data.range(4).map(f)
    assert [(int(e["double"]), int(e["name"])) for e in mapped] == [(0, 1), (2, 2), (4, 3), (6, 4)]
    texts = data.range(2).map(lambda x: {"x": x, "label": "text", "none": None})
    assert [(e["label"], e["none"]) for e in texts.batch(2)] == [("text", None)]


def test_stages():
    r = data.range
    assert numbers(r(2, 11, 3)) == [2, 5, 8]
    assert numbers(r(5).batch(2)) == [[0, 1], [2, 3], [4]]
    assert numbers(r(5).batch(2, drop_remainder=True)) == [[0, 1], [2, 3]]
    assert numbers(r(3).repeat(2)) == [0, 1, 2, 0, 1, 2]
    assert numbers(r(3).repeat().take(7)) == [0, 1, 2, 0, 1, 2, 0] and r(3).repeat().count() is None
    assert numbers(r(9).skip(2).take(3)) == [2, 3, 4]
    assert numbers(r(9).filter(lambda x: x % 2 == 0)) == [0, 2, 4, 6, 8]
    assert numbers(r(50).map(lambda x: x * x, parallel=4)) == [x * x for x in range(50)]
    assert sorted(numbers(r(50).map(lambda x: x * x, parallel=4, deterministic=False))) == [x * x for x in range(50)]
    assert numbers(r(6).prefetch(2).map(lambda x: x + 1)) == [1, 2, 3, 4, 5, 6]
    one = numbers(r(20).shuffle(seed=1))
    assert sorted(one) == list(range(20)) and one != list(range(20)) and one == numbers(r(20).shuffle(seed=1))
    shuffled = r(20).shuffle(seed=1)
    assert numbers(shuffled) != numbers(shuffled), "another order in each pass"
    assert sorted(numbers(data.from_generator(lambda: iter(range(9))).shuffle(buffer=4))) == list(range(9))


def test_a_cache_computes_each_element_once(tmp_path):
    calls = []

    def noted(x):
        calls.append(int(x))
        return x * 2

    cached = data.range(4).map(noted).cache()
    assert numbers(cached) == numbers(cached) == [0, 2, 4, 6] and len(calls) <= 5
    calls.clear()
    for _ in range(2):
        assert numbers(data.range(4).map(noted).cache(tmp_path / "c")) == [0, 2, 4, 6]
    assert len(calls) <= 6


def test_generators():
    made = []

    def generator():
        made.append(1)
        for i in range(3):
            yield {"x": np.full(2, i, np.float32), "n": i}

    dataset = data.from_generator(generator)
    for _ in range(2):
        assert [(e["x"].tolist(), int(e["n"])) for e in dataset] == [([0, 0], 0), ([1, 1], 1), ([2, 2], 2)]
    assert len(made) == 2
    assert numbers(data.from_generator([3, 4])) == [3, 4]
    assert error_of(lambda: data.from_generator(iter([1])), TypeError) == (
        "from_generator: a list_iterator can be walked only once, and a dataset is walked once an epoch\n"
        "  give a function that makes it: from_generator(lambda: ...)"
    )


def test_rows_of_a_file(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2))
    assert numbers(data.from_npy(tmp_path / "a.npy")) == [[0, 1], [2, 3], [4, 5]]


def test_plan_states_the_bytes_and_within_refuses():
    images = np.zeros((100, 32, 32), np.float32)
    batches = data.from_tensor_slices(images).shuffle(seed=1).batch(10)
    plan = batches.plan()
    assert plan.is_known and plan.total == 10 * 4096
    assert [s.stage for s in plan.stages] == ["from_tensor_slices", "shuffle", "batch(10)"]
    assert all(s.line.startswith("test_data.py:") for s in plan.stages) and "batch(10)" in str(plan)
    td.memory.reset_peak()
    start = td.memory.current()
    for batch in batches:
        del batch
    assert td.memory.peak() - start == plan.total
    assert numbers(data.range(3).within(1 << 20)) == [0, 1, 2]
    with pytest.raises(td.OverBudget) as caught:
        batches.within(1000)
    assert caught.value.budget == 1000 and caught.value.file == __file__


def test_position_and_restore():
    dataset = data.range(6)
    walk = iter(dataset)
    assert [int(next(walk)), int(next(walk))] == [0, 1]
    assert dataset.position() == data.Position(0, 2) == walk.position()
    other = data.range(6)
    other.restore(dataset.position())
    assert numbers(other) == [2, 3, 4, 5]
    assert repr(data.Position(1, 2)) == "Position(passes=1, element=2)"


def test_errors_name_the_element_and_keep_the_cause():
    def broken(x):
        return [0, 1][int(x)]

    with pytest.raises(td.UserError) as caught:
        list(data.range(5).map(broken))  # the line of the stage
    text = str(caught.value)
    assert text.startswith("data: map failed at element 2: IndexError: list index out of range\n  at test_data.py:")
    assert isinstance(caught.value.__cause__, IndexError) and caught.value.file == __file__
    with pytest.raises(td.UserError) as caught:
        list(data.range(5).map(broken, parallel=3))
    assert isinstance(caught.value.__cause__, IndexError)
    with pytest.raises(KeyboardInterrupt):
        list(data.range(5).map(interrupted))
    with pytest.raises(td.UserError) as caught:
        list(data.from_generator(lambda: (1 // (2 - i) for i in range(5))))
    assert str(caught.value).startswith("data: generator failed at element 2: ZeroDivisionError: ")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert error_of(lambda: data.range(3).map(7), TypeError) == "a int cannot be called\n  give a function of an element"
    assert error_of(lambda: data.zip(data.range(3), 5), TypeError) == (
        "zip: a int is not a dataset\n  give datasets: td.data.zip(a, b)"
    )
    assert error_of(lambda: len(data.range(3).repeat()), TypeError).startswith("len: the number of elements is not known")
    assert "3" in error_of(lambda: data.from_tensor_slices((np.ones(3), np.ones(4))))


def interrupted(x):
    raise KeyboardInterrupt


def test_walks_that_are_given_up_end_their_threads():
    before = threading.active_count()
    for _ in range(3):
        walk = iter(data.range(1000).map(lambda x: x + 1, parallel=4).prefetch(3))
        assert int(next(walk)) == 1
        del walk
    assert threading.active_count() == before


def test_threads_share_a_dataset():
    dataset = data.range(200).map(lambda x: x * 3, parallel=2).batch(10)
    results = []
    threads = [threading.Thread(target=lambda: results.append(numbers(dataset))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(r == results[0] for r in results)


def test_datasets_go_when_their_last_name_goes():
    gc.disable()
    try:
        class Scale:
            def __call__(self, x):
                return x * 2

        scale = Scale()
        seen = weakref.ref(scale)
        dataset = data.range(10).map(scale).batch(2)
        del scale
        assert numbers(dataset)[0] == [0, 2]
        before = td.memory.current()
        del dataset
        assert seen() is None and td.memory.current() <= before
    finally:
        gc.enable()


def test_files_of_datasets(tmp_path):
    import gzip

    table = tmp_path / "table.csv.gz"
    table.write_bytes(gzip.compress(b"a,b\n1,2.5\n3,\n"))
    columns = td.data.load_csv(table)
    assert list(columns) == ["a", "b"] and columns["a"].dtype == td.i64 and columns["b"].dtype == td.f32
    assert np.array_equal(columns["a"], [1, 3]) and np.isnan(np.asarray(columns["b"])[1])
    assert td.data.load_csv(table, columns=["a"], dtypes={"a": td.f64})["a"].dtype == td.f64
    images = tmp_path / "images"
    images.write_bytes(b"\0\0\x08\x02" + (2).to_bytes(4, "big") + (3).to_bytes(4, "big") + bytes(range(6)))
    assert np.array_equal(td.data.load_idx(images), np.arange(6, dtype=np.uint8).reshape(2, 3))
    cifar = tmp_path / "cifar"
    cifar.write_bytes((bytes([5]) + bytes(3072)) * 2)
    pixels, labels = td.data.load_cifar(cifar)
    assert pixels.shape == (2, 32, 32, 3) and list(np.asarray(labels)) == [5, 5]


def stairs(count):
    return data.range(1, count + 1).map(lambda n: td.arange(int(n)))


def test_batches_of_different_sizes_are_padded():
    assert numbers(stairs(3).padded_batch(2)) == [[[0, 0], [0, 1]], [[0, 1, 2]]]
    pairs = stairs(2).map(lambda x: {"x": x, "y": td.cast(x, td.f32)})
    (batch,) = pairs.padded_batch(2, shapes=[[3], [-1]], values=[-1, 0.5])
    assert batch["x"].tolist() == [[0, -1, -1], [0, 1, -1]] and batch["y"].tolist() == [[0, 0.5], [0, 1]]
    batches = stairs(5).bucket_by_length(lambda x: x.shape[0], [3], [2, 2], pad_to_boundary=False)
    assert [b.shape for b in batches] == [(2, 2), (2, 4), (1, 5)]
    assert error_of(lambda: stairs(2).padded_batch(2, values=[1, 2]).take(1).__iter__().__next__()) == (
        "padded_batch: 2 values for elements of 1 tensors\n  give one for each tensor of an element")


def test_windows_shards_and_several_datasets():
    assert numbers(data.range(6).window(3, shift=2)) == [[0, 1, 2], [2, 3, 4], [4, 5]]
    assert numbers(data.range(7).shard(3, 1)) == [1, 4]
    tens = lambda n: data.from_tensor_slices({"i": td.arange(int(n)) + 10 * int(n)})
    assert [int(e["i"]) for e in data.range(4).interleave(tens, cycle=3, block=2)] == [10, 20, 21, 30, 31, 32]
    assert [int(e["i"]) for e in data.range(3).flat_map(tens)] == [10, 20, 21]
    text = error_of(lambda: list(data.range(3).interleave(lambda n: n)))
    assert text.startswith("data: interleave failed at element 0: it returned a ")
    one, two = data.from_tensor_slices((td.ones((50,)),)), data.from_tensor_slices((td.zeros((50,)),))
    drawn = [int(x) for (x,) in data.sample_from([one, two], weights=[1, 3], seed=2)]
    assert len(drawn) == 100 and sum(drawn) == 50 and sum(drawn[:40]) < 20


def test_lines_and_images_of_files(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\n")
    assert [x.numpy().tobytes() for x in data.text_lines(path)] == [b"one", b"two"]
    assert data.text_lines([path, path]).count() == 4
    assert "decode_png: the bytes of a file are wanted, got object" in error_of(lambda: data.decode_png(object()), TypeError)
    assert "decode_png: these bytes are no PNG file" in error_of(lambda: data.decode_png(b"text"))


def test_missing_values_of_tables(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n,NA\n")
    table = data.load_csv(path, dtypes={"a": td.i32}, missing={"a": -1, "b": 0.5}, na="NA")
    assert table["a"].tolist() == [1, -1] and table["b"].tolist() == [2, 0.5]
    assert f'{path} has no value in line 3, column "a", which is i32' in error_of(lambda: data.load_csv(path, dtypes={"a": td.i32}))



def test_tables_in_other_encodings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("a,b\n1,caf\xe9\n".encode("latin-1"))
    assert f'{path} has "caf\ufffd" in line 2, column "b", which is no number' in error_of(lambda: data.load_csv(path))
    path.write_bytes("caf\xe9,b\n1,2\n".encode("latin-1"))
    assert list(data.load_csv(path)) == ["caf\ufffd", "b"]


def test_samples_of_elements_by_weight():
    drawn = td.data.range(3).sample([1, 0, 3], count=2000, seed=3)
    numbers = np.array([int(x) for x in drawn])
    assert len(numbers) == 2000 and set(numbers) == {0, 2}
    assert abs((numbers == 0).mean() - 0.25) < 0.04
    batch = next(iter(td.data.from_tensor_slices(np.arange(3.0)).sample(np.array([0, 0, 1.0])).batch(2)))
    assert batch.tolist() == [2.0, 2.0]
    with pytest.raises(td.UserError, match="sample: 2 weights for 3 elements"):
        td.data.range(3).sample([1, 2])
