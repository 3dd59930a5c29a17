#!/usr/bin/env python3
"""Checks that the compiler refuses each case of refused.cc with its sentence: `refused.py COMPILER ROOT`."""

import os
import re
import subprocess
import sys
import tempfile

compiler, root = sys.argv[1:]
source = os.path.join(root, "tests/refused/refused.cc")
# The public header is parsed once: g++ finds it precompiled in the folder that is searched first.
folder = tempfile.TemporaryDirectory()
os.mkdir(os.path.join(folder.name, "tidemark"))
subprocess.run([compiler, "-std=c++20", f"-I{root}", "-x", "c++-header", os.path.join(root, "tidemark/tidemark.h"),
                "-o", os.path.join(folder.name, "tidemark/tidemark.h.gch")], check=True)


def first_error(case):
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{folder.name}", f"-I{root}", f"-DCASE={case}", source]
    # The language of messages and the quotes in them follow the locale.
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    return next((line for line in result.stderr.splitlines() if "error:" in line), None)


with open(source, encoding="utf-8") as file:
    text = file.read()
cases = [(case, " ".join(re.sub(r"^ *// ?", "", comment, flags=re.M).split()))
         for case, comment in re.findall(r"^#elif CASE == (\d+)\n +// refused: ((?:.*\n)(?: +//.*\n)*)", text, re.M)]
if not cases or len(cases) != text.count("#elif CASE"):
    sys.exit("refused.cc: a case has no sentence")

faults = []
if (error := first_error(0)) is not None:
    faults.append(f"case 0 has no mistake, but: {error}")
for case, sentence in cases:
    error = first_error(case)
    if error is None:
        faults.append(f"case {case} compiles; wanted: {sentence}")
    elif sentence not in error:
        faults.append(f"case {case}: {error}\n  wanted: {sentence}")
print("\n".join(faults) if faults else f"{len(cases)} mistakes are refused, each with its sentence")
sys.exit(1 if faults else 0)
