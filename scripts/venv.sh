#!/usr/bin/env bash
# venv.sh PACKAGE... [--large PACKAGE...] -- COMMAND...
#
# Runs a command with a Python that has the packages: a virtual environment in build/venv, made when
# first wanted. Large packages, which take gigabytes, are installed only where TIDEMARK_LARGE_PEERS=install
# (.ci/run sets it). Where a package cannot be had (no network, no python3-venv) it exits with 77, which
# ctest reports as a skipped test: a missing peer is no failure of ours.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

packages=() large=()
while [ $# -gt 0 ] && [ "$1" != -- ] && [ "$1" != --large ]; do packages+=("$1"); shift; done
[ "${1:-}" != --large ] || shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do large+=("$1"); shift; done
{ [ $# -ge 2 ] && [ ${#packages[@]} -gt 0 ]; } || { echo 'usage: venv.sh PACKAGE... [--large PACKAGE...] -- COMMAND...' >&2; exit 2; }
shift

skip() { echo "skipped: $*" >&2; exit 77; }

venv=$PWD/build/venv
mkdir -p build
exec 9> build/venv.lock
flock 9  # Tests run side by side; one of them makes the environment.
if [ ! -x "$venv/bin/pip" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv" > build/venv.log 2>&1 || { rm -rf "$venv"; skip "python3 -m venv failed (build/venv.log)"; }
fi
for package in "${packages[@]}" "${large[@]}"; do
  stamp=$venv/.have-$package
  [ -e "$stamp" ] && continue
  case " ${large[*]} " in *" $package "*)
    [ "${TIDEMARK_LARGE_PEERS:-}" = install ] || skip "$package is large; TIDEMARK_LARGE_PEERS=install installs it" ;;
  esac
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 "$package" \
    > build/venv.log 2>&1 || skip "pip could not install $package (build/venv.log)"
  touch "$stamp"
done
exec 9>&-

export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
exec "$@"
