#!/usr/bin/env bash
# Every C++ file is as clang-format leaves it. To mend: clang-format-19 -i FILE.
set -euo pipefail
. tests/checks/common.sh
need clang-format-19
cpp_files | xargs -0 clang-format-19 --dry-run -Werror
