#!/usr/bin/env python3
"""Checks that README.md shows the first lesson and what it prints, word for word.

usage: readme.py README EXAMPLE_SOURCE EXAMPLE_PROGRAM
"""
import re
import subprocess
import sys

readme, source, program = sys.argv[1:]
text = open(readme, encoding="utf-8").read()
section = text[text.index("<!-- first-program: begin"):text.index("<!-- first-program: end -->")]
code, output = re.search(r"```cpp\n(.*?)```\n```\n(.*?)```", section, re.S).groups()
lesson = open(source, encoding="utf-8").read()
printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
problems = []
if lesson[lesson.index("#include"):] != code:
    problems.append(f"the program in {readme} is not {source}")
if printed != output:
    problems.append(f"{readme} shows\n{output}but {program} prints\n{printed}")
print("\n".join(problems) or "README.md shows what the first lesson prints")
sys.exit(1 if problems else 0)
