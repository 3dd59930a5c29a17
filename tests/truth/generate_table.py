"""The table of ops: for each a function that emits a statement of it into a Generator's program.

Where nothing that is there fits, operands are new arguments.
"""

OPS = {}


def op(*names):
    def add(function):
        for name in names:
            OPS[name] = lambda g, name=name: function(g, name)
        return function
    return add


def csv(numbers):
    return ",".join(str(n) for n in numbers)
