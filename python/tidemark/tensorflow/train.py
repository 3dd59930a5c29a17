"""tf.train: checkpoints, as safetensors files."""
import glob
import os
import re

import tidemark as td

from .errors import NotFoundError
from .module import Module
from .variable import Variable

SUFFIX = ".safetensors"


def named_variables(root, path="", seen=None):
    """(name, Variable) for every Variable reachable by attributes, keys and indices; the first name of each."""
    seen = set() if seen is None else seen
    if id(root) in seen or isinstance(root, (str, bytes, int, float, type(None))):
        return
    seen.add(id(root))
    if isinstance(root, Variable):
        yield path, root
        return
    if hasattr(root, "_checkpoint_parts"):
        children = root._checkpoint_parts()
    elif isinstance(root, dict):
        children = sorted((str(k), v) for k, v in root.items())
    elif isinstance(root, (list, tuple)):
        children = ((str(i), v) for i, v in enumerate(root))
    elif isinstance(root, Module):
        children = sorted(vars(root).items())
    else:
        return
    for name, child in children:
        yield from named_variables(child, f"{path}/{name}" if path else name, seen)


class ExponentialMovingAverage:
    """Running averages of Variables."""

    def __init__(self, decay, num_updates=None, zero_debias=False, name="ExponentialMovingAverage"):
        self._decay, self._updates, self.name, self._averages = decay, num_updates, name, {}

    def apply(self, var_list=None):
        decay = self._decay if self._updates is None else min(self._decay, (1.0 + float(self._updates)) / (10.0 + float(self._updates)))
        for variable in var_list or []:
            known = self._averages.get(id(variable))
            if known is None:
                known = self._averages[id(variable)] = (variable, Variable(variable, trainable=False, name=f"{variable.name.split(':')[0]}/{self.name}"))
            known[1].assign_sub((known[1] - variable) * (1.0 - decay))

    def average(self, var):
        known = self._averages.get(id(var))
        return None if known is None else known[1]


class LoadStatus:
    """What restore gives: assertions that everything was found."""

    def __init__(self, missing, unused):
        self._missing, self._unused = missing, unused

    def assert_consumed(self):
        if self._missing or self._unused:
            raise AssertionError(f"not in the file: {sorted(self._missing)}; not in the objects: {sorted(self._unused)}")
        return self

    def assert_existing_objects_matched(self):
        if self._missing:
            raise AssertionError(f"not in the file: {sorted(self._missing)}")
        return self

    assert_nontrivial_match = assert_existing_objects_matched

    def expect_partial(self):
        return self


class Checkpoint:
    def __init__(self, root=None, **kwargs):
        self._parts = dict(kwargs)
        if root is not None:
            self._parts["root"] = root
        self.save_counter = Variable(0, trainable=False, name="save_counter", dtype="int64")
        self.__dict__.update(kwargs)

    def _variables(self):
        return dict(named_variables(self._parts))

    def write(self, file_prefix, options=None):
        os.makedirs(os.path.dirname(os.path.abspath(file_prefix)), exist_ok=True)
        save_variables(self._variables(), file_prefix + SUFFIX)
        return file_prefix

    def save(self, file_prefix, options=None):
        self.save_counter.assign_add(1)
        return self.write(f"{file_prefix}-{int(self.save_counter)}")

    def read(self, save_path, options=None):
        return load_variables(self._variables(), save_path + SUFFIX)

    def restore(self, save_path, options=None):
        return LoadStatus(set(), set()) if save_path is None else self.read(save_path)


def save_variables(variables, path):
    td.io.save_safetensors(path, {name: v._v.value() for name, v in variables.items()})


def load_variables(variables, path):
    if not os.path.exists(path):
        raise NotFoundError(f"{path}: no such checkpoint")
    stored = td.io.load_safetensors(path, copy=True)
    for name, v in variables.items():
        if name in stored:
            v._v.assign(stored[name])
    return LoadStatus(set(variables) - set(stored), set(stored) - set(variables))


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    found = [path[: -len(SUFFIX)] for path in glob.glob(os.path.join(checkpoint_dir, "*" + SUFFIX))]
    numbers = [(int(m.group(1)), path) for path in found if (m := re.search(r"-(\d+)$", path))]
    return max(numbers)[1] if numbers else None


class CheckpointManager:
    """Saves numbered checkpoints and removes the oldest."""

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt", **options):
        self._checkpoint, self._directory, self._most, self._name = checkpoint, directory, max_to_keep, checkpoint_name
        self._kept = []
        os.makedirs(directory, exist_ok=True)

    checkpoints = property(lambda self: list(self._kept))
    latest_checkpoint = property(lambda self: latest_checkpoint(self._directory))
    directory = property(lambda self: self._directory)

    def save(self, checkpoint_number=None, **options):
        prefix = os.path.join(self._directory, self._name)
        path = self._checkpoint.save(prefix) if checkpoint_number is None else self._checkpoint.write(f"{prefix}-{int(checkpoint_number)}")
        self._kept.append(path)
        while self._most and len(self._kept) > self._most:
            os.remove(self._kept.pop(0) + SUFFIX)
        return path

    def restore_or_initialize(self):
        if self.latest_checkpoint:
            self._checkpoint.restore(self.latest_checkpoint)
        return self.latest_checkpoint
