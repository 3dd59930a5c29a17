#!/usr/bin/env bash
# The scripts are clean in the eyes of shellcheck.
set -euo pipefail
. tests/checks/common.sh
need shellcheck
{ printf '%s\0' run test .ci/run; find scripts cmake tests python -name '*.sh' -print0; } | xargs -0 shellcheck -x
