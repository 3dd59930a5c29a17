#!/usr/bin/env bash
# tidy.sh BUILD: clang-tidy over all sources of the compile database in BUILD. That may be g++'s, with
# options for warnings that clang does not have. Left out are the package's own project, which is not in
# the database, and what includes omp.h: g++'s is not for clang to read.
set -euo pipefail
. tests/checks/common.sh
need clang-tidy-19
[ -e "$1/compile_commands.json" ] || skip "$1 has no compile database"
cpp_files | grep -z '\.cc$' | grep -zv '^tests/package/\|^bench/matmul\.cc$' |
  xargs -0 -n 1 -P "${TIDEMARK_TEST_JOBS:-1}" clang-tidy-19 --quiet --warnings-as-errors='*' \
  --extra-arg=-Wno-unknown-warning-option -p "$1" \
  2> >(grep -v 'warnings generated' >&2)
