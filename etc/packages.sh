# shellcheck shell=sh disable=SC2034,SC2154  # variables of and for the scripts that source it
# Sourced by quickstart.sh and test.sh: the Debian packages that HCOMM is built from, and what both
# scripts do alike. Sets up nothing by itself.

# To build, run and test. Beside these only what every Debian has.
packages="g++ cmake ninja-build pkg-config libfmt-dev libcli11-dev nlohmann-json3-dev libhwloc-dev
  zlib1g-dev libgtest-dev libbenchmark-dev dataset-fashion-mnist"
# Used where they are there: a build cache, a checker of manual pages, hosts made
# of namespaces, launchers of ranks.
optional_packages="ccache groff-base iproute2 openmpi-bin libopenmpi-dev mpich libpmix2"

say() { printf '%s: %s\n' "$script" "$*"; }
die() {
  printf '%s: %s\n' "$script" "$*" >&2
  exit 1
}

misuse() {
  printf '%s: %s; see --help\n' "$script" "$*" >&2
  exit 2
}
# The word after an option.
value() {
  [ $# -ge 2 ] || misuse "$1 needs a value"
  echo "$2"
}

# Those of the named packages that are not installed.
missing_of() {
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      echo "$package"
  done
}

# Runs a command as root; by sudo where we are not.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "not root, and there is no sudo: run as root: $*"
  fi
}

# ensure_packages yes|no PACKAGE...: installs what is missing; with "no" names it and ends.
ensure_packages() {
  install=$1
  shift
  command -v dpkg-query >/dev/null ||
    die "this is not Debian or one of its kind: install the equivalents of: $*"
  missing=$(missing_of "$@" | xargs)
  if [ -z "$missing" ]; then
    say "all packages are installed"
    return
  fi
  [ "$install" = yes ] || die "missing packages: $missing"
  say "installing: $missing"
  as_root apt-get update -qq || die "apt-get update failed: see above"
  # shellcheck disable=SC2086  # a list of words
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    die "apt-get could not install: $missing"
}

# of_preset PRESET COMMAND...: ThreadSanitizer of g++ 12 cannot start where the kernel randomises
# addresses by more than 28 bits, so its programs run at fixed addresses where that is allowed.
of_preset() {
  preset=$1
  shift
  if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
    setarch "$(uname -m)" -R "$@"
  else
    "$@"
  fi
}

# quietly LOG COMMAND...: shows what the command said only when it fails.
quietly() {
  log=$1
  shift
  "$@" >"$log" 2>&1 && return
  tail -n 40 "$log" >&2
  die "the build failed: see above, all of it in $log"
}

# configure PRESET DIRECTORY OPTION...
configure() {
  preset=$1 directory=$2
  shift 2
  mkdir -p "$directory"
  if command -v ccache >/dev/null; then set -- "$@" -D CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  quietly "$directory/configure.log" cmake --preset "$preset" -B "$directory" "$@"
}

# compile PRESET DIRECTORY TARGET
compile() {
  say "building $3 in $2 (log: $2/build.log)"
  quietly "$2/build.log" of_preset "$1" cmake --build "$2" --target "$3"
}
