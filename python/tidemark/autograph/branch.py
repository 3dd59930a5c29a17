"""`if`, conditional expressions and boolean operators: on tensors of the trace a branch of the program, on Python values as in Python."""
import operator

from . import backend
from .backend import Variable, is_traced, refuse
from .errors import is_raised_by, run
from .lists import Buffer, Trip, Unfit, parts, paths, rebuilt
from .state import NUMBERS, UNSET, State, described, is_number_like


def if_stmt(test, body, orelse, block):
    if is_traced(test):
        traced_if(condition(test), body, orelse, block)
    elif test:
        run(body)
    elif orelse is not None:
        run(orelse)


def condition(test):
    """A tensor as Python sees it in a condition: whether its one element is not zero."""
    test = backend.inner(test)
    test = test.value() if isinstance(test, Variable) else test
    if any(size != 1 for size in test.shape):
        refuse(f"a condition must be one value, got {described(test)}", "reduce it with td.all or td.any, or choose by element with td.where")
    test = backend.reshape(test, ()) if len(test.shape) else test
    return test if test.dtype == backend.bool else test != 0


def traced_if(test, body, orelse, block):
    state = State(block, body)
    ends, merged = [], []

    def branch(traced):
        state.restore()
        try:
            if traced is not None:
                run(traced)
        except Exception as error:
            if not is_raised_by(traced, error):
                raise
            which = "second" if traced is orelse else "first"
            refuse(f"if: the {which} branch raises {error!r}, and it is traced whether it will be taken or not",
                   "write assert, which fails when the program runs: assert not condition, message")
        ends.append(state.take())

    def outcomes():
        state.restore()
        for slot, *both in zip(state.slots, *ends):
            merged.append(_Merged(slot.title(), *both, live=slot.carried, is_flag=slot.is_flag))
        return _chosen(merged)

    try:
        results = backend.cond(test, lambda: branch(body), lambda: branch(orelse), outcomes)
    except BaseException:
        state.restore()
        raise
    results = iter(results)
    state.put([part.filled(results) for part in merged])


def _chosen(merged):
    """The values of the first branch, those of the second, and their names for errors."""
    pairs = [pair for part in merged for pair in part.pairs]
    return [a for a, _, _ in pairs], [b for _, b, _ in pairs], [path for _, _, path in pairs]


class _Merged:
    """A value after a traced branch: parts that are the same in both stay as they are, the others are pairs to choose from."""

    def __init__(self, title, first, second, live=True, is_flag=False):
        self.title, self.pairs = title, []
        self._structure, self._leaves = None, [first]
        if first is second:
            return
        if not live:
            self._leaves = [UNSET]
        elif is_flag and (first is UNSET or second is UNSET):
            self._choose_set(first, second)
        else:
            self._choose(first, second)

    def filled(self, results):
        """The value, with chosen tensors from the iterator."""
        leaves = [next(results) if leaf is _CHOSEN else leaf for leaf in self._leaves]
        return leaves[0] if self._structure is None else rebuilt(self._structure, leaves)

    def _choose_set(self, first, second):
        """A flag's value that only one branch sets is never read after the other: any value will do there."""
        leaves, self._structure = parts(second if first is UNSET else first)
        self._leaves = [_CHOSEN] * len(leaves)
        self.pairs = [(None, leaf, self.title) if first is UNSET else (leaf, None, self.title) for leaf in leaves]

    def _choose(self, first, second):
        if first is UNSET or second is UNSET:
            which = "second" if first is UNSET else "first"
            refuse(f"if: {self.title} is set only in the {which} branch", "set it in both branches, or before the `if`")
        (one, self._structure), (other, structure) = parts(first), parts(second)
        if self._structure != structure:
            if isinstance(first, Trip):
                raise Unfit(first, Buffer)  # One branch appends more.
            self._differ(first, second)
        self._leaves = [self._leaf(*both) for both in zip(one, other, paths(structure, self.title.strip("`")))]

    def _leaf(self, one, other, path):
        if one is other or type(one) is type(other) and isinstance(one, NUMBERS + (str,)) and one == other:
            return one
        if not (is_number_like(one) or one is None) or not (is_number_like(other) or other is None):
            self._differ(one, other)
        self.pairs.append((one, other, f"`{path}`" if "`" in self.title else path))
        return _CHOSEN

    def _differ(self, first, second):
        refuse(f"if: {self.title} is {described(first)} in the first branch and {described(second)} in the second",
               "both branches must give tensors or numbers of one structure")


