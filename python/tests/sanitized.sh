#!/usr/bin/env bash
# sanitized.sh PYTEST-ARGUMENT...: tests of the bindings with AddressSanitizer and UndefinedBehaviorSanitizer, in
# the folder that ./test builds with them. The interpreter is not built so: the sanitizers are loaded before it, and
# what it leaves allocated at its end is its own affair.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/common.sh
folder=build/asan-ubsan
[ -e $folder/build.ninja ] || { echo "skipped: $folder is not there (./test makes it)" >&2; exit 77; }
prepare
cmake $folder -DTIDEMARK_PYTHON=ON > $logs/configure-sanitized.log
cmake --build $folder --target tidemark_python --parallel "$(job_count)"
compiler=$(cached $folder CMAKE_CXX_COMPILER)
# g++ 12's sanitizers expect the address space as kernels long laid it out.
fixed=()
if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2> /dev/null || echo 28)" -gt 28 ] && setarch -R true 2> /dev/null; then
  fixed=(setarch -R)
fi
# libstdc++ too: the sanitizer looks for __cxa_throw when it starts, before the extension brings it.
LD_PRELOAD="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libubsan.so) $("$compiler" -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYTHONPATH=$PWD/$folder/python \
  "${fixed[@]}" python -m pytest -q -p no:cacheprovider "$@"
