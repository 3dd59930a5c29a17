#!/usr/bin/env bash
# install.sh FOLDER: the package as a stranger gets it. A source archive of the tree is made, built and
# installed by pip in an environment that has nothing, and used there. It is a whole build: ccache helps.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1
skip() { echo "skipped: $*" >&2; exit 77; }

rm -rf "$folder"
mkdir -p "$folder"
unset PYTHONPATH  # Which ctest sets for the other tests.
# pip unpacks and builds below the folder, and with the compiler's name that CMake finds: what a build
# with ccache has compiled before is then taken from there.
export TMPDIR=$folder/tmp CCACHE_BASEDIR=$folder CCACHE_NOHASHDIR=1 CXX=${CXX:-c++}
mkdir "$TMPDIR"
for name in builder user; do python3 -m venv "$folder/$name" || skip "python3 -m venv failed"; done
"$folder/builder/bin/pip" install --quiet --timeout 20 --retries 1 build || skip "PyPI cannot be reached"
"$folder/builder/bin/python" -m build --sdist --outdir "$folder" "$root"
archive=$(ls "$folder"/tidemark-*.tar.gz)
! tar tzf "$archive" | grep -q '/build/' || { echo "the archive holds build folders"; exit 1; }

"$folder/user/bin/pip" install --verbose "$archive"
cd "$folder"  # Away from the sources, so that only the installed package can be found.
"$folder/user/bin/python" - << 'END'
import importlib.metadata
import os
import subprocess

import numpy as np
import tidemark as td

assert td.__file__.startswith(os.getcwd()), td.__file__
assert importlib.metadata.requires("tidemark") == ["numpy>=1.26"]
assert (td.asarray(np.ones(3, np.float32)) + 1).tolist() == [2, 2, 2]
assert td.function(lambda x: td.exp(x) * 2)(td.zeros(3)).tolist() == [2, 2, 2]
folder = os.path.dirname(td.__file__)
for name in ("py.typed", "_core/__init__.pyi", "nn/__init__.py"):
    assert os.path.exists(os.path.join(folder, name)), name
shown = subprocess.check_output(["nm", "-D", "--defined-only", td._core.__file__], text=True).split("\n")
assert [line.split()[-1] for line in shown if line] == ["PyInit__core"], shown
print("installed from", importlib.metadata.version("tidemark"))
END
