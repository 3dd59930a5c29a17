#!/usr/bin/env bash
# clang 19 builds everything too, and what it built passes the unit tests (the full counts are for the
# build that ctest runs in).
set -euo pipefail
. tests/checks/common.sh
need clang++-19
jobs=${TIDEMARK_TEST_JOBS:-1}
cmake --preset release -B build/clang -DCMAKE_CXX_COMPILER=clang++-19 > /dev/null
cmake --build build/clang --parallel "$jobs"
TIDEMARK_TEST_COUNTS=reduced ctest --test-dir build/clang -L unit --output-on-failure --parallel "$jobs"
