#!/usr/bin/env bash
# venv.sh PACKAGE... -- COMMAND...
#
# Runs a command with a Python that has the packages: a virtual environment in build/venv, made when
# first wanted. Where the packages cannot be had (no network, no python3-venv) it exits with 77, which
# ctest reports as a skipped test: a missing peer is no failure of ours.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

packages=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do packages+=("$1"); shift; done
{ [ $# -ge 2 ] && [ ${#packages[@]} -gt 0 ]; } || { echo 'usage: venv.sh PACKAGE... -- COMMAND...' >&2; exit 2; }
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
for package in "${packages[@]}"; do
  stamp=$venv/.have-$package
  [ -e "$stamp" ] && continue
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 "$package" \
    > build/venv.log 2>&1 || skip "pip could not install $package (build/venv.log)"
  touch "$stamp"
done
exec 9>&-

export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
exec "$@"
