#!/usr/bin/env bash
# consumer.sh FORM PREFIX BUILD COMPILER
#
# Builds the consumer project against the installed package and runs it. LLVM must play no part: its
# programs are replaced by ones that fail, CMake may not look for it, the linker tells every file it
# reads, and none of them may be LLVM's.
set -euo pipefail
form=$1 prefix=$2 build=$3 compiler=$4
source=$(dirname "$(readlink -f "$0")")/../../examples/embedding

fail() { echo "$*"; exit 1; }

rm -rf "$build"
mkdir -p "$build/poison"
for program in llvm-config llvm-config-19 ld.lld ld.lld-19; do
  printf '#!/bin/sh\necho "%s was asked for" >&2\nexit 1\n' "$program" > "$build/poison/$program"
  chmod +x "$build/poison/$program"
done
export PATH=$build/poison:$PATH

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" -DFORM="$form" \
  -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON -DCMAKE_EXE_LINKER_FLAGS=-Wl,--trace
cmake --build "$build" --verbose | tee "$build/log"

# Only the project's own lines: the path of the build folder may itself hold any word.
if sed "s|$prefix||g; s|$build||g" "$build/log" | grep -iE 'llvm|dnnl'; then fail "LLVM or oneDNN is on the link line"; fi
if grep -E 'Werror|ffp-contract|fsanitize|semantic-interposition' "$build/build.ninja"; then fail "flags leak to the consumer"; fi
if grep -riE 'llvm|tidemark_flags|Werror|DEFINITIONS|COMPILE_OPTIONS|LINK_OPTIONS' "$prefix"/lib*/cmake "$prefix"/lib/*/cmake 2> /dev/null; then
  fail "the installed package asks for more than it should"
fi

"$build/consumer" > "$build/output"
diff "$source/expected.txt" "$build/output" || fail "the consumer's output is wrong"
case "$form" in
  static) if ldd "$build/consumer" | grep -iE 'tidemark|llvm|dnnl|zstd|libz\.'; then fail "the static form needs a shared library"; fi ;;
  shared) ldd "$build/consumer" | grep tidemark || fail "the shared form is not used" ;;
esac
