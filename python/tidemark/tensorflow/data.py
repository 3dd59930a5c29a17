"""tf.data.Dataset over td.data: the same stages, with TensorFlow's structures; `plan()` states the bytes of a pass."""
import collections
import itertools
import os

import numpy as np
import tidemark as td

from . import dtypes, nest
from .errors import InvalidArgumentError, OutOfRangeError
from .shapes import TensorShape, TensorSpec
from .tensor import convert, integer, is_tensor, spec_of, wrap

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


class Options:
    """tf.data.Options: taken and ignored; order and values never depend on threads."""

    def __init__(self):
        self.deterministic = None
        self.experimental_optimization = self.threading = self.autotune = self.experimental_distribute = collections.defaultdict(lambda: None)


def _element(structure):
    """An element as tensors: tuples and dicts are structures, lists are tensors."""
    if isinstance(structure, dict):
        return type(structure)((key, _element(value)) for key, value in structure.items())
    if isinstance(structure, tuple):
        parts = [_element(value) for value in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return structure if isinstance(structure, (Dataset, str)) else convert(structure)


def _call(f, element):
    """A tuple is passed as several arguments."""
    return f(*element) if isinstance(element, tuple) and not hasattr(element, "_fields") else f(element)


def _parallel(number):
    return 1 if number is None or number == AUTOTUNE else max(1, int(number))


class Iterator:
    def __init__(self, dataset):
        self._walk, self.element_spec = dataset._walk(), None

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._walk)

    def get_next(self):
        try:
            return next(self._walk)
        except StopIteration:
            raise OutOfRangeError("End of sequence") from None

    next = __next__


