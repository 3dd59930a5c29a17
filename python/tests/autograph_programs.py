"""Small programs of Python's control flow on tensors. Each is run as it is, on eager tensors, and as a td.function: `PROGRAMS` lists them with the
arguments to call them with. A number among the arguments is a tensor of the trace."""
import contextlib
import dataclasses
import functools
import itertools
from typing import NamedTuple

import numpy as np

import tidemark as td

PROGRAMS = []
X = [1.0, -2.0, 3.0]
M = [[1.0, 2.0], [3.0, -4.0], [-5.0, 6.0]]


def program(*calls):
    def register(f):
        PROGRAMS.extend((f, arguments if isinstance(arguments, tuple) else (arguments,)) for arguments in calls)
        return f
    return register


# ---- if -----------------------------------------------------------------------------------------

@program(1.0, -1.0)
def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = x - 1
    return y


@program(1.0, -1.0)
def if_without_else(x):
    y = x + 1
    if x > 0:
        y = y * 10
    return y


@program(-1.0, 0.5, 3.0)
def if_elif_else(x):
    if x < 0:
        y = x
    elif x < 1:
        y = x * 10
    else:
        y = x * 100
    return y


@program(1.0, -1.0)
def if_changes_its_argument(x):
    if x > 0:
        x += 5
    return x


@program((1.0, 2.0), (2.0, 1.0))
def if_swaps(a, b):
    if a > b:
        a, b = b, a
    return a, b


