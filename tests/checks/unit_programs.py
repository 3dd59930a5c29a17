"""unit_programs.py BUILD: every program that a unit test runs is made by the target `unit_tests`.

The sanitizer folders are built with that target alone: a test of a program it forgets fails there, and only there.
"""

import json
import os
import subprocess
import sys

build = os.path.abspath(sys.argv[1])


def told(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


lines = told("ninja", "-C", build, "-t", "query", "tests/unit_tests").splitlines()
made = {os.path.join(build, line.strip(" |")) for line in lines}
tests = json.loads(told("ctest", "--test-dir", build, "-L", "^unit$", "--show-only=json-v1"))["tests"]
# Programs are the words of a command that name files of the build.
run = {word for test in tests for word in test["command"] if word.startswith(build + "/") and os.path.isfile(word)}
forgotten = sorted(run - made)
for program in forgotten:
    print(f"{os.path.relpath(program, build)} is run by a test with the label `unit`, and `unit_tests` does not make it")
if forgotten or not run:
    sys.exit(1)
print(f"{len(tests)} tests run {len(run)} programs, all made by `unit_tests`")