class Dataset:
    """A sequence of elements that are computed on demand."""

    def __init__(self, inner, count, spec):
        self._inner = inner  # A td.data.Dataset whose elements are structures of tf.Tensors.
        self._count, self._spec = count, spec

    # ---- where elements come from ----------------------------------------------------------------

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        structure = _element(tensors)
        leaves = nest.flatten(structure)
        sizes = {int(x.shape[0]) for x in leaves if x.ndim}
        if any(x.ndim == 0 for x in leaves):
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        if len(sizes) != 1:
            raise ValueError(f"Dimensions {sorted(sizes)} are not compatible: from_tensor_slices takes tensors of one length")
        spec = nest.map_structure(lambda x: TensorSpec(x.shape[1:], x.dtype), structure)
        return Dataset(td.data.from_tensor_slices(structure), sizes.pop(), lambda: spec)

    @staticmethod
    def from_tensors(tensors, name=None):
        structure = _element(tensors)
        return _generated(lambda: iter([structure]), 1, lambda: nest.map_structure(spec_of, structure))

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        specs = output_signature if output_signature is not None else output_types
        kinds = nest.map_structure(lambda s: s if isinstance(s, TensorSpec) else dtypes.as_dtype(s), specs)
        make = generator if args is None else lambda: generator(*args)

        def elements():
            for value in make():
                yield _typed(value, kinds)

        return _generated(elements, UNKNOWN_CARDINALITY, lambda: nest.map_structure(lambda s: s if isinstance(s, TensorSpec) else TensorSpec(None, s), kinds))

    @staticmethod
    def range(*args, output_type=None, name=None):
        bounds = [integer(a, "Dataset.range") for a in args]
        count = len(range(*bounds))
        dtype = dtypes.as_dtype(output_type or dtypes.int64)
        source = range(*bounds)
        made = Dataset(td.data.range(*_begin_end_step(source)).map(lambda x: wrap(x)), count, lambda: TensorSpec([], dtypes.int64))
        return made if dtype is dtypes.int64 else made.map(lambda x: wrap(td.cast(x._t, dtype._td)))

    @staticmethod
    def counter(start=0, step=1, dtype=dtypes.int64, name=None):
        dtype = dtypes.as_dtype(dtype)
        return _generated(lambda: (convert(i, dtype) for i in itertools.count(start, step)), INFINITE_CARDINALITY, lambda: TensorSpec([], dtype))

    @staticmethod
    def zip(*args, datasets=None, name=None):
        structure = datasets if datasets is not None else args[0] if len(args) == 1 and not isinstance(args[0], Dataset) else tuple(args)
        parts = nest.flatten(structure)
        counts = [d._count for d in parts]
        finite = [c for c in counts if c != INFINITE_CARDINALITY]
        count = UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else min(finite) if finite else INFINITE_CARDINALITY
        is_tuple = isinstance(structure, tuple) and all(isinstance(d, Dataset) for d in structure)
        inner = td.data.zip(*[d._inner for d in parts])
        if not is_tuple:
            inner = inner.map(lambda *elements: _packed(structure, elements))
        return Dataset(inner, count, lambda: nest.pack_sequence_as(structure, [d.element_spec for d in parts]))

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        def elements():
            walks = [iter(d) for d in datasets]
            for choice in choice_dataset:
                try:
                    yield next(walks[int(choice)])
                except StopIteration:
                    if stop_on_empty_dataset:
                        return

        return _generated(elements, UNKNOWN_CARDINALITY, lambda: datasets[0].element_spec)

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None):
        shares = [] if weights is None else [float(w) for w in np.asarray(weights, np.float64)]
        inner = td.data.sample_from([d._inner for d in datasets], weights=shares, seed=_seed(seed),
                                    reshuffle=bool(rerandomize_each_iteration), stop_on_empty=stop_on_empty_dataset)
        return Dataset(inner, UNKNOWN_CARDINALITY, lambda: datasets[0].element_spec)

    # ---- stages ----------------------------------------------------------------------------------

    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, use_unbounded_threadpool=False, name=None):
        inner = self._inner.map(lambda *parts: _element(map_func(*parts)), parallel=_parallel(num_parallel_calls))
        return Dataset(inner, self._count, None)

    def filter(self, predicate, name=None):
        return Dataset(self._inner.filter(lambda *parts: bool(predicate(*parts))), UNKNOWN_CARDINALITY, self._spec)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        n = integer(batch_size, "batch: batch_size")
        count = self._count if self._count < 0 else self._count // n if drop_remainder else -(-self._count // n)
        lead = [n if drop_remainder else None]
        spec = lambda: nest.map_structure(lambda s: TensorSpec(TensorShape(lead).concatenate(s.shape), s.dtype), self.element_spec)
        return Dataset(self._inner.batch(n, drop_remainder=drop_remainder), count, spec)

    def unbatch(self, name=None):
        def elements():
            for element in self:
                leaves = nest.flatten(element)
                for i in range(int(leaves[0].shape[0])):
                    yield nest.map_structure(lambda x: x[i], element)

        return _generated(elements, UNKNOWN_CARDINALITY, lambda: nest.map_structure(lambda s: TensorSpec(s.shape[1:], s.dtype), self.element_spec))

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        return self.unbatch().batch(batch_size, drop_remainder)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        size = integer(batch_size, "padded_batch: batch_size")
        shapes, values = self._padding(padded_shapes, padding_values)
        count = self._count if self._count < 0 else self._count // size if drop_remainder else -(-self._count // size)
        return Dataset(self._inner.padded_batch(size, shapes=shapes, values=values, drop_remainder=drop_remainder), count, None)

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None, padding_values=None,
                                  pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False, name=None):
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise ValueError(f"len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1, got {len(bucket_batch_sizes)} and {len(bucket_boundaries)}")
        if no_padding:
            raise InvalidArgumentError("bucket_by_sequence_length: batches are padded here; elements of one length need no padding")
        shapes, values = self._padding(padded_shapes, padding_values)
        inner = self._inner.bucket_by_length(
            lambda *parts: int(element_length_func(*parts)), [int(b) for b in bucket_boundaries], [int(n) for n in bucket_batch_sizes],
            shapes=shapes, values=values, pad_to_boundary=pad_to_bucket_boundary, drop_remainder=drop_remainder)
        return Dataset(inner, UNKNOWN_CARDINALITY, None)

    def _padding(self, shapes, values):
        """Shapes and values of padding, one for each tensor of an element."""
        if shapes is None and values is None:
            return [], []
        count = len(nest.flatten(self.element_spec))
        flat = [] if shapes is None else _flat_shapes(shapes, self.element_spec)
        if values is None:
            return flat, []
        fills = nest.flatten(values) if nest.is_nested(values) else [values] * count
        return flat, [0.0 if fill is None else float(convert(fill).numpy()) for fill in fills]

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        inner = self._inner.shuffle(buffer=int(buffer_size), seed=_seed(seed), reshuffle=True if reshuffle_each_iteration is None else reshuffle_each_iteration)
        return Dataset(inner, self._count, self._spec)

    def repeat(self, count=None, name=None):
        if count is None or count == -1:
            return Dataset(self._inner.repeat(), INFINITE_CARDINALITY if self._count else 0, self._spec)
        return Dataset(self._inner.repeat(int(count)), self._count * int(count) if self._count >= 0 else self._count, self._spec)

    def take(self, count, name=None):
        count = integer(count, "take: count")
        if count < 0:
            return self
        known = min(count, self._count) if self._count >= 0 else count if self._count == INFINITE_CARDINALITY else UNKNOWN_CARDINALITY
        return Dataset(self._inner.take(count), known, self._spec)

    def skip(self, count, name=None):
        count = integer(count, "skip: count")
        if count < 0:
            return Dataset(self._inner.take(0), 0, self._spec)
        return Dataset(self._inner.skip(count), max(0, self._count - count) if self._count >= 0 else self._count, self._spec)

    def cache(self, filename="", name=None):
        return Dataset(self._inner.cache(filename) if filename else self._inner.cache(), self._count, self._spec)

    def prefetch(self, buffer_size, name=None):
        return Dataset(self._inner.prefetch(2 if buffer_size in (None, AUTOTUNE) else max(1, int(buffer_size))), self._count, self._spec)

    def concatenate(self, dataset, name=None):
        counts = (self._count, dataset._count)
        count = INFINITE_CARDINALITY if INFINITE_CARDINALITY in counts else UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else sum(counts)
        return _generated(lambda: itertools.chain(iter(self), iter(dataset)), count, self._spec)

    def enumerate(self, start=0, name=None):
        numbered = _generated(lambda: ((convert(i, dtypes.int64), e) for i, e in zip(itertools.count(start), self)), self._count, None)
        numbered._spec = lambda: (TensorSpec([], dtypes.int64), self.element_spec)
        return numbered

    def shard(self, num_shards, index, name=None):
        shards, index = int(num_shards), int(index)
        if not 0 <= index < shards:
            raise InvalidArgumentError(f"index should be between 0 and {shards - 1} but is {index}")
        count = self._count if self._count < 0 else len(range(index, self._count, shards))
        return Dataset(self._inner.shard(shards, index), count, self._spec)

    def take_while(self, predicate, name=None):
        return _generated(lambda: itertools.takewhile(lambda e: bool(_call(predicate, e)), iter(self)), UNKNOWN_CARDINALITY, self._spec)

    def flat_map(self, map_func, name=None):
        return _generated(lambda: (inner for e in self for inner in _call(map_func, e)), UNKNOWN_CARDINALITY, None)

    def interleave(self, map_func, cycle_length=None, block_length=1, num_parallel_calls=None, deterministic=None, name=None):
        cycle = 16 if cycle_length in (None, AUTOTUNE) else int(cycle_length)
        return _generated(lambda: _interleaved(iter(self), map_func, cycle, int(block_length)), UNKNOWN_CARDINALITY, None)

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        shift = size if shift is None else int(shift)
        return Windows(self, int(size), shift, int(stride), drop_remainder)

    def scan(self, initial_state, scan_func, name=None):
        def elements():
            state = _element(initial_state)
            for element in self:
                state, value = scan_func(state, element)
                yield _element(value)

        return _generated(elements, self._count, None)

    def apply(self, transformation_func):
        return transformation_func(self)

    def with_options(self, options, name=None):
        return self

    def options(self):
        return Options()

    # ---- reading ---------------------------------------------------------------------------------

    def _walk(self):
        return iter(self._inner)

    def __iter__(self):
        return Iterator(self)

    def as_numpy_iterator(self):
        return (nest.map_structure(lambda x: x.numpy(), element) for element in self)

    def reduce(self, initial_state, reduce_func, name=None):
        state = _element(initial_state)
        for element in self:
            state = _element(reduce_func(state, element))
        return state

    def get_single_element(self, name=None):
        elements = list(self.take(2))
        if len(elements) != 1:
            raise InvalidArgumentError(f"get_single_element: the dataset has {'no element' if not elements else 'more than one element'}")
        return elements[0]

    def cardinality(self, name=None):
        return convert(self._count, dtypes.int64)

    def __len__(self):
        if self._count == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if self._count == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return self._count

    def __bool__(self):
        return True

    @property
    def element_spec(self):
        if self._spec is None:
            first = next(iter(self), None)
            self._spec = lambda: nest.map_structure(spec_of, first)
        return self._spec()

    def plan(self):
        """The bytes of one pass, stage by stage: a td.data.DatasetPlan."""
        return self._inner.plan()


