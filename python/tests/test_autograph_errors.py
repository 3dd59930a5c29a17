"""What cannot be traced is refused: the exact text, the Python name and the line."""
import warnings

import pytest

import tidemark as td

S, N, X = td.constant(1.0), td.constant(3), td.constant([1.0, -2.0, 3.0])


def error_of(f, *arguments, **options):
    """The text of the error; its line is given from the first line of the function."""
    with pytest.raises(td.UserError) as caught:
        td.function(f, **options)(*arguments)
    error = caught.value
    place = f"  at test_autograph_errors.py:{error.line}\n"
    assert place in str(error) and error.file == __file__
    return str(error).replace(place, f"  at line {error.line - f.__code__.co_firstlineno}\n")


def test_a_name_set_in_one_branch():
    def f(c):
        if c > 0:
            y = c
        return y
    assert error_of(f, S) == "if: `y` is set only in the first branch\n  at line 1\n  set it in both branches, or before the `if`"


def test_other_dtypes_in_branches():
    def f(c):
        if c > 0:
            y = td.constant(1)
        else:
            y = td.constant(1.5)
        return y
    assert error_of(f, S) == ("if: `y` is i32[] in the first branch and f32[] in the second\n  at line 1\n"
                              "  both branches must give the same dtype and shape")


def test_other_shapes_in_branches():
    def f(c):
        if c > 0:
            d = {"a": td.zeros((2,))}
        else:
            d = {"a": td.zeros((3,))}
        return d
    assert error_of(f, S) == ("if: `d['a']` is f32[2] in the first branch and f32[3] in the second\n  at line 1\n"
                              "  both branches must give the same dtype and shape")


def test_other_structures_in_branches():
    def f(c):
        if c > 0:
            y = (c, 1)
        else:
            y = c
        return y
    assert error_of(f, S) == ("if: `y` is (f32[], 1) in the first branch and f32[] in the second\n  at line 1\n"
                              "  both branches must give tensors or numbers of one structure")


def test_texts_cannot_be_chosen():
    def f(c):
        mode = "a" if c > 0 else "b"
        return mode
    assert error_of(f, S) == ("if: the value of the conditional expression is 'a' in the first branch and 'b' in the second\n  at line 1\n"
                              "  both branches must give tensors or numbers of one structure")


def test_a_result_on_some_paths():
    def f(c):
        if c > 0:
            return c
    assert error_of(f, S) == ("if: the result of the function is f32[] in the first branch and None in the second\n  at line 1\n"
                              "  both branches must give tensors or numbers of one structure")


def test_raise_in_a_branch():
    def f(c):
        if c > 0:
            raise ValueError("positive")
        return c
    assert error_of(f, S) == ("if: the first branch raises ValueError('positive'), and it is traced whether it will be taken or not\n"
                              "  at line 1\n  write assert, which fails when the program runs: assert not condition, message")


def test_a_condition_of_many_values():
    def f(x):
        return x if x > 0 else -x
    assert error_of(f, X) == ("a condition must be one value, got bool[3]\n  at line 1\n"
                              "  reduce it with td.all or td.any, or choose by element with td.where")


def test_another_dtype_after_a_trip():
    def f(n):
        total = td.constant(0)
        for i in td.range(n):
            total = total + 0.5
        return total
    assert error_of(f, N) == ("for: `total` is i32[] at the start of a trip and f32[] at its end\n  at line 2\n"
                              "  cast it in the body, td.cast(x, td.i32), or start with the other dtype")


def test_another_shape_after_a_trip():
    def f(n):
        total = td.zeros((1,))
        while td.sum(total) < n:
            total = td.concat([total, total], 0)
        return total
    assert error_of(f, N) == ("while: `total` is f32[1] at the start of a trip and f32[2] at its end\n  at line 2\n"
                              "  give it the same shape in every trip; collect what grows in a list, with append")


def test_another_structure_after_a_trip():
    def f(n):
        h = None
        for i in td.range(n):
            h = i
        return h
    assert error_of(f, N) == ("for: `h` is None at the start of a trip and i32[] at its end\n  at line 2\n"
                              "  a traced loop carries tensors and numbers of one structure: give it such a value before the loop")


def test_a_name_that_only_the_loop_sets():
    def f(n):
        for i in td.range(n):
            y = i
        return y
    assert error_of(f, N) == ("for: `y` is read after the loop, which sets it only if it runs a trip\n  at line 1\n"
                              "  give it a value before the loop")


def test_a_name_read_before_it_is_set():
    def f(n):
        s = 0
        for i in td.range(n):
            if i > 0:
                s = s + before
            before = i
        return s
    assert error_of(f, N) == "for: `before` is read in a trip before it is set\n  at line 2\n  give it a value before the loop"


def test_append_without_a_bound():
    def f(n):
        out, i = [], 0
        while i < n:
            out.append(i)
            i += 1
        return td.stack(out)
    assert error_of(f, N) == ("append: the number of trips of this loop is known only when the program runs, and so the length of the list is not "
                              "bounded\n  at line 3\n  loop over td.range(n) with a plain number n and break, or write into "
                              "td.TensorArray(dtype, max_size=n)")


