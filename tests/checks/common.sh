# shellcheck shell=bash
# What the checks share. They run with the project's folder as the current one.

skip() { echo "skipped: $*"; exit 77; }

# need PROGRAM
need() { command -v "$1" > /dev/null || skip "$1 is not installed"; }

# All C++ files of the project, ended by NUL. By find, not git: a source archive has no .git.
cpp_files() {
  local folders=() folder
  for folder in tidemark tools tests bench examples python; do [ ! -d "$folder" ] || folders+=("$folder"); done
  find "${folders[@]}" \( -name '*.h' -o -name '*.cc' \) -print0 | sort -z
}
