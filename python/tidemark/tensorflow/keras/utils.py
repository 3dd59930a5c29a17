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
