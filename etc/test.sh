#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests; see usage. Safe to run again.
set -eu
script="test"
cd "$(dirname "$0")/.."
. etc/packages.sh

usage() {
  cat <<END
usage: etc/test.sh [--no-install] [--preset release|debug|asan|tsan]... [--long] [--only REGEX]
Installs the Debian packages that are missing, builds build/PRESET and runs its tests with ctest,
whose totals come last. Several presets run one after the other; the first that fails ends it.
  --no-install   install nothing: name the packages that are missing, and fail if any is
  --preset NAME  release (default), debug, asan (with ubsan) or tsan
  --long         also the tests that take minutes (ctest label "long")
  --only REGEX   only the tests whose names match
END
}

install=yes presets="" long=no only=.
while [ $# -gt 0 ]; do
  case $1 in
    --no-install) install=no ;;
    --preset) presets="$presets $(value "$@")" || exit; shift ;;
    --long) long=yes ;;
    --only) only=$(value "$@") || exit; shift ;;
    --help | -h) usage && exit ;;
    *) misuse "unknown option $1" ;;
  esac
  shift
done

# shellcheck disable=SC2086  # a list of words
ensure_packages $install $packages
# shellcheck disable=SC2086  # a list of words
absent=$(missing_of $optional_packages | xargs)
[ -z "$absent" ] || say "tests that need these are skipped, and say so: $absent"

export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$(nproc)}"
for preset in ${presets:-release}; do
  build "$preset" "build/$preset" -D HCOMM_TESTS=ON
  set -- --test-dir "build/$preset" --output-on-failure --no-tests=error --tests-regex "$only"
  [ $long = yes ] || set -- "$@" --label-exclude '^long$'
  say "running the tests of $preset"
  ctest "$@"
done
