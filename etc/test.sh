#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests; see usage. Safe to run again.
set -eu
script="test"
cd "$(dirname "$0")/.."
. etc/packages.sh

usage() {
  cat <<END
usage: etc/test.sh [--no-install] [--preset NAME] [--folder NAME]... [--long]
Installs the Debian packages that are missing, builds build/PRESET and runs its tests with ctest,
whose totals come last.
  --no-install   install nothing: name the packages that are missing, and fail if any is
  --preset NAME  release (default), debug, asan (with ubsan) or tsan
  --folder NAME  only what is in tests/NAME: builds and runs no more than that
  --long         also the tests that take minutes (ctest label "long")
END
}

install=yes preset=release folders="" long=no
while [ $# -gt 0 ]; do
  case $1 in
    --no-install) install=no ;;
    --preset) preset=$(value "$@") || exit; shift ;;
    --folder) folders="$folders $(value "$@")" || exit; shift ;;
    --long) long=yes ;;
    --help | -h) usage && exit ;;
    *) misuse "unknown option $1" ;;
  esac
  shift
done
case $preset in
  release | debug | asan | tsan) ;;
  *) misuse "unknown preset $preset" ;;
esac
for folder in $folders; do
  [ -f "tests/$folder/CMakeLists.txt" ] || misuse "there is no folder tests/$folder"
done

# shellcheck disable=SC2086  # a list of words
ensure_packages $install $packages
# shellcheck disable=SC2086  # a list of words
absent=$(missing_of $optional_packages | xargs)
[ -z "$absent" ] || say "tests that need these are skipped, and say so: $absent"

configure "$preset" "build/$preset" -D HCOMM_TESTS=ON
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$(nproc)}"
excluded='^long$'
[ $long = no ] || excluded='^none$'
run_tests() {
  say "running the tests in $1"
  of_preset "$preset" ctest --test-dir "$1" --output-on-failure --no-tests=error \
    --label-exclude "$excluded"
}
if [ -z "$folders" ]; then
  compile "$preset" "build/$preset" all
  run_tests "build/$preset"
fi
for folder in $folders; do
  compile "$preset" "build/$preset" "tests/$folder/all"
  run_tests "build/$preset/tests/$folder"
done
