#!/usr/bin/env python3
"""Checks that README.md shows its two programs and what they print, word for word.

usage: readme.py README PEAK_SOURCE PEAK_PROGRAM FIRST_SOURCE FIRST_PROGRAM
"""
import re
import subprocess
import sys
import textwrap

readme, peak_source, peak_program, first_source, first_program = sys.argv[1:]
text = open(readme, encoding="utf-8").read()
problems = []


def section(name):
    return text[text.index(f"<!-- {name}: begin"):text.index(f"<!-- {name}: end -->")]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def printed_by(program):
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


# The lines that README.md begins with stand inside a program, and their comment names the peak that it prints.
lines = re.search(r"```cpp\n(.*?)```", section("peak-and-budget"), re.S)[1]
inside = re.search(r"// clang-format off\n(.*?) *// clang-format on", read(peak_source), re.S)[1]
if textwrap.dedent(inside) != lines:
    problems.append(f"the first lines of code in {readme} are not those of {peak_source}")
peak = printed_by(peak_program).splitlines()[0]
has_avx2 = " avx2 " in read("/proc/cpuinfo")  # Kernels for older CPUs need more scratch.
if has_avx2 and f"Known before anything runs: {peak}." not in lines:
    problems.append(f"{readme} names another peak than {peak}, which {peak_program} prints")

code, output = re.search(r"```cpp\n(.*?)```\n```\n(.*?)```", section("first-program"), re.S).groups()
lesson = read(first_source)
if lesson[lesson.index("#include"):] != code:
    problems.append(f"the program in {readme} is not {first_source}")
printed = printed_by(first_program)
if printed != output:
    problems.append(f"{readme} shows\n{output}but {first_program} prints\n{printed}")
print("\n".join(problems) or "README.md shows its programs and what they print")
sys.exit(1 if problems else 0)
