"""td.io: files of NumPy, safetensors, checkpoints of Python models."""

import os
import pathlib

import numpy as np
import pytest

import tidemark as td


def error_of(call):
    with pytest.raises(td.UserError) as caught:
        call()
    assert caught.value.file == __file__, caught.value
    lines = str(caught.value).split("\n")
    return "\n".join(line for line in lines if not line.startswith("  at "))


def test_npy_both_ways(tmp_path):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "a.npy", a)
    current, borrowed = td.memory.current(), td.memory.borrowed()
    x = td.io.load_npy(tmp_path / "a.npy")
    assert np.array_equal(np.asarray(x), a)
    assert td.memory.current() == current and td.memory.borrowed() - borrowed == a.nbytes, "the file is mapped"
    owned = td.io.load_npy(str(tmp_path / "a.npy"), copy=True)
    assert td.memory.current() - current == 64
    del owned
    td.io.save_npy(tmp_path / "b.npy", x * 2)
    assert np.array_equal(np.load(tmp_path / "b.npy"), 2 * a)
    td.io.save_npy(tmp_path / "c.npy", a.T)
    assert np.array_equal(np.load(tmp_path / "c.npy"), a.T)


def test_npz_both_ways(tmp_path):
    a, b = np.arange(3), np.ones((2, 2), np.float64)
    np.savez_compressed(tmp_path / "a.npz", a=a, b=b)
    loaded = td.io.load_npz(tmp_path / "a.npz")
    assert set(loaded) == {"a", "b"} and loaded["b"].dtype == td.f64
    td.io.save_npz(tmp_path / "b.npz", {"x": loaded["a"], "y": b})
    again = np.load(tmp_path / "b.npz")
    assert np.array_equal(again["x"], a) and np.array_equal(again["y"], b)


def test_safetensors_both_ways(tmp_path):
    file = tmp_path / "a.safetensors"
    td.io.save_safetensors(file, {"w": np.eye(3, dtype=np.float32)}, metadata={"epoch": "3"})
    loaded = td.io.load_safetensors(file)
    assert isinstance(loaded, dict) and loaded.metadata == {"epoch": "3"}
    assert np.array_equal(np.asarray(loaded["w"]), np.eye(3))


def test_a_missing_file_is_an_error_with_the_line(tmp_path):
    path = tmp_path / "none.npy"
    assert error_of(lambda: td.io.load_npy(path))== (
        f"load_npy: {path} cannot be opened: No such file or directory\n  give the path of a file"
    )


class Block(td.nn.Module):
    def __init__(self):
        self.up, self.down = td.nn.Dense(8), td.nn.Dense(4)

    def __call__(self, x):
        return x + self.down(self.up(x))


class Model(td.nn.Module):
    def __init__(self):
        self.blocks = [Block(), Block()]
        self.scale = td.Variable(td.ones(()))

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x * self.scale


def values(model):
    return {name: np.array(np.asarray(v.value())) for name, v in td.nn.named_variables(model)}


def test_a_checkpoint_names_variables_by_attribute_and_number(tmp_path):
    model = Model()
    td.nn.build(model, td.ones((2, 4)))
    td.io.Checkpoint(model=model).save(tmp_path / "m.safetensors")
    names = sorted(td.io.load_safetensors(tmp_path / "m.safetensors"))
    assert names == sorted(
        [f"model/blocks/{i}/{layer}/{v}" for i in (0, 1) for layer in ("up", "down") for v in ("kernel", "bias")]
        + ["model/scale", "random"]
    )


