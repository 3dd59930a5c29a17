#!/usr/bin/env bash
# ./run and ./test explain themselves, refuse what they do not know, and stop on a system that they
# cannot serve; all this before they touch anything.
set -euo pipefail

fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT

# expect CODE TEXT COMMAND...
expect() {
  local want=$1 text=$2 code=0 output
  shift 2
  output=$("$@" 2>&1) || code=$?
  [ "$code" -eq "$want" ] || { echo "$*: exit code $code, not $want"; echo "$output"; exit 1; }
  [[ "$output" == *"$text"* ]] || { echo "$*: its output lacks '$text':"; echo "$output"; exit 1; }
}

for script in ./run ./test; do
  expect 0 "usage: $script" "$script" --help
  expect 2 "unknown argument: --what" "$script" --what
done
expect 0 "--all" ./test --help

cat > "$fake/uname" << 'END'
#!/bin/sh
[ "$1" = -m ] && echo aarch64 || echo Linux
END
chmod +x "$fake/uname"
expect 4 "this machine's CPU is aarch64" env PATH="$fake:$PATH" ./run
expect 4 "runs on no other yet" env PATH="$fake:$PATH" ./test

printf 'ID=fedora\nVERSION_ID=42\nPRETTY_NAME="Fedora Linux 42"\n' > "$fake/os-release"
expect 4 "this is Fedora Linux 42" env TIDEMARK_OS_RELEASE="$fake/os-release" ./run
expect 4 "ninja-build" env TIDEMARK_OS_RELEASE="$fake/os-release" ./run
expect 4 "libgtest-dev" env TIDEMARK_OS_RELEASE="$fake/os-release" ./test

# A dpkg that holds nothing: what is missing is named, and nothing else happens.
printf '#!/bin/sh\nexit 1\n' > "$fake/dpkg-query"
chmod +x "$fake/dpkg-query"
rm "$fake/uname"
if grep -q '^ID=debian' /etc/os-release; then
  expect 3 "llvm-19-dev" env PATH="$fake:$PATH" ./run --no-install
  expect 3 "clang-tidy-19" env PATH="$fake:$PATH" ./test --no-install
fi
echo 'usage, refusals and the check of the machine are right'
