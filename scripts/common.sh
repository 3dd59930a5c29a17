# shellcheck shell=bash
# What ./run and ./test share: what the machine must have, how much work it can take at once, and the
# configure and build steps. Sourced, with the project's folder as the current one.
#
# Exit codes: 0 done, 1 a step failed, 2 bad usage, 3 packages are missing, 4 this system is not served.

# The least that builds the library and the command.
run_packages=(g++ cmake ninja-build llvm-19-dev lld-19 zlib1g-dev libzstd-dev)
# What the Python package is built with besides.
# shellcheck disable=SC2034  # Used by ./run.
python_packages=(python3 python3-dev python3-venv)
# What the tests want besides: googletest, the second compiler and its fuzzer, the two checkers, oneDNN
# for the benchmarks to compare with, Python for the package, the layer check and the comparisons; ccache,
# since everything is built twice.
# shellcheck disable=SC2034  # Used by ./test.
test_packages=("${run_packages[@]}" ccache libgtest-dev libdnnl-dev libpng-dev libjpeg62-turbo-dev clang-19 libclang-rt-19-dev
               clang-format-19 clang-tidy-19 "${python_packages[@]}")

assume_yes=no
may_install=yes
logs=build/logs

# say TEXT: a line of our own, told apart from what the tools print.
say() { printf '%s\n' "$*"; }
fail() { local code=$1; shift; printf '%s: %s\n' "${0##*/}" "$*" >&2; exit "$code"; }

# step TITLE COMMAND...: the title, then the command's own output, then the time it took.
step() {
  local title=$1 start=$SECONDS code=0
  shift
  say "-- $title"
  "$@" || code=$?
  [ "$code" -eq 0 ] || fail 1 "$title: failed (exit code $code)"
  say "   done in $((SECONDS - start)) s"
}

# quietly LOG COMMAND...: output goes to the log, and its end is shown when the command fails. At a
# terminal the seconds tick, so that a long download does not look dead. The clock is what runs in the
# background, not the command: Ctrl-C must reach the command.
quietly() {
  local log=$1 clock='' code=0
  shift
  if [ -t 1 ]; then
    tick & clock=$!
  fi
  "$@" > "$log" 2>&1 < /dev/null || code=$?
  if [ -n "$clock" ]; then
    kill "$clock"
    wait "$clock" 2> /dev/null || true
    printf '\r            \r'
  fi
  [ "$code" -eq 0 ] || tail -n 40 "$log" >&2
  return "$code"
}

# Counts seconds on one line for as long as the script lives.
tick() {
  local start=$SECONDS
  while kill -0 $$ 2> /dev/null; do
    printf '\r   %d s ' $((SECONDS - start))
    sleep 1
  done
}

# ---- the system ---------------------------------------------------------------------------------

os_release=${TIDEMARK_OS_RELEASE:-/etc/os-release}  # A test gives another.

# os NAME: a value from the system's description of itself, or nothing.
# shellcheck source=/dev/null
os() { (. "$os_release" 2> /dev/null && say "${!1:-}"); }

# check_system PACKAGE...: stops where the project cannot be built or where packages cannot be named.
check_system() {
  local machine
  machine=$(uname -m)
  case "$(uname -s) $machine" in
    Linux\ x86_64) ;;
    Linux\ *) fail 4 "this machine's CPU is $machine: Tidemark makes x86-64 code and runs on no other yet" ;;
    *) fail 4 "this is $(uname -s): Tidemark is built on Linux (Debian 12) only" ;;
  esac
  [ "$(os ID) $(os VERSION_ID)" != "debian 12" ] || return 0
  cat >&2 << END
${0##*/}: this is $(os PRETTY_NAME); packages are installed on Debian 12 only.
What is needed, by the names Debian 12 gives it:
  $*
(g++ 12 or clang 19 or later, CMake 3.25, Ninja, and LLVM 19 with its static libraries and lld.)
With those in place:
  cmake --preset release && cmake --build --preset release && build/release/tools/tidemark tour
END
  exit 4
}

# ---- packages -----------------------------------------------------------------------------------

# missing_packages PACKAGE...: those that dpkg does not hold, one a line. Asks no server.
missing_packages() {
  local package state
  for package in "$@"; do
    # The same name may be held for two architectures; one that is installed is enough.
    state=$(dpkg-query -W -f '${db:Status-Status} ' "$package" 2> /dev/null || true)
    case " $state" in *" installed "*) ;; *) say "$package" ;; esac
  done
}

apt_options=(--no-install-recommends -q -o Dpkg::Use-Pty=0)

# as_root COMMAND...
as_root() {
  if [ "$(id -u)" -eq 0 ]; then env DEBIAN_FRONTEND=noninteractive "$@"
  else sudo env DEBIAN_FRONTEND=noninteractive "$@"; fi
}

# get_rights PACKAGE...: sudo's password, if it wants one, before any output goes to a log.
get_rights() {
  [ "$(id -u)" -ne 0 ] || return 0
  if command -v sudo > /dev/null; then
    { sudo -n true 2> /dev/null || sudo -v; } && return
  fi
  fail 3 "installing needs root, and sudo is not there or refused. As root: apt-get install --no-install-recommends $*"
}

# apt_plan PACKAGE...: apt's own account of an installation, without one; needs no rights. That it ends
# in "Abort" is what was asked for.
apt_plan() { LC_ALL=C apt-get install --assume-no -o Debug::NoLocking=1 "${apt_options[@]}" "$@" 2>&1 || true; }

