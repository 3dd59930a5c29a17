"""td.range: the numbers of a loop, whose bounds may be tensors."""
import builtins

from . import backend
from .backend import Tensor, is_traced, refuse


class range:  # noqa: A001
    """The numbers from `start` to `stop` - 1, in steps. In a traced function `for i in td.range(n)` is one loop of the program,
    where `for i in range(n)` is unrolled; the bounds may be tensors."""

    def __init__(self, start, stop=None, step=1):
        self.start, self.stop = (0, start) if stop is None else (start, stop)
        self.step = step
        if isinstance(step, int) and step == 0:
            refuse("range: the step is 0", "give a step that is not 0")

    def trips(self):
        """How many numbers there are: an int, or a tensor if a bound is one."""
        begin, end, step = self.start, self.stop, self.step
        if all(isinstance(value, int) for value in (begin, end, step)):
            return len(builtins.range(begin, end, step))
        if isinstance(step, int) and step == 1:
            return end - begin if not (isinstance(begin, int) and begin == 0) else end
        rounded = (end - begin + step - (1 if not isinstance(step, int) or step > 0 else -1)) // step
        return backend.maximum(rounded, 0)

    def number(self, trip):
        """The number of a trip, which is an integer tensor."""
        number = trip if isinstance(self.step, int) and self.step == 1 else trip * self.step
        return number if isinstance(self.start, int) and self.start == 0 else number + self.start

    def __iter__(self):
        if any(is_traced(value) for value in (self.start, self.stop, self.step)):
            refuse("range: the bounds are tensors of the trace, so the numbers are not known here", "write `for i in td.range(n)` as a statement")
        bounds = [value.item() if isinstance(value, Tensor) else value for value in (self.start, self.stop, self.step)]
        return map(backend.integer, builtins.range(*bounds))

    def __repr__(self):
        return f"range({self.start}, {self.stop}, {self.step})"