_CHOSEN = object()


def choose(test, first, second, title):
    """The value of one of two thunks, by a condition of the trace."""
    ends, merged = [], []

    def outcomes():
        merged.append(_Merged(title, *ends))
        return _chosen(merged)

    results = iter(backend.cond(test, lambda: ends.append(first(None)), lambda: ends.append(second(None)), outcomes))
    return merged[0].filled(results)


def if_exp(test, first, second):
    if is_traced(test):
        return choose(condition(test), first, second, "the value of the conditional expression")
    return first(None) if test else second(None)


# ---- boolean operators --------------------------------------------------------------------------

def _truth(value):
    return condition(value) if is_traced(value) else bool(value)


def _joined(cheap, value, rest, stops, join):
    """`and` and `or`: `stops` is the truth of an operand behind which the rest is not computed."""
    for number, operand in enumerate(rest):
        if is_traced(value):
            return _traced_join(cheap, value, rest[number:], stops, join)
        if bool(value) == stops:
            return value
        value = operand(None)
    return value


def _traced_join(cheap, value, rest, stops, join):
    value = backend.inner(value)
    first = condition(value)
    if cheap and value.dtype == backend.bool:
        for operand in rest:
            first = join(first, _truth(operand(None)))
        return first

    def behind(_):
        joined = _joined(cheap, rest[0](None), rest[1:], stops, join)
        return joined if value.dtype != backend.bool else _truth(joined)

    title = f"the value of `{'or' if stops else 'and'}`"
    value = first if value.dtype == backend.bool else value
    branches = (lambda _: value, behind) if stops else (behind, lambda _: value)
    return choose(first, *branches, title)


def and_(cheap, value, *rest):
    return backend.outer(_joined(cheap, value, rest, False, backend.logical_and))


def or_(cheap, value, *rest):
    return backend.outer(_joined(cheap, value, rest, True, backend.logical_or))


def not_(value):
    return backend.outer(backend.logical_not(condition(value))) if is_traced(value) else not value


# ---- comparisons and checks ---------------------------------------------------------------------

def _contains(item, container):
    if is_traced(container):
        return backend.outer(backend.any(backend.inner(container == item)))
    if isinstance(container, (list, tuple)) and any(is_traced(value) for value in (item, *container)):
        return or_(True, False, *(lambda _, each=each: each == item for each in container))
    return item in container


_COMPARISONS = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq, "NotEq": operator.ne,
                "Is": operator.is_, "IsNot": operator.is_not, "In": _contains, "NotIn": lambda a, b: not_(_contains(a, b))}


def compare(names, left, right, *rest):
    """A chain of comparisons: `a < b < c` computes each operand once, and those behind a False not at all."""
    result = _COMPARISONS[names[0]](left, right)
    for name, operand in zip(names[1:], rest):
        if not is_traced(result) and not result:
            return result
        left, right = right, operand(None)
        holds = _COMPARISONS[name](left, right)
        result = backend.outer(backend.logical_and(condition(result), _truth(holds))) if is_traced(result) else holds
    return result


def assert_stmt(test, message, text):
    if is_traced(test):
        backend.assert_that(condition(test), text if message is None else str(message(None)))
    elif not test:
        raise AssertionError(message(None)) if message is not None else AssertionError