class Windows(Dataset):
    """Datasets of successive elements, as elements."""

    def __init__(self, source, size, shift, stride, drop_remainder):
        self._source, self._size, self._shift, self._stride, self._drops = source, size, shift, stride, drop_remainder
        self._count, self._spec = UNKNOWN_CARDINALITY, None

    def _walk(self):
        elements = []
        walk, ended = iter(self._source), False
        width = (self._size - 1) * self._stride + 1
        while True:
            while not ended and len(elements) < max(width, 1):
                try:
                    elements.append(next(walk))
                except StopIteration:
                    ended = True
            part = elements[: width : self._stride]
            if not part or len(part) < self._size and self._drops:
                return
            yield _listed(part)
            for _ in range(self._shift - len(elements)):
                next(walk, None)
            elements = elements[self._shift :]

    def map(self, map_func, **options):
        return _generated(lambda: (_element(_call(map_func, e)) for e in self._walk()), UNKNOWN_CARDINALITY, None)


def _listed(elements):
    return _generated(lambda: iter(elements), len(elements), None)


def _packed(structure, elements):
    """Elements in the place of the datasets of a structure."""
    given = elements if hasattr(elements, "__next__") else iter(elements)
    if isinstance(structure, Dataset):
        return next(given)
    if isinstance(structure, dict):
        made = {key: _packed(structure[key], given) for key in sorted(structure)}
        return type(structure)((key, made[key]) for key in structure)
    return tuple(_packed(each, given) for each in structure)


