#!/usr/bin/env bash
# sanitizers.sh PRESET: runs the unit tests that were built with it. ./test builds them first. Each count is
# one smaller than that of the release: all 2^32 arguments of a function show a sanitizer no more than some of
# them do.
set -euo pipefail
. tests/checks/common.sh
[ -e "build/$1/build.ninja" ] || skip "build/$1 is not there (./test makes it)"
# g++ 12's sanitizers expect the address space as kernels long laid it out: with more random bits than 28
# they die at start, now and then.
fixed=()
if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2> /dev/null || echo 28)" -gt 28 ] && setarch -R true 2> /dev/null; then
  fixed=(setarch -R)
fi
if [ "${TIDEMARK_TEST_COUNTS:-reduced}" = full ]; then
  export TIDEMARK_TEST_COUNTS=reduced
else
  export TIDEMARK_TEST_COUNTS=small
fi
# A call of a function locks all Variables it writes, always in one order; the detector of deadlocks ends the
# program where one thread holds more than 64 locks.
export TSAN_OPTIONS=detect_deadlocks=0
exec "${fixed[@]}" ctest --test-dir "build/$1" -L unit --no-tests=error --output-on-failure \
  --parallel "${TIDEMARK_TEST_JOBS:-1}"
