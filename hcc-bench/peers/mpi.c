// SPDX-License-Identifier: Apache-2.0
// The driver of MPI libraries: built with mpicc, started with mpirun.
#include <mpi.h>

#include "harness.h"

static int supports(void* self, peer_kind kind) {
  (void)self;
  (void)kind;
  return 1;
}

static void ping_pong(const peer_task* t) {
  const int count = (int)t->count, other = 1 - t->rank;
  if (t->rank > 1) return;
  if (t->rank == 0) MPI_Send(t->send, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD);
  MPI_Recv(t->recv, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (t->rank == 1) MPI_Send(t->send, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD);
}

static void once(const peer_task* t, int root) {
  const int count = (int)t->count, block = (int)t->block;
  const int next = (t->rank + 1) % t->ranks, before = (t->rank + t->ranks - 1) % t->ranks;
  const MPI_Comm comm = MPI_COMM_WORLD;
  switch (t->kind) {
    case PEER_ALLREDUCE:
      MPI_Allreduce(t->send, t->recv, count, MPI_FLOAT, MPI_SUM, comm);
      break;
    case PEER_REDUCESCATTER:
      MPI_Reduce_scatter_block(t->send, t->recv, block, MPI_FLOAT, MPI_SUM, comm);
      break;
    case PEER_ALLGATHER:
      MPI_Allgather(t->send, block, MPI_FLOAT, t->recv, block, MPI_FLOAT, comm);
      break;
    case PEER_BROADCAST:
      MPI_Bcast(t->recv, count, MPI_FLOAT, root, comm);
      break;
    case PEER_REDUCE:
      MPI_Reduce(t->send, t->recv, count, MPI_FLOAT, MPI_SUM, root, comm);
      break;
    case PEER_ALLTOALL:
      MPI_Alltoall(t->send, block, MPI_FLOAT, t->recv, block, MPI_FLOAT, comm);
      break;
    case PEER_SENDRECV:
      MPI_Sendrecv(t->send, count, MPI_FLOAT, next, 0, t->recv, count, MPI_FLOAT, before, 0, comm,
                   MPI_STATUS_IGNORE);
      break;
    case PEER_PINGPONG:
      ping_pong(t);
      break;
    case PEER_BARRIER:
      MPI_Barrier(comm);
      break;
    case PEER_KINDS:
      break;
  }
}

static void repeat(void* self, const peer_task* task, long turn, long count) {
  (void)self;
  for (long i = 0; i < count; i++) once(task, (int)((turn + i) % task->ranks));
}

// A rank that is done may have to move what others wait for; it does so in calls of MPI only.
static void drain(void* self) {
  (void)self;
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  peer_world world;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0, size = 0;
  if (!peer_parse(&world, argc, argv)) return 2;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != world.ranks) {
    fprintf(stderr, "MPI has %d ranks, not %d: another MPI's mpirun?\n", size, world.ranks);
    return 1;
  }
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\n,")] = '\0';
  for (char* at = version; *at != '\0'; at++)
    if (*at == '\t') *at = ' ';
  peer_pin(world.cpu[world.rank % world.cpus]);  // the rank, not the threads that MPI has made
  const peer_driver driver = {NULL, version, 0, supports, repeat, drain, NULL, NULL};
  const int code = peer_serve(&world, &driver);
  MPI_Finalize();
  return code;
}
