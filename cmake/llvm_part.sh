#!/usr/bin/env bash
# llvm_part.sh LLVM_BIN LD SYMBOLS OUT INPUT...
#
# Links objects and the archive members they need into one object file in which only the names matched
# by SYMBOLS are global. Steps:
#   join      ld.lld -r. Groups (COMDAT) are dissolved: a group whose name is also in another object
#             may be thrown away by a later link, and a localised name inside it would dangle.
#   localise  everything but our names, so that another LLVM may stand beside this one.
#   sweep     GNU ld -r --gc-sections (lld has no such mode) drops what our names do not reach: 100 MB
#             become 60, and a program linked statically shrinks by a third.
set -euo pipefail
bin=$1 ld=$2 symbols=$3 out=$4
shift 4

work=$(mktemp -d "$(dirname "$out")/llvm_part.XXXXXX")
trap 'rm -rf "$work"' EXIT

"$bin/ld.lld" -r --force-group-allocation -o "$work/joined.o" --start-group "$@" --end-group
grep -v '^#' "$symbols" > "$work/keep"
# LLVM's objcopy: that of binutils leaves STB_GNU_UNIQUE names global, and takes three times as long.
"$bin/llvm-objcopy" --wildcard --keep-global-symbols="$work/keep" "$work/joined.o" "$work/local.o"
rm "$work/joined.o"
{
  echo 'EXTERN('
  "$bin/llvm-nm" --extern-only --defined-only --format=just-symbols "$work/local.o" | sed 's/.*/"&"/'
  echo ')'
} > "$work/roots.ld"
"$ld" -r --gc-sections -o "$out" "$work/roots.ld" "$work/local.o"