@program((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
def if_nested(a, b):
    if a > 0:
        if b > 0:
            y = a
        else:
            y = b
    else:
        y = a + b
    return y


@program(X)
def if_on_a_reduction(x):
    if td.sum(x) > 0:
        x = x / 2
    return x


@program(3, 0)
def if_on_an_integer(n):
    if n:
        return n + 1
    return n - 1


@program((True, 1.0), (False, 1.0))
def if_on_a_python_bool(flag, x):
    if flag:
        return x + 1
    return x - 1


@program(1.0)
def if_none(x, y=None):
    if y is None:
        y = x
    if x is not None and isinstance(x, td.Tensor):
        y = y + x
    return y


@program(1.0, -1.0)
def if_temporary_in_one_branch(x):
    if x > 0:
        t = x * 3
        y = t + t
    else:
        y = x
    return y


@program(1.0, -1.0)
def if_gives_numbers(x):
    if x > 0:
        scale = 2
    else:
        scale = 3
    return x * scale


@program(1.0, -1.0)
def if_keeps_equal_python_values(x):
    if x > 0:
        name, axis = "a", 0
        x = x + 1
    else:
        name, axis = "a", 0
    assert name == "a"
    return td.sum(td.expand_dims(x, axis), axis)


@program(1.0, -1.0)
def if_pass(x):
    if x > 0:
        pass
    else:
        x = -x
    return x


@program(1.0, -1.0)
def if_dict(x):
    if x > 0:
        d = {"a": x, "b": [x, x + 1]}
    else:
        d = {"a": -x, "b": [x, x * 2]}
    return d["a"] + d["b"][1]


@program(1.0, -1.0)
def if_deletes_before_use(x):
    y = x
    if x > 0:
        del y
        y = x * 2
    return y


@program(1.0, -1.0)
def if_walrus(x):
    if (y := x * 2) > 0:
        y = y + 1
    return y


@program(1.0, -1.0)
def if_with_import(x):
    if x > 0:
        import math
        x = x * math.pi
    return x


@program(([1.0, 2.0], 1.0), ([1.0, 2.0], -1.0))
def if_unpacks(xs, c):
    a, b = xs[0], xs[1]
    if c > 0:
        a, *rest = b, a, c
        b = rest[0] + rest[1]
    return a, b


# ---- conditional expressions and boolean operators ----------------------------------------------

@program(1.0, -1.0)
def conditional(x):
    return x * 2 if x > 0 else -x


@program(-1.0, 0.5, 2.0)
def conditional_nested(x):
    return 0.0 if x < 0 else (x if x < 1 else 1.0)


@program(1.0, -1.0)
def conditional_in_call(x):
    return td.exp(x if x > 0 else x - 1)


@program((1.0, 2.0), (-1.0, 2.0), (1.0, -2.0), (-1.0, -2.0))
def and_or(a, b):
    if a > 0 and b > 0:
        y = a
    elif a > 0 or b > 0:
        y = b
    else:
        y = a * b
    return y


@program(1.0, -1.0)
def not_(x):
    if not x > 0:
        x = -x
    return x


@program((1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (1.0, 3.0, 2.0))
def chained(a, b, c):
    return 1 if a < b < c else 0


@program(0, 1, 2, 5)
def and_guards_an_index(i):
    x = td.constant([1.0, -2.0])
    if i < 2 and x[td.minimum(i, 1)] > 0:
        return i + 10
    return i


@program(1.0)
def and_of_python_values(x):
    a, b = 0, [1]
    return x + (a and 5) + len(b or [])


@program((True, 1.0), (False, 1.0), (True, -1.0))
def and_mixes_python_and_tensors(flag, x):
    if flag and x > 0:
        return x
    return x * 10


@program(1, 2, 5)
def in_tuple(n):
    return 1 if n in (1, 2, 3) else 0


@program(1, 4)
def in_tensor(n):
    return 1 if n in td.constant([1, 2, 3]) else 0


@program(1, 4)
def not_in(n):
    return 1 if n not in [1, 2] else 0


@program((1.0, 2.0), (2.0, 1.0))
def builtin_max_min(a, b):
    return max(a, b) - min(a, b)


@program((1.0, 2.0), (-2.0, 1.0))
def builtin_all_any(a, b):
    y = 0
    if all([a > 0, b > 0]):
        y += 1
    if any((a > 0, b > 0)):
        y += 2
    return y


@program(2.7, -2.7)
def builtin_int_float(x):
    return float(int(x)) / 2


@program(0.0, 2.0)
def builtin_bool(x):
    return 1 if bool(x) else 2


# ---- while --------------------------------------------------------------------------------------

@program(4, 0)
def while_a_number_is_not_zero(n):
    total = n * 0
    while n:
        total += n
        n -= 1
    return total


@program((12, 18))
def while_both_change(a, b):
    while b:
        a, b = b, a % b
    return a


@program(([3.0, 1.0, 2.0],))
def slices_by_indices(x):
    total = x[:2]
    for i in td.range(2):
        total = total + x[i + td.arange(2)]
    return total


@program(5, 0)
def while_counts(n):
    i = 0
    while i < n:
        i += 1
    return i


@program(3.0, 0.0)
def while_sums(n):
    s = 0.0
    while n > 0:
        s += n
        n -= 1
    return s


@program(100.0)
def while_converges(x):
    guess = x
    while abs(guess * guess - x) > 1e-3:
        guess = (guess + x / guess) / 2
    return guess


@program((3, 4), (0, 4), (4, 0))
def while_nested(n, m):
    total = 0
    i = 0
    while i < n:
        j = 0
        while j < m:
            total += i * j
            j += 1
        i += 1
    return total


@program(10, 3)
def while_break(n):
    i = 0
    while i < n:
        if i * i > 20:
            break
        i += 1
    return i


@program(10)
def while_continue(n):
    i, s = 0, 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        s += i
    return s


@program(7, 100)
def while_true(n):
    i = 0
    while True:
        i += 1
        if i >= n or i > 50:
            break
    return i


@program(20)
def while_break_and_continue(n):
    i, s = 0, 0
    while i < n:
        i += 1
        if i % 2:
            continue
        if s > 30:
            break
        s += i
    return i, s


@program(4, 20)
def while_else(n):
    i = 0
    while i < n:
        if i > 6:
            break
        i += 1
    else:
        i = i + 1000
    return i


@program(12)
def while_returns(n):
    i = 0
    while i < n:
        if i * i > 30:
            return i * 100
        i += 1
    return i


@program(3)
def while_over_python_values_unrolls(x):
    i = 0
    while i < 3:
        x = x + i
        i += 1
    return x


@program(5.0)
def while_condition_and(x):
    i = 0
    while x > 1 and i < 10:
        x = x / 2
        i += 1
    return x, i


@program(4)
def while_carries_a_tuple(n):
    pair = (0, 1)
    while pair[0] < n:
        pair = (pair[0] + 1, pair[1] * 2)
    return pair


@program(4)
def while_fibonacci(n):
    a, b = 0, 1
    while n > 0:
        a, b = b, a + b
        n -= 1
    return a


@program(M)
def while_matrix(x):
    i = 0
    while td.sum(x) < 100:
        x = x * 2 + 1
        i += 1
    return x, i


@program(6)
def while_becomes_traced_in_its_first_trip(n):
    done = False
    i = 0
    while not done:
        i += 1
        done = i >= n
    return i


@program(5)
def while_walrus(n):
    s = 0
    while (n := n - 1) > 0:
        s += n
    return s, n


# ---- for ----------------------------------------------------------------------------------------

@program(X)
def for_tensor(xs):
    s = 0.0
    for x in xs:
        s += x
    return s


@program(M)
def for_rows(m):
    s = td.zeros((2,))
    for row in m:
        s = s * 2 + row
    return s


@program(5, 0)
def for_td_range(n):
    s = 0
    for i in td.range(n):
        s += i * i
    return s


@program(X)
def for_td_range_of_a_plain_number(x):
    for i in td.range(4):
        x = x + i
    return x


@program((2, 7), (7, 2))
def for_td_range_from(a, b):
    s = 0
    for i in td.range(a, b):
        s += i
    return s


@program((0, 10, 3), (10, 0, -3), (0, 9, 3), (5, 5, 1))
def for_td_range_step(a, b, c):
    s = 0
    for i in td.range(a, b, c):
        s = s * 10 + i
    return s


@program(X)
def for_td_range_of_plain_steps(x):
    for i in td.range(10, 0, -4):
        x = x * 2 + i
    return x


@program(4)
def for_range_of_a_tensor(n):
    s = 0
    for i in range(n):
        s += i
    return s


@program(X)
def for_python_range_unrolls(x):
    for i in range(3):
        x = x * i + 1
    return x


@program(X)
def for_python_list(x):
    for scale, shift in [(1, 2), (3, 4)]:
        x = x * scale + shift
    return x


@program(X)
def for_dict(x):
    for key, value in {"a": 1.0, "b": 2.0}.items():
        x = x + value if key == "a" else x * value
    return x


@program((X, 2.0), (X, 5.0))
def for_break(xs, limit):
    s = 0.0
    for x in xs:
        if x > limit:
            break
        s += x
    return s


@program(X)
def for_continue(xs):
    s = 0.0
    for x in xs:
        if x < 0:
            continue
        s += x
    return s


@program((X, 2.5), (X, 99.0))
def for_returns(xs, limit):
    for x in xs:
        if x > limit:
            return x * 100
    return td.sum(xs)


@program((X, 2.5), (X, 99.0))
def for_else(xs, limit):
    y = 0.0
    for x in xs:
        if x > limit:
            y = x
            break
    else:
        y = -1.0
    return y


@program((6, 3), (3, 6))
def for_td_range_break(n, m):
    s = 0
    for i in td.range(n):
        if i == m:
            break
        s += i
    return s


@program(3, 10)
def for_plain_td_range_break(m):
    s = 0
    for i in td.range(1, 8, 2):
        if i > m:
            break
        s = s * 10 + i
    return s


@program((X, 2.0))
def for_python_range_with_traced_break(xs, limit):
    s = 0.0
    for i in range(3):
        if xs[i] > limit:
            break
        s += xs[i]
    return s


@program(([[1.0, 5.0], [2.0, -1.0]], 4.0))
def for_nested(m, limit):
    s = 0.0
    for row in m:
        for x in row:
            if x > limit:
                continue
            s += x
        s *= 2
    return s


@program(([[1.0, 5.0], [2.0, -1.0]], 1.5), ([[1.0, 5.0], [2.0, -1.0]], 9.0))
def for_nested_return(m, limit):
    for row in m:
        for x in row:
            if x > limit:
                return x
    return -1.0


@program(X)
def for_enumerate(xs):
    s = 0.0
    for i, x in enumerate(xs):
        s += x * i
    return s


@program((X, [4.0, 5.0, 6.0]))
def for_zip(xs, ys):
    s = 0.0
    for x, y in zip(xs, ys):
        s += x * y
    return s


@program(X)
def for_enumerate_from(xs):
    s = 0.0
    for i, x in enumerate(xs, 10):
        s += x * i
    return s


@program(X)
def for_target_lives_on(xs):
    for x in xs:
        y = x * 2
    return x + y


@program(([1.0, 2.0],))
def for_over_a_captured_tensor(x):
    for c in td.constant([1.0, 2.0, 3.0]):
        x = x * c
    return x


@program(X)
def for_over_a_list_of_tensors(x):
    parts = [x, x + 1, x * 2]
    s = 0
    for part in parts:
        s = s + part
    return s


@program(X)
def for_rebinds_its_own_iterable(xs):
    for x in xs:
        xs = xs + x
    return xs


@program(X)
def for_generator(x):
    for i in (k * k for k in range(3)):
        x = x + i
    return x


@program(X)
def for_itertools(x):
    for a, b in itertools.product(range(2), repeat=2):
        x = x * (a + 1) + b
    return x


@program(X)
def for_reversed(xs):
    s = 0.0
    for i in reversed(range(3)):
        s = s * 2 + xs[i]
    return s


@program(X)
def comprehension(xs):
    return [x * 2 if x > 0 else x for x in xs]


@program(X)
def for_carries_nothing(xs):
    for x in xs:
        pass
    return xs


@program(M)
def for_if_in_loop(m):
    best = td.zeros((2,))
    count = 0
    for row in m:
        if td.sum(row) > td.sum(best):
            best = row
            count += 1
    return best, count


# ---- return -------------------------------------------------------------------------------------

@program(1.0, -1.0)
def return_early(x):
    if x > 0:
        return x
    x = x * 2
    return x - 1


@program(-5.0, -1.0, 1.0, 5.0)
def return_ladder(x):
    if x < -2:
        return x * 1
    if x < 0:
        return x * 2
    if x < 2:
        return x * 3
    return x * 4


@program((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
def return_nested(a, b):
    if a > 0:
        if b > 0:
            return a + b
        a = a * 10
    elif b > 0:
        return b
    return a


@program(1.0, -1.0)
def return_tuple(x):
    if x > 0:
        return x, x + 1
    return x - 1, x


@program(1.0, -1.0)
def return_dict(x):
    if x > 0:
        return {"value": x, "index": 1}
    return {"value": -x, "index": 2}


@program(3, 30)
def return_structure_from_loop(n):
    for i in td.range(n):
        if i * i > 20:
            return {"i": i, "sq": i * i}
    return {"i": n, "sq": 0}


@program(1.0)
def return_nothing(x):
    if x is None:
        return
    x + 1


@program(1.0, -1.0)
def return_in_with(x):
    with contextlib.nullcontext():
        if x > 0:
            return x
    return -x


@program(1.0, -1.0)
def return_in_try(x):
    try:
        if x > 0:
            return x
        x = x * 2
    finally:
        x = x + 1
    return x


@program(1.0)
def except_python_error(x):
    try:
        y = {}["missing"]
    except KeyError as error:
        y = len(error.args)
    else:
        y = 100
    if x > 0:
        y = y + x
    return y


# ---- attributes, items, mutation ----------------------------------------------------------------

class Counter:
    def __init__(self, start):
        self.value = start
        self.hits = 0
        self._Counter__private = start

    def add(self, x):
        if x > 0:
            self.value += x
            self.hits += 1
        return self

    def add_all(self, xs):
        for x in xs:
            self.value = self.value + x
            if x > 0:
                self.hits += 1
        return self.value, self.hits

    def hidden(self, xs):
        for x in xs:
            self.__private += x
        return self.__private


@program(1.0, -1.0)
def attribute_in_if(x):
    c = Counter(x * 0)
    c.add(x)
    return c.value, c.hits


@program(X)
def attribute_in_loop(xs):
    return Counter(0.0).add_all(xs)


@program(X)
def private_attribute_in_loop(xs):
    return Counter(1.0).hidden(xs)


@program(X)
def attribute_augmented(xs):
    c = Counter(0.0)
    for x in xs:
        c.value += x
        c.hits -= 1
    return c.value, c.hits


@program((1.0, 2.0), (-1.0, 2.0))
def dict_item(a, b):
    d = {"a": a, "b": b}
    if a > 0:
        d["a"] = d["b"]
        d["b"] += 1
    return d


@program(X)
def dict_item_in_loop(xs):
    d = {"sum": 0.0, "last": 0.0}
    for x in xs:
        d["sum"] += x
        d["last"] = x
    return d


@program(X)
def list_item_in_loop(xs):
    state = [0.0, 1.0]
    for x in xs:
        state[0] += x
        state[1] = state[1] * x
    return state


@program((1.0, 2.0), (-1.0, 2.0))
def list_append_in_both_branches(a, b):
    out = []
    if a > 0:
        out.append(a)
    else:
        out.append(b)
    return out[0]


@program(X)
def global_name(xs):
    global TOTAL
    TOTAL = 0.0
    for x in xs:
        TOTAL += x
    result, TOTAL = TOTAL, None
    return result


@program(X)
def nonlocal_name(xs):
    total = 0.0

    def add(x):
        nonlocal total
        total = total + x

    for x in xs:
        add(x)
    return total


@program(1.0, -1.0)
def annotated(x):
    y: float = x
    z: float
    if x > 0:
        y: float = x * 2
    z = y
    return z


# ---- lists that grow ----------------------------------------------------------------------------

@program(X)
def append_and_stack(xs):
    out = []
    for x in xs:
        out.append(x * 2)
    return td.stack(out)


@program(M)
def append_rows(m):
    out = []
    for row in m:
        out.append(row + 1)
    return td.stack(out)


@program(X)
def append_and_index(xs):
    out = []
    for x in xs:
        out.append(x * x)
    return out[0] + out[-1]


@program(X)
def append_twice_a_trip(xs):
    out = []
    for x in xs:
        out.append(x)
        out.append(x * 10)
    return td.stack(out)


@program(X)
def append_to_a_started_list(xs):
    out = [xs[0] * 100]
    for x in xs:
        out.append(out[0] * 0 + x) if False else out.append(x)
    return td.stack(out), len(out)


@program(4)
def append_in_td_range(x):
    out = []
    for i in td.range(5):
        x = x + i
        out.append(x)
    return td.stack(out)


@program(([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],))
def append_in_nested_loops(m):
    out = []
    for row in m:
        for x in row:
            out.append(x + 1)
        out.append(td.sum(row))
    return td.stack(out)


@program(X)
def append_reads_the_last(xs):
    out = [xs[0]]
    for x in xs:
        out.append(out[-1] + x)
    return out[3], out[1]


@program(X)
def append_under_a_condition(xs):
    out = []
    for x in xs:
        if x > 0:
            out.append(x)
    return out[0], out[1], len(out)


@program((X, 2.0))
def append_and_break(xs, limit):
    out = []
    for x in xs:
        if x > limit:
            break
        out.append(x)
    return out[0], len(out)


@program(X)
def append_in_one_branch_or_the_other(xs):
    out = []
    for x in xs:
        if x > 0:
            out.append(x)
        else:
            out.append(-x)
    return td.stack(out)


@program(X)
def append_then_loop_again(xs):
    out = []
    for x in xs:
        out.append(x)
    s = 0.0
    for y in out:
        s += y
    out.append(s)
    return td.stack(out)


@program(X)
def append_in_python_loop(x):
    out = []
    for i in range(3):
        out.append(x * i)
    return td.stack(out)


@program(X)
def append_to_an_attribute(xs):
    holder = Counter(0.0)
    holder.seen = []
    for x in xs:
        holder.seen.append(x * 2)
    return td.stack(holder.seen)


# ---- functions ----------------------------------------------------------------------------------

def helper(x, scale=2.0, *, shift=0.0):
    if x > 0:
        return x * scale + shift
    return x


@program(1.0, -1.0)
def calls_a_function(x):
    return helper(x) + helper(x, 3.0) + helper(x, shift=1.0)


@program(1.0, -1.0)
def nested_function(x):
    def inner(y):
        if y > 0:
            return y + x
        return y - x
    return inner(x) + inner(-x)


@program(1.0, -1.0)
def nested_function_with_default(x):
    def inner(y, k=x * 2):
        return y + k if y > 0 else k
    return inner(x)


@program(1.0, -1.0)
def lambda_in_function(x):
    f = lambda y: y * 2 if y > 0 else y  # noqa: E731
    return f(x) + (lambda z: -z if z > 0 else z)(x)


def recursive(x, depth):
    if depth == 0:
        return x
    return recursive(x * 2 if x > 0 else x - 1, depth - 1)


@program(1.0, -1.0)
def recursion(x):
    return recursive(x, 3)


def decorator(f):
    @functools.wraps(f)
    def wrapped(x):
        if x > 5:
            return f(x) * 10
        return f(x)
    return wrapped


@decorator
def decorated_helper(x):
    return x + 1 if x > 0 else x - 1


@program(1.0, -1.0, 7.0)
def calls_a_decorated_function(x):
    return decorated_helper(x)


@program(1.0, -1.0)
def calls_a_partial(x):
    return functools.partial(helper, scale=7.0)(x)


class Callable:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.step(x) if x > 0 else self.k

    def step(self, x):
        return x * self.k if x < 5 else x

    @classmethod
    def of_class(cls, x):
        return x + 1 if x > 0 else x

    @staticmethod
    def of_none(x):
        return x + 2 if x > 0 else x


@program(1.0, -1.0, 7.0)
def calls_an_object(x):
    return Callable(3.0)(x)


@program(1.0, -1.0)
def calls_class_and_static_methods(x):
    return Callable.of_class(x) + Callable(1.0).of_none(x)


class Base:
    def value(self, x):
        return x if x > 0 else -x


class Derived(Base):
    def value(self, x):
        if x > -10:
            y = super().value(x) + 1
        else:
            y = x
        return y


@program(2.0, -2.0, -20.0)
def calls_super(x):
    return Derived().value(x)


@program(1.0, -1.0)
def star_arguments(x):
    def f(*args, **kwargs):
        return args[0] if args[0] > 0 else kwargs["k"]
    return f(*[x], **{"k": x * 3})


@program(X)
def function_as_argument(xs):
    def apply(f, x):
        return f(x)
    return apply(lambda t: td.sum(t) if td.sum(t) > 0 else t[0], xs)


@program(1.0, -1.0)
def closure_over_a_changed_name(x):
    k = 1.0
    f = lambda: k  # noqa: E731
    if x > 0:
        k = 2.0
    return x + f()


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Pair:
    first: object
    second: object


@program(1.0, -1.0)
def named_tuple(x):
    p = Point(x, x + 1)
    if x > 0:
        p = Point(p.y, p.x)
    return p.x, p.y


@program(3)
def dataclass_in_loop(n):
    p = Pair(0, 1)
    for i in td.range(n):
        p = Pair(p.second, p.first + i)
    return p.first, p.second


@program(X)
def numpy_is_left_alone(x):
    weights = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    if weights.sum() > 3:
        x = x * td.constant(weights)
    return x


@program(1.0, -1.0)
def class_inside(x):
    class Local:
        scale = 3.0

        def apply(self, y):
            return y * self.scale if y > 0 else y
    return Local().apply(x)


@program(1.0, 3.0)
def match_python_value(x):
    mode = "double"
    match mode:
        case "double":
            y = x * 2 if x > 2 else x
        case _:
            y = x
    return y


@program(1.0, -1.0)
def assert_holds(x):
    assert x < 10, "x is small"
    assert x > -10
    return x


@program(5)
def with_statement_in_loop(n):
    s = 0
    for i in td.range(n):
        with contextlib.suppress(KeyError):
            s += i
    return s


@program(([3.0, 1.0, 2.0],))
def bubble_sort(x):
    for i in range(2):
        for j in range(2):
            a, b = x[j], x[j + 1]
            if a > b:
                x = td.update(x, j, b)
                x = td.update(x, j + 1, a)
    return x


@program((48, 36), (17, 5))
def euclid(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@program(27, 6)
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program(30, 2, 4)
def is_prime(n):
    if n < 2:
        return False
    i = 2
    while i * i <= n:
        if n % i == 0:
            return False
        i += 1
    return True


@program(10)
def sieve_count(n):
    count = 0
    for i in td.range(2, n):
        prime = True
        j = 2
        while j * j <= i:
            if i % j == 0:
                prime = False
                break
            j += 1
        if prime:
            count += 1
    return count


@program((X, 5), (X, 0))
def jumps_out_of_two_loops_with_else(x, n):
    total = x[0] * 0
    for i in td.range(n):
        for j in td.range(i + 1):
            if j == 3:
                break
            if (i + j) % 2 == 0:
                continue
            total += x[j] * i
            if total > 100:
                return total, i
        else:
            total += 0.5
        if total < -50:
            break
    else:
        total += 1000
    return total, n


@program(("a", 1.0), ("b", -1.0), ("other", -1.0))
def match_on_a_text(kind, x):
    match kind:
        case "a":
            y = x + 1
        case "b" | "c":
            y = x + 2
        case other:
            y = x * len(other)
    return y if y > 0 else -y


@program(X)
def walrus_in_a_traced_while(x):
    total, trips = td.constant(0.0), 0
    while (after := total + x[0]) < 5:
        total = after
        trips += 1
    return total, trips, after


@program((3.0,), (-3.0,))
def closure_that_counts(x):
    count = 0.0

    def add(v):
        nonlocal count
        if v > 0:
            count = count + v
        else:
            count = count - 1.0
        return count
    first = add(x)
    return first, add(first), count


@program((M,))
def append_in_loops_within_loops(m):
    rows = []
    for row in m:
        cells = []
        for v in row:
            cells.append(v * 2)
        rows.append(td.stack(cells))
    return td.stack(rows)


@program(([3.0, 1.0, 2.0],))
def insertion_sort(x):
    for i in td.range(1, 3):
        j = i
        while j > 0 and x[j - 1] > x[j]:
            a, b = x[j - 1], x[j]
            x = x.at[j].set(a).at[j - 1].set(b)
            j -= 1
    return x
