// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/serve.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "hcc-bench/call.h"
#include "hcc-bench/peers/harness.h"
#include "hcc-bench/world.h"

namespace hcomm::compare {

namespace {

using bench::Operation;

// In the order of peer_kind.
constexpr Operation kOperations[PEER_KINDS] = {
    Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
    Operation::broadcast,  Operation::reduce,         Operation::all_to_all,
    Operation::send_recv,  Operation::ping_pong,      Operation::barrier};

hcommComm_t comm_of(void* self) {
  return static_cast<bench::World*>(self)->comm();
}

// A failure ends the job: what was measured after it would mean nothing.
void leave(const std::exception& error) {
  cli::complain(error.what());
  _exit(1);
}

void repeat(void* self, const peer_task* task, long turn, long count) {
  const Operation operation = kOperations[task->kind];
  // Broadcast as all others do it: one buffer on each rank.
  const void* send = task->kind == PEER_BROADCAST ? task->recv : task->send;
  const bench::Call call{operation, send, task->recv, hcommFloat32, hcommSum, comm_of(self)};
  bench::Place place{task->rank, task->ranks, 0};
  const bool blocks = bench::info(operation).cut == bench::Cut::even_blocks;
  bench::Layout layout;
  layout.count = blocks ? task->block : task->count;
  try {
    for (long i = 0; i < count; i++) {
      place.root = static_cast<int>((turn + i) % task->ranks);
      const hcommResult_t result = bench::run(call, layout, place);
      if (result != hcommSuccess) bench::require(result, call.comm, bench::info(operation).name);
    }
  } catch (const std::exception& error) {
    leave(error);
  }
}

void drain(void* self) {
  if (hcommBarrier(comm_of(self), nullptr) != hcommSuccess) leave(Error(Code::system, "barrier"));
}

void* allocate(void*, size_t bytes) {
  void* memory = nullptr;
  return hcommMemAlloc(&memory, bytes, nullptr) == hcommSuccess ? memory : nullptr;
}

void release(void*, void* memory, size_t) {
  hcommMemFree(memory);
}

}  // namespace

int serve(int argc, char** argv) {
  peer_world job;
  if (!peer_parse(&job, argc, argv)) {
    cli::complain("hcc-bench serve: is started by hcc-bench compare");
    return 2;
  }
  try {
    bench::World world;
    if (world.ranks() != job.ranks)
      fail(Code::unavailable, "{} ranks, not {}", world.ranks(), job.ranks);
    job.rank = world.rank();
    peer_pin(job.cpu[job.rank % job.cpus]);
    const std::string version = cli::version_line("hcomm");
    const bool mapped = job.hcomm_memory != 0;
    const peer_driver driver = {&world,
                                version.c_str(),
                                0,
                                [](void*, peer_kind) { return 1; },
                                repeat,
                                drain,
                                mapped ? allocate : nullptr,
                                mapped ? release : nullptr};
    return peer_serve(&job, &driver);
  } catch (const std::exception& error) {
    cli::complain(error.what());
    return 1;
  }
}

}  // namespace hcomm::compare