def test_stack_of_a_list_of_unknown_length():
    def f(xs):
        out = []
        for x in xs:
            if x > 0:
                out.append(x)
        return td.stack(out)
    assert error_of(f, X) == ("the length of a list is known only when the program runs: a traced loop appends to it under a condition, or leaves "
                              "early\n  at line 5\n  append in every trip, choosing the value with td.where, or write into "
                              "td.TensorArray(dtype, max_size=n)")


def test_a_loop_over_a_number():
    def f(c):
        for x in c:
            pass
        return c
    assert error_of(f, S) == ("for: a tensor of rank 0 has no axis to loop over\n  at line 1\n"
                              "  loop over td.range(n), or over a tensor with a first axis")


def test_range_as_values():
    def f(n):
        return [i for i in td.range(n)]
    assert error_of(f, N) == ("range: the bounds are tensors of the trace, so the numbers are not known here\n  at line 1\n"
                              "  write `for i in td.range(n)` as a statement")


def test_a_range_of_step_0():
    with pytest.raises(td.UserError, match="range: the step is 0\n"):
        td.range(0, 5, 0)


def test_zip_of_other_lengths():
    def f(xs):
        for a, b in zip(xs, xs[1:]):
            pass
        return xs
    assert error_of(f, X) == "zip: the lengths differ: 3, 2\n  at line 1\n  cut the longer ones: x[:n]"


def test_zip_of_tensors_and_python_values():
    def f(xs):
        for a, b in zip(xs, [1, 2, 3]):
            pass
        return xs
    assert error_of(f, X) == ("zip: some of what the loop goes over are tensors, and some are Python values\n  at line 1\n"
                              "  stack the Python values into a tensor")


def test_a_generator():
    def f(c):
        yield c
    assert error_of(f, S) == ("test_a_generator.<locals>.f: a generator cannot be traced\n  at line 0\n"
                              "  return a list or a tuple of the results, or pass autograph=False and use td.cond and td.while_loop")


def test_a_jump_out_of_finally():
    def f(c):
        for _ in td.range(3):
            try:
                c = c + 1
            finally:
                break
        return c
    assert error_of(f, S) == ("test_a_jump_out_of_finally.<locals>.f: a jump out of `finally` cannot be traced\n  at line 5\n"
                              "  leave the loop or function behind the `try` statement, or pass autograph=False and use td.cond and td.while_loop")


def test_print_with_options():
    def f(c):
        print(c, end="")
        return c
    assert error_of(f, S) == ("print: end cannot be used with tensors of the trace\n  at line 1\n"
                              "  leave it out: values are separated by spaces")


def test_an_element_of_a_tensor_is_assigned():
    def f(xs):
        for i in td.range(3):
            xs[i] += 1.0
        return xs
    assert error_of(f, X).startswith("x[...] = value: the elements of a Tensor do not change\n  at line 2\n")


def test_without_autograph_a_condition_names_cond():
    def f(c):
        if c > 0:
            return c
        return -c
    text = error_of(f, S, autograph=False)
    assert text.startswith("the value of a traced tensor was read: bool[]") and "\n  at line 1\n  to branch on it use td.cond, td.while_loop" in text


def test_assert_fails_when_the_program_runs():
    @td.function
    def f(c):
        assert c < 0, "c must be negative"
        return c
    assert float(f(td.constant(-1.0))) == -1
    with pytest.raises(td.UserError, match="c must be negative"):
        f(S)


def test_an_unrolled_loop_warns_with_its_line():
    def f(x):
        for i in range(2):
            for k in range(300):
                x = x * 2 + k
        return x
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        td.function(f)(X)
    line = f.__code__.co_firstlineno + 2
    assert {(w.lineno, w.filename) for w in caught} == {(line, __file__)}
    assert str(caught[0].message) == (f"the loop at test_autograph_errors.py:{line} was unrolled into more than 1,000 ops by its first 251 trips: "
                                      "loop over td.range or over a tensor, and its body is traced once")


def test_nothing_changes_if_a_trace_fails():
    class Holder:
        value = 1.0
    holder, seen = Holder(), [1]

    def f(c):
        if c > 0:
            holder.value = c
            seen.append(c)
            undefined_name  # noqa: F821, B018
        return c
    with pytest.raises(NameError):
        td.function(f)(S)
    assert holder.value == 1.0 and seen == [1]


def test_a_slice_whose_bounds_are_traced():
    def f(m):
        total = m[0]
        for i in td.range(2):
            total += m[i:i + 1][0]
        return total
    assert error_of(f, td.ones((3, 2))) == ("subscript: a bound of a slice is a tensor of the function that is being traced, so the size of the result is known "
                                            "only when the function runs\n  at line 3\n  for a known number of rows, use indices: x[start + td.arange(count)]")


@pytest.mark.parametrize("element, shown", [(lambda row: (row[0], row), "(f32[], f32[2])"), (lambda row: {"a": row[0]}, "{'a': f32[]}")])
def test_structures_appended_in_a_traced_loop(element, shown):
    def f(m):
        out = []
        for row in m:
            out.append(element(row))
        return out[0]
    assert error_of(f, td.ones((3, 2))) == (f"append: the element is {shown}, and a list that a traced loop appends to holds tensors\n  at line 3\n"
                                            "  append each part to a list of its own")
