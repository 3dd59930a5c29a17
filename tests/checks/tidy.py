#!/usr/bin/env python3
"""tidy.py BUILD: clang-tidy over all sources of the compile database in BUILD.

The database may be g++'s, with options for warnings that clang does not have and precompiled headers that it cannot
read: clang-tidy gets a copy without these, in which each source reads its own includes. Left out are the package's own
project, which is not in the database, and what includes omp.h: g++'s is not for clang to read.

A file found clean is remembered in the user's cache under a hash of all it depends on (its text and that of the
project's headers it reads, the command, the rules, the tool), so that a second run looks only at what changed.
"""
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SKIPPED = 77
TOOL = "clang-tidy-19"
ROOT = Path.cwd()
# g++ 12's own headers use what they deprecate.
QUIET = ["--extra-arg=-Wno-deprecated-declarations"]
CLEAN = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidemark" / "tidy"


def plain(command):
    """The command without precompiled headers."""
    words = [word for word in shlex.split(command) if word not in ("-Winvalid-pch", "-fpch-preprocess")]
    while any(word.endswith("cmake_pch.hxx") for word in words):
        at = next(idx for idx, word in enumerate(words) if word.endswith("cmake_pch.hxx"))
        del words[at - 1 : at + 1]
    return shlex.join(words)


def dependencies(entry):
    """The project's files that the entry's source reads, itself included."""
    words = [word for word in shlex.split(entry["command"]) if Path(word).name != "ccache"]
    words = words[: words.index("-o")] + ["-MM", entry["file"]]
    rule = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True, check=True).stdout
    return rule.replace("\\\n", " ").split(":", 1)[1].split()


def key(entry, rules):
    digest = hashlib.sha256(rules)
    digest.update(entry["command"].replace(str(ROOT), "").encode())
    for path in dependencies(entry):
        digest.update(Path(entry["directory"], path).read_bytes())
    return digest.hexdigest()


def findings(database, entry, rules):
    """What clang-tidy says about the entry's source; nothing where it is clean."""
    seen = CLEAN / key(entry, rules)
    if seen.exists():
        return ""
    told = subprocess.run([TOOL, "--quiet", "--warnings-as-errors=*", "--extra-arg=-Wno-unknown-warning-option", *QUIET,
                           "-p", database, entry["file"]], capture_output=True, text=True, check=False)
    if told.returncode == 0:
        seen.touch()
        return ""
    return told.stdout + told.stderr


def main():
    build = sys.argv[1]
    database = Path(build, "compile_commands.json")
    if shutil.which(TOOL) is None or not database.exists():
        print(f"skipped: {TOOL} or {database} is not there")
        return SKIPPED
    CLEAN.mkdir(parents=True, exist_ok=True)
    rules = Path(".clang-tidy").read_bytes() + subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    entries = {entry["file"]: entry | {"command": plain(entry["command"])} for entry in json.loads(database.read_text())}
    wanted = [entry for file, entry in sorted(entries.items())
              if Path(file).is_relative_to(ROOT) and not Path(file).is_relative_to(ROOT / "build")
              and Path(file) != ROOT / "bench/matmul.cc"]
    jobs = int(os.environ.get("TIDEMARK_TEST_JOBS", "1"))
    with tempfile.TemporaryDirectory() as copy, ThreadPoolExecutor(jobs) as pool:
        Path(copy, "compile_commands.json").write_text(json.dumps(wanted))
        told = [text for text in pool.map(lambda entry: findings(copy, entry, rules), wanted) if text]
    print("\n".join(told))
    print(f"{len(wanted)} files, {len(told)} with findings")
    return 1 if told or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
