"""isa.py BUILD: code for AVX2 and AVX-512 stays where only a CPU that has it will go.

An inline function that a source compiled with -mavx2 does not inline becomes a weak symbol, and the
linker keeps one copy of it for everybody: perhaps that one. On a CPU without AVX2 the library would then
crash in, say, std::vector. So no weak function of such an object may be defined in another one as well.
"""

import collections
import json
import os
import subprocess
import sys

build = sys.argv[1]
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
    commands = [entry["command"].split() for entry in json.load(file)
                if "tidemark_objects.dir" in entry["command"] and "c++-header" not in entry["command"]]

owners = collections.defaultdict(list)  # weak symbol: the objects that define it
special = {}  # object: the option it is compiled with
for words in commands:
    path = os.path.join(build, words[words.index("-o") + 1])
    options = [word for word in words if word.startswith("-mavx")]
    if options:
        special[path] = options[0]
    names = subprocess.run(["nm", "--defined-only", "--format=posix", path], capture_output=True, text=True, check=True)
    for line in names.stdout.splitlines():
        name, kind = line.split()[:2]
        if kind in "Ww":
            owners[name].append(path)

faults = [name for name, paths in owners.items() if len(paths) > 1 and any(path in special for path in paths)]
for name in faults:
    plain = subprocess.run(["c++filt", name], capture_output=True, text=True, check=False).stdout.strip() or name
    for path in owners[name]:
        print(f"{os.path.relpath(path, build)} ({special.get(path, 'baseline')}) defines {plain}")
if faults:
    print("Mark these functions static, put them in an unnamed namespace, or have them always inlined.")
    sys.exit(1)
print(f"{len(commands)} objects, {len(special)} of them for AVX2 or AVX-512: they share no function")