def _generated(make, count, spec):
    return Dataset(td.data.from_generator(make), count, spec)


def _begin_end_step(numbers):
    return numbers.start, numbers.stop, numbers.step


def _typed(value, kinds):
    """What a generator yields, in the dtypes of its signature."""
    if isinstance(kinds, dict):
        return {key: _typed(value[key], kinds[key]) for key in kinds}
    if isinstance(kinds, tuple):
        return tuple(_typed(v, k) for v, k in zip(value, kinds))
    dtype = kinds.dtype if isinstance(kinds, TensorSpec) else kinds
    x = convert(value, None if is_tensor(value) else dtype)
    if isinstance(kinds, TensorSpec) and not kinds.is_compatible_with(x):
        raise TypeError(f"`generator` yielded an element of {x.dtype.name}{x.shape} where an element of {kinds.dtype.name}{kinds.shape} was expected.")
    return x


def _seed(seed):
    if seed is None:
        from . import random

        seed = random._global_seed
    return int.from_bytes(os.urandom(4), "little") if seed is None else int(seed)


def _flat_shapes(shapes, spec):
    """The shape of each tensor of an element; one shape may stand for all of a structure."""
    is_shape = isinstance(shapes, TensorShape) or isinstance(shapes, (list, tuple)) and all(s is None or isinstance(s, int) for s in shapes)
    if isinstance(spec, dict):
        return [s for key in sorted(spec) for s in _flat_shapes(shapes if is_shape else shapes[key], spec[key])]
    if isinstance(spec, tuple):
        parts = [shapes] * len(spec) if is_shape and (shapes or not spec) else shapes
        return [s for part, inner in zip(parts, spec) for s in _flat_shapes(part, inner)]
    return [[-1 if s is None else int(s) for s in shapes]]


