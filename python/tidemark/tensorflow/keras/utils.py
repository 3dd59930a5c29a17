"""tf.keras.utils."""
import random as _random

import numpy as np

from .. import random


def to_categorical(x, num_classes=None):
    labels = np.asarray(x, dtype="int64")
    shape = labels.shape[:-1] if labels.ndim > 1 and labels.shape[-1] == 1 else labels.shape
    flat = labels.reshape(-1)
    made = np.zeros((flat.size, num_classes or int(flat.max()) + 1))
    made[np.arange(flat.size), flat] = 1
    return made.reshape((*shape, made.shape[-1]))


def normalize(x, axis=-1, order=2):
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)


def set_random_seed(seed):
    _random.seed(seed)
    np.random.seed(seed)
    random.set_seed(seed)


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0):
    """Rows of one length: shorter sequences get values before or after them, longer ones lose theirs there."""
    rows = [np.asarray(row) for row in sequences]
    length = max((len(row) for row in rows), default=0) if maxlen is None else maxlen
    rest = next((row.shape[1:] for row in rows if len(row)), ())
    made = np.full((len(rows), length, *rest), value, dtype)
    for target, row in zip(made, rows):
        row = row[len(row) - length:] if truncating == "pre" and len(row) > length else row[:length]
        if len(row):
            target[slice(length - len(row), None) if padding == "pre" else slice(len(row))] = row
    return made
