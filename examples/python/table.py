"""Tables of bytes, planned and measured, for the questions."""

import sys

import tidemark as td


def is_small():
    """Whether a test asks for small sizes."""
    return "--small" in sys.argv


def title(text):
    print(f"{text:<60}{'planned bytes':>14} {'measured':>14}")


def row(name, planned, measured):
    print(f"  {name:<58}{planned if planned == '-' else format(int(planned), ','):>14} {int(measured):>14,}")
    assert planned == "-" or int(planned) == int(measured), "a run reaches its plan to the byte"


def eager(name, call):
    """Measures eager code by the peak of its tensors."""
    with td.MemoryScope(name) as scope:
        result = call()
    row(name, "-", scope.peak)
    return result


def function(name, f, *arguments):
    """Plans a call, then measures which bytes it touches."""
    planned = f.plan(*arguments).peak
    result, profile = f.profile(*arguments)
    row(name, planned, profile.touched)
    return result