def test_a_model_and_its_optimizer_come_back_bit_by_bit(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(2, 16, 4)).astype(np.float32)

    def trained(model, optimizer, epochs):
        td.nn.fit(model, [(x, y)], loss=td.nn.losses.mse, optimizer=optimizer, epochs=epochs, progress="none")

    one, first = Model(), td.nn.Adam(0.01)
    trained(one, first, 3)
    state = {"step": 3, "rate": 0.5, "done": False, "mean": td.ones((2,)), "list": [1, 2.5]}
    checkpoint = td.io.Checkpoint(model=one, optimizer=first, state=state)
    checkpoint.save(tmp_path / "c.safetensors")
    trained(one, first, 2)

    two, second = Model(), td.nn.Adam(0.01)  # Neither was ever called.
    other = {"step": 0, "rate": 0.0, "done": True, "mean": td.zeros((2,)), "list": [0, 0.0]}
    report = td.io.Checkpoint(model=two, optimizer=second, state=other).load(tmp_path / "c.safetensors")
    assert not report.missing and not report.unexpected and "optimizer/m/scale" in report.loaded
    assert (other["step"], other["rate"], other["done"], other["list"]) == (3, 0.5, False, [1, 2.5])
    assert type(other["done"]) is bool and other["mean"].tolist() == [1, 1]
    trained(two, second, 2)
    expected, got = values(one), values(two)
    assert all(np.array_equal(expected[name], got[name]) for name in expected)


def test_a_load_that_fails_changes_nothing(tmp_path):
    td.io.save_safetensors(tmp_path / "a.safetensors", {"m/kernel": td.ones((2, 3)), "s/step": td.constant(1)})
    layer, state = td.nn.Dense(3, use_bias=False), {"step": 7}
    td.nn.build(layer, td.ones((1, 4)))
    before = values(layer)
    text = error_of(lambda: td.io.Checkpoint(m=layer, s=state).load(tmp_path / "a.safetensors"))
    assert "m/kernel" in text and "f32[4, 3]" in text and "f32[2, 3]" in text
    assert state == {"step": 7} and np.array_equal(values(layer)["kernel"], before["kernel"])


def test_loads_in_part_and_renames(tmp_path):
    model = Model()
    td.nn.build(model, td.ones((2, 4)))
    td.io.Checkpoint(model=model).save(tmp_path / "m.safetensors")
    head = td.nn.Dense(8)
    report = td.io.Checkpoint({"head": head}).load(
        tmp_path / "m.safetensors", partial=True, rename={"model/blocks/0/up": "head"}, random=False
    )
    assert sorted(report.loaded) == ["head/bias", "head/kernel"]
    assert np.array_equal(np.asarray(head.kernel.value()), np.asarray(model.blocks[0].up.kernel.value()))


def test_a_checkpoint_has_the_position_of_a_dataset(tmp_path):
    data = td.data.range(10).shuffle(seed=3)
    walk = iter(data)
    first = [int(next(walk)) for _ in range(4)]
    td.io.Checkpoint(data=data).save(tmp_path / "d.safetensors")
    rest = [int(x) for x in walk]
    again = td.data.range(10).shuffle(seed=3)
    td.io.Checkpoint(data=again).load(tmp_path / "d.safetensors")
    assert [int(x) for x in again] == rest and sorted(first + rest) == list(range(10))


def test_a_number_cannot_be_put_back():
    assert error_of(lambda: td.io.Checkpoint(step=3)) == (
        'Checkpoint: "step" is a int, which a load could not put back where it came from\n'
        '  keep it in a dict, state = {"step": ...}, and give the dict, or keep it in a td.Variable'
    )


def test_saving_takes_no_bytes(tmp_path):
    model = td.nn.Dense(1000)
    model(td.ones((1, 1000)))
    td.memory.reset_peak()
    before = td.memory.peak()
    td.io.Checkpoint(model=model).save(tmp_path / "m.safetensors")
    assert td.memory.peak() - before < 4096
    assert os.path.getsize(tmp_path / "m.safetensors") > 4_000_000
    assert pathlib.Path(tmp_path / "m.safetensors.saving").exists() is False


def test_a_report_of_a_load_says_what_it_found(tmp_path):
    model = td.nn.Dense(2)
    td.nn.build(model, td.spec((1, 3)))
    td.io.save_safetensors(tmp_path / "w", {"kernel": td.ones((3, 2)), "other": td.ones(2)})
    report = td.io.load(tmp_path / "w", model, map=[("*", "*")], partial=True)
    assert repr(report) == "RestoreReport(1 loaded, missing=['bias'], unexpected=['other'])"