def _interleaved(walk, map_func, cycle, block):
    slots = []
    for _ in range(cycle):
        element = next(walk, None)
        if element is not None:
            slots.append(iter(_call(map_func, element)))
    at = 0
    while any(slot is not None for slot in slots):
        slot = slots[at]
        for _ in range(block):
            if slot is None:
                break
            value = next(slot, None)
            if value is None:
                element = next(walk, None)
                slot = slots[at] = None if element is None else iter(_call(map_func, element))
                break
            yield value
        at = (at + 1) % len(slots)


class experimental:
    """tf.data.experimental."""

    AUTOTUNE = AUTOTUNE
    INFINITE_CARDINALITY = INFINITE_CARDINALITY
    UNKNOWN_CARDINALITY = UNKNOWN_CARDINALITY

    @staticmethod
    def cardinality(dataset):
        return dataset.cardinality()

    @staticmethod
    def CsvDataset(filenames, record_defaults, compression_type=None, buffer_size=None, header=False, field_delim=",", use_quote_delim=True,
                   na_value="", select_cols=None, exclude_cols=None):
        """Rows of CSV files, plain or gzip, as tuples of numbers. The files are read whole."""
        paths = [filenames] if isinstance(filenames, (str, bytes, os.PathLike)) else [str(f) for f in filenames]
        tables = [_csv_columns(path, record_defaults, header, field_delim, na_value, select_cols, exclude_cols) for path in paths]
        return Dataset.from_tensor_slices(tuple(wrap(td.concat(list(parts), 0)) for parts in zip(*tables)))


def _csv_columns(path, defaults, header, delimiter, na, selected, excluded):
    """The tensors of one file. A default that is a dtype makes a column required."""
    import csv
    import gzip

    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    with (gzip.open if is_gzip else open)(path, "rt", newline="") as file:
        first = next(csv.reader(file, delimiter=delimiter), [])
    names = first if header else [str(i) for i in range(len(first))]
    chosen = list(range(len(names))) if selected is None else list(selected)
    chosen = [i for i in chosen if i not in set(excluded or ())]
    if len(chosen) != len(defaults):
        raise InvalidArgumentError(f"CsvDataset: {len(defaults)} record_defaults for {len(chosen)} columns of {path}")
    kinds, missing = {}, {}
    for i, default in zip(chosen, defaults):
        is_dtype = isinstance(default, dtypes.DType)
        kinds[names[i]] = (default if is_dtype else convert(default).dtype)._td
        if not is_dtype:
            missing[names[i]] = float(convert(default).numpy().reshape(-1)[0])
    columns = [names[i] for i in chosen]
    try:
        table = td.data.load_csv(path, header=header, separator=delimiter, columns=columns, dtypes=kinds, missing=missing, na=na)
    except td.UserError as error:
        raise InvalidArgumentError(str(error)) from error
    for name in columns:
        if name not in missing and kinds[name].is_float and bool(td.any(td.isnan(table[name]))):
            raise InvalidArgumentError(f"CsvDataset: column {name} of {path} is required, but a value is missing")
    return [table[name] for name in columns]


class Text(str):
    """A line: a str of Python's that, as TensorFlow's tensors of texts do, gives its bytes."""

    def numpy(self):
        return self.encode()


class TextLineDataset(Dataset):
    """The lines of text files, plain or gzip, without their ends."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        paths = [filenames] if isinstance(filenames, (str, os.PathLike)) else [str(f) for f in filenames]
        lines = td.data.text_lines(paths)
        super().__init__(lines.map(lambda line: Text(line.numpy().tobytes().decode())), UNKNOWN_CARDINALITY, None)
