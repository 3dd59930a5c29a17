#!/usr/bin/env bash
# memcheck.sh PYTEST-ARGUMENT...: tests of the bindings under valgrind. Only what passes through the
# extension counts: the interpreter has reads of its own that valgrind does not like.
set -euo pipefail
command -v valgrind > /dev/null || { echo "skipped: valgrind is not installed" >&2; exit 77; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# valgrind does not know the instructions of AVX-512.
TIDEMARK_ISA=avx2 PYTHONMALLOC=malloc valgrind --log-file="$log" --undef-value-errors=no --num-callers=30 \
  python -m pytest -q -p no:cacheprovider "$@"
# Reports are paragraphs; those with a line of the extension are ours.
if awk -v RS='' '/Invalid (read|write|free)|Mismatched free/ && /_core\./' <(sed -E 's/^==[0-9]+== ?//' "$log") | grep .; then
  echo "the extension reads or writes memory that is not its own"
  exit 1
fi
