// SPDX-License-Identifier: Apache-2.0
// Barriers of a line a rank, and reading another process's memory by the kernel.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "hcc-bench/limits/crew.h"

namespace hcomm::bench::limits {

namespace {

// Each publishes its round and reads everybody's.
void run_barrier(Member& member) {
  member.time([&member, round = uint32_t{0}]() mutable {
    round++;
    member.line(member.rank()).turn.store(round, std::memory_order_release);
    for (int i = 0; i < member.ranks(); i++) member.await(member.line(i).turn, round);
  });
}

void measure_barrier(const Request& request, int ranks) {
  Crew crew{{}, request.min_time_s};
  for (int i = 0; i < ranks; i++)
    crew.cores.push_back(request.cores[static_cast<size_t>(i) % request.cores.size()]);
  add_measured(request,
               {.section = "exchange",
                .name = "barrier",
                .processes = ranks,
                .how = static_cast<size_t>(ranks) > request.cores.size() ? "sched_yield" : "spin",
                .bounds = "a barrier, and any operation of a few bytes"},
               [&] { return run_crew(crew, run_barrier); });
}

// Member 0 reads the memory of member 1, which has its buffer at the same address.
void read_peer(Member& member, const Mapping& place, size_t bytes) {
  // Where only relatives may look into one another, brothers are none.
#if defined(PR_SET_PTRACER)
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
#endif
  place.fill(static_cast<float>(member.rank() + 1));
  const Mapping to(bytes, Sharing::own);
  to.fill(0);
  member.line(member.rank()).turn.store(static_cast<uint32_t>(getpid()));
  member.barrier();
  const auto peer = static_cast<pid_t>(member.line(member.peer()).turn.load());
  member.time([&] {
    if (member.rank() != 0) return;
    const iovec local{to.as<void>(), bytes}, remote{place.as<void>(), bytes};
    const ssize_t got = process_vm_readv(peer, &local, 1, &remote, 1, 0);
    if (got < 0 && (errno == EPERM || errno == ENOSYS))
      fail(Code::unavailable, "not allowed: process_vm_readv");
    if (got != static_cast<ssize_t>(bytes)) fail_system(errno, "process_vm_readv");
  });
  if (member.rank() == 0 && to.as<float>()[0] != 2)
    fail(Code::internal, "process_vm_readv read something else");
}

}  // namespace

void measure_exchange(const Request& request) {
  for (const int ranks : {2, 4, 8}) measure_barrier(request, ranks);
  for (const size_t bytes : {16 * kKiB, 64 * kKiB, kMiB, 16 * kMiB})
    add_of_pair(request,
                {.section = "exchange",
                 .name = "process_vm_readv",
                 .bytes = bytes,
                 .processes = 2,
                 .bounds = "a message out of memory that is not shared, one way"},
                [&] {
                  const Mapping place(bytes, Sharing::own);
                  return run_pair(request,
                                  [&](Member& member) { read_peer(member, place, bytes); });
                });
}

}  // namespace hcomm::bench::limits
