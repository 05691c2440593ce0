// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/explain.h"

#include "base/error.h"

namespace hcomm::bench {

namespace {

constexpr struct {
  std::string_view topic, text;
} kTopics[] = {
    {"busbw",
     R"(algbw = size / time, in 1e9 bytes per second: what the caller sees.
busbw = algbw * factor: what the slowest link must carry, whatever the number of ranks n, so it can
be compared with the hardware. The factors are nccl-tests':
  allreduce                                                   2 (n-1) / n
  allgather reducescatter alltoall gather scatter, V forms      (n-1) / n
  broadcast reduce sendrecv pingpong                          1
With one rank nothing travels: busbw is 0 where the factor has n-1.
)"},
    {"check",
     R"(Inputs are small whole numbers that every type holds exactly, different on each rank; a
wrong element, a written input and a byte written behind the result are all found. One operation of
each row is checked before it is timed (--check first), or every one, on fresh data (--check
all). Rooted operations of at most 64 KiB are checked with every root that is used. avg of floats
may differ by one rounding; all else must be exact. A fault names rank, element, expected, got
and a guess: data missing, stale, of another rank, moved. --self-test spoils a byte to prove that
it is seen; it ends with exit code 1.
)"},
    {"noise",
     R"(A row is sampled until the 95 % interval of its median (from order statistics) is within
--max-noise of the median on either side, but at least --min-time and at most --max-time. n is the
number of samples. A row whose median is not known so well is marked ~. cv is the standard deviation
by the mean. p99 is shown from 100 samples on.
)"},
    {"peak",
     R"(%peak = busbw / peak, with --peak FILE; FILE is what `hcc-bench limits --json -o FILE` wrote
on this machine. The peak is what two processes reached that did nothing else:
  allreduce, shm   the all-reduce limit, "direct" with --memory hcomm, else "bounce"; between the
                   sizes that were measured on a straight line of logarithms
  any, tcp         bandwidth over loopback, one way for rooted operations and pingpong, else both
                   ways, and no operation faster than half a round trip
"-" where no limit is known: more than two ranks, several hosts, other operations over shm. The
limits are float32's and hold while the cores are as far apart as they were (the table's head
tells); more than 100 says that they were not, or that the limits were taken on a busy machine.
)"},
    {"size",
     R"(size is what nccl-tests counts: the larger of what one rank sends and receives, all of its
blocks together. allgather of 8 MiB over 8 ranks: each sends 1 MiB and receives 8 MiB. Blocks are
equal, so a size that n blocks of whole elements do not fill is rounded down (never to nothing) and
the table shows what was run. V forms: block i has 1 + i mod 3 shares, the last one also the rest.
K M G and KiB MiB GiB are 1024, kB MB GB 1000.
)"},
    {"time",
     R"(A sample is a batch of K operations between two barriers, divided by K, on the slowest rank.
K is chosen so that a batch takes about 0.2 ms (1 ms where ranks share cores), 1 when an operation
takes longer; --batch sets it. So percentiles of small operations are those of batches. Each rank
keeps its times; they are exchanged after a run of batches, never between. pingpong is half of the
round trip. The root rotates by default, so that one root does not run ahead of the others.
)"},
};

}  // namespace

std::string explain_topics() {
  std::string topics;
  for (const auto& each : kTopics) {
    if (!topics.empty()) topics += '|';
    topics += each.topic;
  }
  return topics;
}

std::string_view explain(std::string_view topic) {
  for (const auto& each : kTopics)
    if (each.topic == topic) return each.text;
  fail(Code::invalid_argument, "nothing is known about '{}'", topic);
}

}  // namespace hcomm::bench
