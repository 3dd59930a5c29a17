#!/bin/sh
# compile.sh CCACHE COMPILER ARGUMENT...: compiles through ccache.
#
# An old precompiled header goes before a new one is made. Where one lies, the preprocessor names it instead
# of the headers that it has, and ccache, which looks results up by what the preprocessor writes, would give
# whatever was once made in its place: after other changes, or in another checkout.
before=
for argument; do
  case "$argument" in *.gch) [ "$before" != -o ] || rm -f "$argument" ;; esac
  before=$argument
done
# Without these ccache keeps nothing that reads a precompiled header: it cannot see which macros such a
# header asked for, nor whether it used __TIME__.
export CCACHE_SLOPPINESS=pch_defines,time_macros
exec "$@"
