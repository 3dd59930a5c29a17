"""Datasets: sequences of elements that are computed on demand.

    batches = (
        td.data.from_tensor_slices((images, labels))
        .shuffle(seed=1)
        .map(lambda x, y: (td.cast(x, td.f32) / 255, y), parallel=2)
        .batch(64)
        .prefetch(2)
    )
    for x, y in batches:
        step(x, y)

Order and values do not depend on threads. `batches.plan()` states the bytes of an iteration before any element is
made; `batches.within(256 * td.MiB)` refuses a pipeline that would hold more.
"""

from ._core.data import *  # noqa: F403


def _takes(function, count):
    """Whether a function takes so many arguments: the parts of a tuple, rather than the tuple."""
    import inspect  # Slow to import, and not needed by all.

    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # Nothing is known about its parameters.
        return True
    return True
