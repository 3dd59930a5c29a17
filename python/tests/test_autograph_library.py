"""Python's meaning is kept: modules of the standard library pass their own tests with every function of theirs rewritten."""
import importlib.util
import subprocess
import sys

import pytest

SCRIPT = """
import importlib, sys, types, unittest
import tidemark
from tidemark.autograph import runtime, conversion
from tidemark.autograph.jumps import Refused

conversion.is_left_alone = lambda function: True  # What a function calls stays as it is: each is rewritten by itself.
count = 0

def rewritten(value):
    global count
    if isinstance(value, (classmethod, staticmethod)):
        return type(value)(rewritten(value.__func__))
    if not isinstance(value, types.FunctionType):
        return value
    try:
        code = conversion._rewritten(value)
    except Refused:
        return value
    count += code is not None
    return value if code is None else conversion._made(value, code)

def rewrite(holder, module):
    for name, value in list(vars(holder).items()):
        if getattr(value, "__module__", None) != module.__name__ and holder is module:
            continue
        if isinstance(value, type) and holder is module:
            rewrite(value, module)
        elif rewritten(value) is not value:
            try:
                setattr(holder, name, rewritten(value))
            except (AttributeError, TypeError):
                pass

module = importlib.import_module(sys.argv[1])
rewrite(module, module)
tests = unittest.defaultTestLoader.loadTestsFromName(sys.argv[2])
result = unittest.TextTestRunner(verbosity=0).run(tests)
print(count, "functions rewritten,", result.testsRun, "tests")
sys.exit(not result.wasSuccessful() or count == 0)
"""


@pytest.mark.skipif(importlib.util.find_spec("test") is None or importlib.util.find_spec("test.test_textwrap") is None,
                    reason="this Python came without the tests of its library")
@pytest.mark.parametrize("module", ["textwrap", "difflib", "fractions", "argparse", "configparser", "pprint", "shlex", "ipaddress"])
def test_a_rewritten_module_passes_its_tests(module):
    done = subprocess.run([sys.executable, "-c", SCRIPT, module, f"test.test_{module}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
