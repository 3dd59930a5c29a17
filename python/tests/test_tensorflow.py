"""tidemark.tensorflow runs the snippets of tensorflow_snippets as TensorFlow does: values, dtypes, shapes, and classes of errors."""
import importlib.util
import os
import pathlib
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import tensorflow_runner as runner
from tensorflow_differences import DIFFERENT

HERE = pathlib.Path(__file__).resolve().parent
OURS = "tidemark.tensorflow"

# Every name that the module promises; each is used by a snippet.
NAMES = """
function constant convert_to_tensor Variable range identity cast zeros ones fill eye linspace zeros_like ones_like reshape transpose concat stack
unstack split tile repeat expand_dims squeeze gather gather_nd where one_hot boolean_mask pad slice reverse sort argsort unique
tensor_scatter_nd_update tensor_scatter_nd_add tensor_scatter_nd_sub tensor_scatter_nd_max tensor_scatter_nd_min reduce_sum reduce_mean reduce_max
reduce_min reduce_prod reduce_all reduce_any reduce_logsumexp math.reduce_variance math.reduce_std random.normal random.uniform
random.truncated_normal random.categorical random.shuffle random.set_seed random.stateless_normal random.stateless_uniform
random.stateless_truncated_normal random.stateless_categorical random.Generator map_fn vectorized_map cond case switch_case while_loop scan foldl
TensorArray TensorShape TensorSpec GradientTape custom_gradient gradients stop_gradient recompute_grad IndexedSlices debugging.assert_equal
debugging.check_numerics print Assert config.experimental.get_memory_info config.experimental.reset_memory_stats config.run_functions_eagerly
data.Dataset data.AUTOTUNE data.TextLineDataset data.experimental.CsvDataset io.decode_png io.decode_jpeg io.read_file keras.Model keras.Input keras.Sequential keras.layers.Dense keras.losses.MeanSquaredError keras.metrics.Mean
keras.optimizers.Adam keras.initializers.GlorotUniform keras.activations.relu keras.callbacks.EarlyStopping train.Checkpoint
""".split()
METHODS = """
.assign( .assign_add( .assign_sub( .read_value( .numpy( .jacobian( .stop_recording( .reset( persistent= watch_accessed_variables= jit_compile=
input_signature= reduce_retracing= autograph= fn_output_signature= parallel_iterations= swap_memory= shape_invariants= maximum_iterations=
from_tensor_slices from_generator Dataset.range .map( .filter( .batch( .padded_batch( .shuffle( .repeat( .take( .skip( Dataset.zip .cache(
.prefetch( .interleave( .window( .shard( .sample_from_datasets( .bucket_by_sequence_length( .as_numpy_iterator( .cardinality( .compile( .fit( .evaluate( .predict( .train_on_batch( .summary(
.save_weights( .load_weights( .trainable_variables
""".split()


@pytest.fixture(scope="session")
def truth(tmp_path_factory):
    """What TensorFlow gives, from a process of its own."""
    known = os.environ.get("TENSORFLOW_SNIPPETS_TRUTH")
    out = pathlib.Path(known) if known else tmp_path_factory.mktemp("truth") / "truth.pickle"
    if not out.exists():
        subprocess.run([sys.executable, HERE / "tensorflow_runner.py", "tensorflow", out], check=True, stdout=subprocess.DEVNULL)
    return pickle.loads(out.read_bytes())


@pytest.fixture(scope="session")
def ours(tmp_path_factory):
    out = tmp_path_factory.mktemp("ours") / "ours.pickle"
    subprocess.run([sys.executable, HERE / "tensorflow_runner.py", OURS, out], check=True, stdout=subprocess.DEVNULL)
    return pickle.loads(out.read_bytes())


def names():
    found = []
    for path in sorted(runner.FOLDER.glob("*.py")):
        found += [f"{path.stem}.{name}" for name in re.findall(r"^def (?!_)(\w+)\(", path.read_text(), re.M)]
    return found


def difference(want, got, tolerance):
    """What differs between two outcomes; empty if nothing does."""
    if want[0] == "error" or got[0] == "error":
        if want[0] != got[0]:
            return f"{want[0]} there, {got[0]} here: {(want if want[0] == 'error' else got)[2]}\n{got[3] if got[0] == 'error' else got[1]}"
        return "" if want[1][0] in got[1] or got[1][0] in want[1] else f"{want[1][0]} there, {got[1]} here: {got[2]}"
    return plain_difference(want[1], got[1], tolerance, "result")


def plain_difference(want, got, tolerance, path):
    if want[0] != got[0] and {want[0], got[0]} != {"tensor", "array"}:
        return f"{path}: {want} there, {got} here"
    if want[0] in ("tensor", "array"):
        if want[1] != got[1] or want[2].shape != got[2].shape:
            return f"{path}: {want[1]}{want[2].shape} there, {got[1]}{got[2].shape} here"
        a, b = (np.asarray(x, np.float64) for x in (want[2], got[2]))
        return "" if np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True) else f"{path}: {want[2]} there, {got[2]} here"
    if want[0] == "sequence" or want[0] == "slices":
        a, b = (want[1], got[1]) if want[0] == "sequence" else (want[1:], got[1:])
        if len(a) != len(b):
            return f"{path}: {len(a)} parts there, {len(b)} here"
        return next((d for i, (x, y) in enumerate(zip(a, b)) if (d := plain_difference(x, y, tolerance, f"{path}[{i}]"))), "")
    if want[0] == "dict":
        if want[1].keys() != got[1].keys():
            return f"{path}: keys {sorted(want[1])} there, {sorted(got[1])} here"
        return next((d for k in want[1] if (d := plain_difference(want[1][k], got[1][k], tolerance, f"{path}[{k!r}]"))), "")
    if want[0] == "float":
        return "" if np.isclose(want[1], got[1], rtol=tolerance, atol=tolerance, equal_nan=True) else f"{path}: {want[1]} there, {got[1]} here"
    return "" if want == got else f"{path}: {want} there, {got} here"


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")
@pytest.mark.parametrize("name", names())
def test_a_snippet_gives_what_tensorflow_gives(name, truth, ours):
    found = difference(truth[name][0], ours[name][0], truth[name][1])
    if name in DIFFERENT:
        assert found, f"{name} agrees now: take it off the list"
    else:
        assert not found


def test_there_is_a_snippet_for_every_name():
    text = "".join(path.read_text() for path in runner.FOLDER.glob("*.py"))
    missing = [name for name in NAMES if not re.search(rf"tf\.{re.escape(name)}\b", text)] + [part for part in METHODS if part not in text]
    assert not missing
    assert len(names()) >= 300
