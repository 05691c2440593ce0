#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HCOMM against the libraries that Debian has; see usage. Safe to run again.
set -eu
script=compare-peers
cd "$(dirname "$0")/.."
. etc/packages.sh

# UCC is in no Debian: build it aside, and name it with --peer-prefix.
peer_packages="gcc openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev python3-torch"

usage() {
  cat <<END
usage: etc/compare-peers.sh [--no-install] [--] [OPTION of hcc-bench compare]...
Installs what is missing of the Debian packages that HCOMM and its peers need (Open MPI, MPICH,
Gloo, torch), builds build/release, and runs hcc-bench compare: the whole grid, an hour or two.
  --no-install  install nothing: name the packages that are missing; without those to build it
                fails, without a peer it compares with the others
Other options are those of hcc-bench compare, e.g. --ranks 2 --sizes 4,64K,1M --rounds 3
END
}

install=yes
while [ $# -gt 0 ]; do
  case $1 in
    --no-install) install=no ;;
    --help | -h) usage && exit ;;
    --) shift && break ;;
    *) break ;;
  esac
  shift
done

# shellcheck disable=SC2086  # a list of words
ensure_packages $install $packages
if [ "$install" = yes ]; then
  # shellcheck disable=SC2086  # a list of words
  ensure_packages yes $peer_packages
else
  # shellcheck disable=SC2086  # a list of words
  absent=$(missing_of $peer_packages | xargs)
  [ -z "$absent" ] || say "missing packages of peers: $absent"
fi
configure release build/release -D HCOMM_TESTS=OFF
compile release build/release all
exec build/release/bin/hcc-bench compare "$@"
