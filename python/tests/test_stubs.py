"""Type checkers know the package: the stubs are right, and a wrong program is found."""
import os
import shutil
import subprocess
import sys

import tidemark as td

PROGRAM = """
import tidemark as td
x = td.ones((2, 3))
y: td.Tensor = td.softmax(x, axis=-1) + 1
z: td.Tensor = td.random.normal((2, 2)) @ y.T
n: int = len(y)
values, indices = td.top_k(x, 2)
for row in y.reshape(3, 2):
    row.sum(axis=0)
wrong: str = y.sum()
td.softmax(x, axis="a")
"""


def test_mypy_accepts_what_is_right_and_finds_what_is_wrong(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.path.dirname(os.path.dirname(td.__file__))
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "program.py"], cwd=tmp_path,
                          env=os.environ | {"MYPYPATH": path}, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("program.py") or "/_core/" in line]
    assert found == [
        'program.py:10: error: Incompatible types in assignment (expression has type "Tensor", variable has type "str")  [assignment]',
        'program.py:11: error: Argument "axis" to "softmax" has incompatible type "str"; expected "int"  [arg-type]'], done.stdout


def test_the_package_says_that_it_has_types():
    folder = os.path.dirname(td.__file__)
    assert os.path.exists(os.path.join(folder, "py.typed")) and os.path.exists(os.path.join(folder, "_core", "__init__.pyi"))


def test_the_stubs_themselves_are_right(tmp_path):
    stubs = os.path.join(os.path.dirname(td.__file__), "_core")
    shutil.copytree(stubs, tmp_path / "_core")  # Where mypy does not take them for an installed package.
    for file in tmp_path.glob("_core/**/*.pyi"):
        file.write_text(file.read_text().replace("tidemark._core", "_core"))
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "_core"], cwd=tmp_path, env={"PATH": os.environ["PATH"]},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
