#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the microbenchmarks; see usage.
set -eu
script="microbench"
base_directory=$(pwd)
cd "$(dirname "$0")/.."
. etc/packages.sh

usage() {
  cat <<END
usage: etc/microbench.sh [OPTION]...
Builds the microbenchmarks in build/release and runs them: kernels, engine, transports, schedules,
policy, recorder, joining. Each case is run several times, in an order that chance mixes.
  --filter REGEX     only the cases whose name has it: folder/what/..., e.g. '^kernels/float32/sum'
  --save FILE        keep the times as a base
  --compare FILE     print what has changed against that base; exit 1 when a case is slower
  --bound PERCENT    what counts as changed, in the median and in the least time (default 10)
  --repetitions N    of each case, at least 7 to compare (default 7)
  --min-time S       seconds that one repetition takes at least (default 0.02)
  --build DIR        take the programs of this build as they are
  --no-install       install nothing: name the packages that are missing, and fail if any is
Exit code 5: --compare found no case of the base. A machine that is busier now than then, or moved,
is slower: save and compare again, in turn, what seems to have changed (--filter).
END
}

install=yes filter=. save="" compare="" bound=10 repetitions=7 min_time=0.02 build=""
while [ $# -gt 0 ]; do
  case $1 in
    --filter) filter=$(value "$@") || exit; shift ;;
    --save) save=$(value "$@") || exit; shift ;;
    --compare) compare=$(value "$@") || exit; shift ;;
    --bound) bound=$(value "$@") || exit; shift ;;
    --repetitions) repetitions=$(value "$@") || exit; shift ;;
    --min-time) min_time=$(value "$@") || exit; shift ;;
    --build) build=$(value "$@") || exit; shift ;;
    --no-install) install=no ;;
    --help | -h) usage && exit ;;
    *) misuse "unknown option $1" ;;
  esac
  shift
done
# Files are named from where the user is.
from_user() {
  case $1 in
    "" | /*) echo "$1" ;;
    *) echo "$base_directory/$1" ;;
  esac
}
save=$(from_user "$save") compare=$(from_user "$compare") build=$(from_user "$build")
[ -z "$compare" ] || [ -r "$compare" ] || die "cannot read $compare"
[ -z "$compare" ] || [ "$repetitions" -ge 7 ] || misuse "--compare needs --repetitions 7 or more"

if [ -z "$build" ]; then
  # shellcheck disable=SC2086  # a list of words
  ensure_packages $install $packages
  build="build/release"
  configure release "$build" -D HCOMM_TESTS=ON
  compile release "$build" microbench
fi
[ -x "$build/bin/microbench_compare" ] || die "there are no microbenchmarks in $build"

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
trap 'exit 130' INT TERM
for program in "$build"/bin/*_bench; do
  [ -x "$program" ] || continue
  name=$(basename "$program")
  # Listing is quick; a program without such a case would complain.
  "$program" --benchmark_filter="$filter" --benchmark_list_tests=true 2>/dev/null | grep -q / ||
    continue
  say "running $name"
  "$program" --benchmark_filter="$filter" --benchmark_repetitions="$repetitions" \
    --benchmark_min_time="$min_time" --benchmark_enable_random_interleaving=true \
    --benchmark_display_aggregates_only=true --benchmark_out_format=json \
    --benchmark_out="$results/$name.json" >"$results/log" 2>&1 ||
    { tail -n 20 "$results/log" >&2; die "$name failed"; }
  [ -n "$save$compare" ] || grep -E '_median|^Benchmark' "$results/log" || true
done
[ -n "$(find "$results" -name '*.json')" ] || die "no case is called $filter"
"$build/bin/microbench_compare" bundle "$results/all" "$results"/*.json
if [ -n "$compare" ]; then
  code=0
  "$build/bin/microbench_compare" compare "$compare" "$results/all" "$bound" || code=$?
  # What is slower is no base for the next one.
  [ $code = 0 ] || exit $code
fi
if [ -n "$save" ]; then
  cp "$results/all" "$save" || die "cannot write $save"
  say "saved in $save"
fi
