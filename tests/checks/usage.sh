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
expect 0 "examples/python/tour.py" ./run --help

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

# A dpkg that holds nothing, and an apt-get that only talks: what is missing is named with its sizes, and
# nothing else happens.
printf '#!/bin/sh\nexit 1\n' > "$fake/dpkg-query"
cat > "$fake/apt-get" << 'END'
#!/bin/sh
echo "0 upgraded, 5 newly installed, 0 to remove and 133 not upgraded."
echo "Need to get 690 kB/12.4 MB of archives."
echo "After this operation, 106 MB of additional disk space will be used."
exit 1
END
chmod +x "$fake/dpkg-query" "$fake/apt-get"
printf 'ID=debian\nVERSION_ID="12"\n' > "$fake/os-release"
rm "$fake/uname"
bare=(env PATH="$fake:$PATH" TIDEMARK_OS_RELEASE="$fake/os-release")
expect 3 "llvm-19-dev" "${bare[@]}" ./run --no-install
expect 3 "python3-dev" "${bare[@]}" ./run python --no-install
expect 3 "clang-tidy-19" "${bare[@]}" ./test --no-install
expect 3 "5 packages with those they depend on: download 690 kB, on disk 106 MB." "${bare[@]}" ./run --no-install

# When all is there, apt-get is not even asked.
printf '#!/bin/sh\necho "installed "\n' > "$fake/dpkg-query"
printf '#!/bin/sh\necho "apt-get was called"\nexit 1\n' > "$fake/apt-get"
# shellcheck disable=SC2016
expect 0 "nothing to do" "${bare[@]}" bash -c '. scripts/common.sh; install_packages "${test_packages[@]}"; echo "nothing to do"'

# One compiler for each GiB, never more than there are cores, never none.
# shellcheck disable=SC2016
expect 0 "1 1 2" bash -c '. scripts/common.sh; core_count() { echo 2; }
  for gib in 0 1 64; do memory_bytes() { echo $((gib << 30)); }; printf "%s " "$(job_count)"; done'
echo 'usage, refusals, packages and the size of the work are right'
