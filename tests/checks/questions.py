#!/usr/bin/env python3
"""Checks that the code that docs/questions shows stands in the programs it names: `questions.py ROOT`."""
import glob
import os
import re
import sys

root = sys.argv[1]
problems, pages = [], sorted(glob.glob(os.path.join(root, "docs/questions/*.md")))
for page in pages:
    name = os.path.basename(page)[:-3]
    program = open(os.path.join(root, "examples/questions", name + ".cc"), encoding="utf-8").read()
    words = " ".join(program.split())
    text = open(page, encoding="utf-8").read()
    if not re.search(r"```\n[^`]*\d,\d{3}[^`]*```", text):
        problems.append(f"docs/questions/{name}.md does not show what examples/questions/{name}.cc prints")
    python = os.path.join("examples/python", f"question_{name}.py")
    told = " ".join(open(os.path.join(root, python), encoding="utf-8").read().split())
    if f"`{python}`" not in text:
        problems.append(f"docs/questions/{name}.md does not name {python}")
    for language, block in re.findall(r"```(cpp|python)\n(.*?)```", text, re.S):
        if " ".join(block.split()) not in (words if language == "cpp" else told):
            where = f"examples/questions/{name}.cc" if language == "cpp" else python
            problems.append(f"docs/questions/{name}.md shows what {where} does not have:\n{block}")
print("\n".join(problems) or f"{len(pages)} pages show what their programs have")
sys.exit(1 if problems or len(pages) != 5 else 0)
