#!/usr/bin/env bash
# symbols.sh PREFIX LIBRARY: the shared library shows tidemark names alone, needs no library but the
# system's, and keeps to its size.
set -euo pipefail
library=$(find "$1" -name "$2" -type f)

fail() { echo "$*"; exit 1; }

strangers=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -vE 'N[KRO]*8tidemark|hashIN8tidemark|^tidemark_' || true)
[ -z "$strangers" ] || fail "names that are not ours are exported:"$'\n'"$(head -20 <<< "$strangers" | c++filt)"
nm -D --defined-only "$library" | grep -q 8tidemark || fail "no name of ours is exported"

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
strangers=$(grep -vE '^(libstdc\+\+|libgcc_s|libm|libc|ld-linux-x86-64|libpthread|libdl|libdnnl)\.so' <<< "$needed" || true)
[ -z "$strangers" ] || fail "the library needs more than it should:" "$strangers"

# Stripped, with everything: 60 MB at most.
bytes=$(stat -c %s "$library")
[ "$bytes" -le 60000000 ] || fail "$bytes bytes are more than 60 MB"
echo "$bytes bytes, needs:" "$needed"
