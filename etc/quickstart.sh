#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to the main job; see usage. Safe to run again.
set -eu
script=quickstart
cd "$(dirname "$0")/.."
. etc/packages.sh

usage() {
  cat <<END
usage: etc/quickstart.sh [--no-install] [--ranks N] [--sizes MIN:MAX]
Installs the Debian packages that are missing, builds build/release, and runs the main job:
hcc-bench's all-reduce, checked, on 8 ranks over shared memory, then over TCP.
  --no-install     install nothing: name the packages that are missing, and fail if any is
  --ranks N        ranks of the job (8)
  --sizes MIN:MAX  of the messages (1K:1G); what memory cannot hold is left out, and said
END
}

install=yes ranks=8 sizes=1K:1G
while [ $# -gt 0 ]; do
  case $1 in
    --no-install) install=no ;;
    --ranks) ranks=$(value "$@") || exit; shift ;;
    --sizes) sizes=$(value "$@") || exit; shift ;;
    --help | -h) usage && exit ;;
    *) misuse "unknown option $1" ;;
  esac
  shift
done

# run_job TRANSPORT: one line says what runs, one what came of it.
run_job() {
  say "all-reduce on $ranks ranks over $1: hcc-launch -n $ranks hcc-bench allreduce --sizes $sizes"
  HCOMM_TRANSPORT=$1 build/release/bin/hcc-launch -n "$ranks" \
    build/release/bin/hcc-bench allreduce --sizes "$sizes" --fit ||
    die "the job over $1 failed (exit code $?): see above"
}

# shellcheck disable=SC2086  # a list of words
ensure_packages $install $packages
configure release build/release -D HCOMM_TESTS=OFF
compile release build/release all
run_job shm
run_job tcp
say "done; the programs are in $PWD/build/release/bin; next: etc/test.sh, README.md"