# apt_sizes: one line from the plan on standard input; fails where the plan has no sizes.
apt_sizes() {
  sed -nE 's/^Need to get ([0-9.,]+ [kMG]?B)(\/[0-9.,]+ [kMG]?B)? of archives.*/\1/p;
           s/^After this operation, ([0-9.,]+ [kMG]?B) of additional.*/\1/p;
           s/^[0-9]+ upgraded, ([0-9]+) newly.*/\1/p' |
    { read -r count && read -r download && read -r disk &&
        say "$count packages with those they depend on: download $download, on disk $disk."; }
}

# install_packages PACKAGE...: sees to it that all are there.
install_packages() {
  local missing sizes
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "-- Packages: ${#missing[@]} of $# are missing"
  say "   ${missing[*]}"
  if [ "$may_install" = no ]; then
    sizes=$(apt_plan "${missing[@]}" | apt_sizes) && say "   $sizes"
    fail 3 "not installing, as asked. To install them: apt-get install --no-install-recommends ${missing[*]}"
  fi
  # A fresh container has no package lists at all, and without them nobody knows the sizes.
  if ! sizes=$(apt_plan "${missing[@]}" | apt_sizes); then
    get_rights "${missing[@]}"
    step "Fetching the package lists (apt-get update)" quietly $logs/update.log as_root apt-get update -q
    sizes=$(apt_plan "${missing[@]}" | apt_sizes) || {
      apt_plan "${missing[@]}" >&2
      fail 3 "apt-get cannot install these; its words are above"
    }
  fi
  say "   $sizes"
  if [ "$assume_yes" = no ] && [ -t 0 ] && [ -t 1 ]; then
    local answer
    read -r -p "   Install them now? [Y/n] " answer
    case "$answer" in '' | [yY]*) ;; *) fail 3 "nothing was installed" ;; esac
  fi
  get_rights "${missing[@]}"
  step "Installing (log: $logs/install.log)" quietly $logs/install.log apt_install "${missing[@]}"
}

# Lists that are too old name files which the server has dropped: then fetch them and try again.
apt_install() {
  as_root apt-get install -y "${apt_options[@]}" "$@" ||
    { as_root apt-get update -q && as_root apt-get install -y "${apt_options[@]}" "$@"; }
}

# ---- how much at once ---------------------------------------------------------------------------

# Bytes this process may still take: what the machine has free, or what its control groups leave.
memory_bytes() {
  local bytes folder limit used
  bytes=$(($(awk '/^MemAvailable:/ {print $2}' /proc/meminfo) * 1024))
  folder=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  while [ "$folder" != /sys/fs ]; do
    if [ -r "$folder/memory.max" ] && read -r limit < "$folder/memory.max" && [ "$limit" != max ]; then
      # Pages of files are given back when asked for, so they do not count as taken.
      used=$(awk '$1 == "anon" {print $2}' "$folder/memory.stat")
      limit=$((limit - used))
      [ "$limit" -lt "$bytes" ] && bytes=$limit
    fi
    folder=${folder%/*}
  done
  if [ -r /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then  # The older form of control groups.
    read -r limit < /sys/fs/cgroup/memory/memory.limit_in_bytes
    [ "${#limit}" -lt 18 ] && [ "$limit" -lt "$bytes" ] && bytes=$limit
  fi
  say "$bytes"
}

# Cores by affinity, and by a quota of CPU time where there is one (rounded up).
core_count() {
  local cores quota period
  cores=$(nproc)
  if [ -r /sys/fs/cgroup/cpu.max ] && read -r quota period < /sys/fs/cgroup/cpu.max && [ "$quota" != max ]; then
    quota=$(((quota + period - 1) / period))
    [ "$quota" -lt "$cores" ] && cores=$quota
  fi
  say "$cores"
}

# Compilers at once. One GiB each: a source with LLVM's headers takes 0.9 GB, any other half of that.
job_count() {
  local cores by_memory
  cores=$(core_count)
  by_memory=$(($(memory_bytes) >> 30))
  [ "$by_memory" -lt "$cores" ] && cores=$by_memory
  [ "$cores" -ge 1 ] || cores=1
  say "$cores"
}

# ---- configure and build ------------------------------------------------------------------------

# cached FOLDER NAME: the value of a CMake cache entry, or nothing.
cached() { sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt" 2> /dev/null; }

# configure PRESET OPTION...: nothing to do when the folder is configured for this place with these
# options; Ninja itself notices changed CMake files. --fresh forgets a half-made or moved folder.
configure() {
  local preset=$1 folder=build/$1 option name stale=no fresh=()
  shift
  if [ "$(cached "$folder" CMAKE_HOME_DIRECTORY)" != "$PWD" ] || [ ! -e "$folder/build.ninja" ]; then
    stale=yes fresh=(--fresh)
  fi
  for option in "$@"; do
    name=${option#-D}
    [ "$(cached "$folder" "${name%%=*}")" = "${option#*=}" ] || stale=yes
  done
  [ "$stale" = no ] ||
    step "Configuring $folder" quietly "$logs/configure-$preset.log" cmake --preset "$preset" "${fresh[@]}" "$@"
}

# build PRESET [TARGET...]
build() {
  local preset=$1 folder=build/$1 jobs targets=()
  shift
  [ $# -eq 0 ] || targets=(--target "$@")
  jobs=$(job_count)
  step "Building $folder ($jobs at once)" cmake --build "$folder" --parallel "$jobs" "${targets[@]}"
}

# The folder must be ours to write; a first run as root leaves one that is not.
prepare() {
  { mkdir -p build/logs && [ -w build ] && [ -w build/logs ]; } 2> /dev/null ||
    fail 1 "cannot write to $PWD/build (does it belong to another user?)"
  # Paths inside the project are relative to ccache, so that two checkouts share what is compiled.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  # A container's user may have no home, and ccache would fail there.
  [ -w "${HOME:-/nonexistent}" ] || export CCACHE_DIR=$PWD/build/ccache
}
