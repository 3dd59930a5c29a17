"""tf.autograph: how control flow of functions is rewritten."""
import tidemark as td

from .errors import UnknownBytes


class experimental:
    """tf.autograph.experimental."""

    @staticmethod
    def do_not_convert(func=None):
        return td.autograph.do_not_convert if func is None else td.autograph.do_not_convert(func)

    @staticmethod
    def set_loop_options(parallel_iterations=None, swap_memory=None, maximum_iterations=None, shape_invariants=None):
        """Loops need none of this, but for shapes that change: a loop whose sizes are not known runs op by op."""
        if shape_invariants and td.is_tracing():
            raise UnknownBytes("set_loop_options: a loop variable changes its shape from trip to trip, and so its bytes are not known before the run; "
                               "collect in tf.TensorArray(dtype, size=n)")


def to_graph(entity, recursive=True, experimental_optional_features=None):
    return td.autograph.convert(entity)
