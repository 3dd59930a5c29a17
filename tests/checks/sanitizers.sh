#!/usr/bin/env bash
# sanitizers.sh PRESET: runs the unit tests that were built with it. ./test builds them first.
set -euo pipefail
. tests/checks/common.sh
[ -e "build/$1/build.ninja" ] || skip "build/$1 is not there (./test makes it)"
exec ctest --test-dir "build/$1" -L unit --no-tests=error --output-on-failure --parallel "${TIDEMARK_TEST_JOBS:-1}"
