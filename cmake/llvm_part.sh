#!/usr/bin/env bash
# llvm_part.sh LLVM_BIN LD SYMBOLS ALLOCATORS OUT INPUT...
#
# Links objects and the archive members they need into one object file in which only the names matched
# by SYMBOLS are global. Steps:
#   join      ld.lld -r. Groups (COMDAT) are dissolved: a group whose name is also in another object
#             may be thrown away by a later link, and a localised name inside it would dangle.
#   localise  everything but our names, so that another LLVM may stand beside this one; and send its
#             allocations to the functions named in ALLOCATORS.
#   sweep     GNU ld -r --gc-sections (lld has no such mode) drops what our names do not reach: 100 MB
#             become 60, and a program linked statically shrinks by a third.
set -euo pipefail
bin=$1 ld=$2 symbols=$3 allocators=$4 out=$5
shift 5

work=$(mktemp -d "$(dirname "$out")/llvm_part.XXXXXX")
trap 'rm -rf "$work"' EXIT

"$bin/ld.lld" -r --force-group-allocation -o "$work/joined.o" --start-group "$@" --end-group
grep -v '^#' "$symbols" > "$work/keep"
# LLVM's objcopy: that of binutils leaves STB_GNU_UNIQUE names global, and takes three times as long.
# Threads that wait for a std::atomic are counted in one table: with a copy of its own this part and
# the rest of the library would not wake each other.
waiters=_ZZNSt8__detail18__waiter_pool_base6_S_forEPKvE3__w
"$bin/llvm-objcopy" --redefine-syms="$allocators" --wildcard --keep-global-symbols="$work/keep" \
  --keep-global-symbol=$waiters --weaken-symbol=$waiters "$work/joined.o" "$work/local.o"
# What is left must not allocate behind our back: an operator new or a string of the standard library.
if left=$("$bin/llvm-nm" --undefined-only --format=just-symbols "$work/local.o" |
          grep -E '^(malloc|calloc|realloc|free|strdup|aligned_alloc|posix_memalign|_Zn[wa]m.*|_Zd[la]Pv.*|_ZN?K?St7__cxx1112basic_stringIc.*)$'); then
  echo "llvm_part.sh: allocations that ALLOCATORS leaves to the C library: $left" >&2
  exit 1
fi
rm "$work/joined.o"
{
  echo 'EXTERN('
  "$bin/llvm-nm" --extern-only --defined-only --format=just-symbols "$work/local.o" | sed 's/.*/"&"/'
  echo ')'
} > "$work/roots.ld"
"$ld" -r --gc-sections -o "$out" "$work/roots.ld" "$work/local.o"
