#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job over a slow network, on one machine; see usage. Nothing of it is left when it ends.
set -eu
umask 077
script=network
. "$(dirname "$0")/packages.sh"

usage() {
  cat <<END
usage: etc/network.sh [--hosts N] [--rate RATE] [--mpi] [--] COMMAND [ARGUMENT]...
Runs COMMAND once on each of N hosts, as the ranks of one job. The hosts are network namespaces with
one cable each to a common switch, so the ranks share this machine's cores but talk over TCP alone.
Needs root and Debian's iproute2.
  --hosts N    hosts (4)
  --rate RATE  of each cable, each way, as tc(8) writes it (1gbit)
  --mpi        the ranks are started by Open MPI's mpirun: COMMAND is a program of Open MPI
END
}

hosts=4 rate=1gbit launcher=hcomm
while [ $# -gt 0 ]; do
  case $1 in
    --hosts) hosts=$(value "$@") || exit; shift ;;
    --rate) rate=$(value "$@") || exit; shift ;;
    --mpi) launcher=mpi ;;
    --help | -h) usage && exit ;;
    --) shift && break ;;
    -*) misuse "unknown option $1" ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || misuse "there is no command"
case $hosts in
  '' | *[!0-9]* | 0*) misuse "--hosts $hosts: not a number of hosts" ;;
esac
[ "$hosts" -le 200 ] || misuse "--hosts $hosts: 200 at most"
command -v ip >/dev/null || die "there is no ip command: install iproute2"
[ "$(id -u)" = 0 ] || die "namespaces need root"

# Everything below happens in namespaces of our own, which the kernel removes with the last process;
# all of these end with the first one, and that one with us, however we end. unshare itself would
# wait through a signal.
if [ "${HCOMM_NETWORK_INSIDE:-}" != yes ]; then
  export HCOMM_NETWORK_INSIDE=yes
  setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc \
    "$0" --hosts "$hosts" --rate "$rate" $([ $launcher = hcomm ] || echo --mpi) -- "$@" <&0 &
  inside=$!
  trap 'kill -KILL $inside; exit 130' INT
  trap 'kill -KILL $inside; exit 143' HUP TERM
  wait $inside
  exit
fi
unset HCOMM_NETWORK_INSIDE
mkdir -p /run/netns
mount -t tmpfs hosts /run/netns # the kernel removes it, too

network=10.99.0 # the switch is .254, host H (from 0) is .H+1
ip link set lo up
ip link add switch type bridge
ip addr add $network.254/24 dev switch
ip link set switch up
for host in $(seq 0 $((hosts - 1))); do
  ip netns add "host$host"
  ip link add "port$host" type veth peer name cable netns "host$host"
  ip link set "port$host" master switch up
  ip -n "host$host" addr add "$network.$((host + 1))/24" dev cable
  ip -n "host$host" link set cable up
  ip -n "host$host" link set lo up
  for end in "-n host$host qdisc add dev cable" "qdisc add dev port$host"; do
    # shellcheck disable=SC2086  # words
    tc $end root tbf rate "$rate" burst 512k latency 30ms || die "tc refuses the rate $rate"
  done
done

if [ $launcher = mpi ]; then
  mpirun=$(command -v mpirun.openmpi || command -v mpirun) ||
    die "there is no mpirun: install openmpi-bin"
  # shellcheck disable=SC2016  # for the ranks' shell
  printf '#!/bin/sh\nexec ip netns exec "host$OMPI_COMM_WORLD_RANK" "$@"\n' >/run/netns/on_host
  chmod +x /run/netns/on_host
  PMIX_MCA_ptl_tcp_remote_connections=1 PMIX_MCA_ptl_tcp_if_include=switch \
    "$mpirun" --allow-run-as-root --oversubscribe --bind-to none -np "$hosts" --mca pml ob1 \
    --mca btl self,tcp /run/netns/on_host "$@"
  exit
fi
od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >/run/netns/secret
export HCOMM_SIZE="$hosts" HCOMM_ROOT=$network.1:29400 HCOMM_SECRET_FILE=/run/netns/secret
ranks=""
for rank in $(seq 0 $((hosts - 1))); do
  HCOMM_RANK=$rank ip netns exec "host$rank" "$@" &
  ranks="$ranks $!"
done
result=0
for rank in $ranks; do
  wait "$rank" || result=$?
done
exit $result
