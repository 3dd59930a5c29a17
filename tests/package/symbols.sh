#!/usr/bin/env bash
# symbols.sh PREFIX LIBRARY: the shared library shows tidemark names alone, needs no library but the
# system's, and keeps to its size.
set -euo pipefail
library=$(find "$1" -name "$2" -type f)

fail() { echo "$*"; exit 1; }

names=$(nm -D --defined-only "$library" | awk '{print $3}')
strangers=$(grep -vE 'N[KRO]*8tidemark|hashIN8tidemark|^tidemark_' <<< "$names" || true)
[ -z "$strangers" ] || fail "names that are not ours are exported:"$'\n'"$(head -20 <<< "$strangers" | c++filt)"
[[ "$names" == *8tidemark* ]] || fail "no name of ours is exported"

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
strangers=$(grep -vE '^(libstdc\+\+|libgcc_s|libm|libc|ld-linux-x86-64|libpthread|libdl|libdnnl)\.so' <<< "$needed" || true)
[ -z "$strangers" ] || fail "the library needs more than it should:" "$strangers"

# Fast thread-local variables (initial-exec) take their place from a reserve of 1.6 KiB that all libraries
# opened by dlopen() share. A plugin or Python module that needs us must fit beside the others.
tls=$(readelf -lW "$library" | awk '$1 == "TLS" {print $6}')
[ $((${tls:-0})) -le 512 ] || fail "$((tls)) bytes of thread-local variables are more than 512: keep big ones on the heap"

# Stripped, with everything: 60 MB at most.
bytes=$(stat -c %s "$library")
[ "$bytes" -le 60000000 ] || fail "$bytes bytes are more than 60 MB"
echo "$bytes bytes, needs:" "$needed"
