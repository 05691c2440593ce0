// SPDX-License-Identifier: Apache-2.0
// The driver of UCC: makes its ranks itself, and brings them up over the region that they share.
// Each operation is init, post, test, finalize, as MPI libraries call UCC. The transport is chosen
// by UCX's environment. UCC has no send and receive.
#include <ucc/api/ucc.h>

#include "harness.h"

typedef struct {
  peer_world* world;
  ucc_context_h context;
  ucc_team_h team;
  uint32_t gathers;
  int yields;  // ranks share cores
} ucc_self;

static void must(ucc_status_t status, const char* what) {
  if (status >= 0) return;
  fprintf(stderr, "%s: %s\n", what, ucc_status_string(status));
  _exit(1);
}

// The all-gather that UCC asks for: two halves in turn, so that a rank may be one ahead.
typedef struct {
  ucc_self* self;
  uint32_t number;
  void* into;
  size_t bytes;
} gather;

static unsigned char* half_of(const gather* g, int rank) {
  return g->self->world->region->shared[rank] + (g->number & 1U) * (PEER_SHARED_BYTES / 2);
}

static ucc_status_t gather_post(void* from, void* into, size_t bytes, void* info, void** request) {
  ucc_self* self = info;
  gather* g = malloc(sizeof *g);
  if (g == NULL || bytes > PEER_SHARED_BYTES / 2) return UCC_ERR_NO_MEMORY;
  *g = (gather){self, ++self->gathers, into, bytes};
  memcpy(half_of(g, self->world->rank), from, bytes);
  __atomic_store_n(&self->world->region->posted[self->world->rank], g->number, __ATOMIC_RELEASE);
  *request = g;
  return UCC_OK;
}

static ucc_status_t gather_test(void* request) {
  const gather* g = request;
  const peer_world* world = g->self->world;
  for (int i = 0; i < world->ranks; i++)
    if ((int32_t)(__atomic_load_n(&world->region->posted[i], __ATOMIC_ACQUIRE) - g->number) < 0) {
      sched_yield();
      return UCC_INPROGRESS;
    }
  for (int i = 0; i < world->ranks; i++)
    memcpy((char*)g->into + (size_t)i * g->bytes, half_of(g, i), g->bytes);
  return UCC_OK;
}

static ucc_status_t gather_free(void* request) {
  free(request);
  return UCC_OK;
}

static ucc_coll_type_t type_of(peer_kind kind) {
  switch (kind) {
    case PEER_ALLREDUCE:
      return UCC_COLL_TYPE_ALLREDUCE;
    case PEER_REDUCESCATTER:
      return UCC_COLL_TYPE_REDUCE_SCATTER;
    case PEER_ALLGATHER:
      return UCC_COLL_TYPE_ALLGATHER;
    case PEER_BROADCAST:
      return UCC_COLL_TYPE_BCAST;
    case PEER_REDUCE:
      return UCC_COLL_TYPE_REDUCE;
    case PEER_ALLTOALL:
      return UCC_COLL_TYPE_ALLTOALL;
    default:
      return UCC_COLL_TYPE_BARRIER;
  }
}

static void once(ucc_self* self, ucc_coll_args_t* args) {
  ucc_coll_req_h request;
  ucc_status_t status;
  must(ucc_collective_init(args, &request, self->team), "ucc_collective_init");
  must(ucc_collective_post(request), "ucc_collective_post");
  while ((status = ucc_collective_test(request)) == UCC_INPROGRESS) {
    ucc_context_progress(self->context);
    if (self->yields) sched_yield();
  }
  must(status, "ucc_collective_test");
  ucc_collective_finalize(request);
}

static int supports(void* self, peer_kind kind) {
  (void)self;
  return kind != PEER_SENDRECV && kind != PEER_PINGPONG;
}

static void repeat(void* self, const peer_task* task, long turn, long count) {
  const size_t blocks = task->block * (size_t)task->ranks;
  ucc_coll_args_t args;
  memset(&args, 0, sizeof args);
  args.coll_type = type_of(task->kind);
  args.op = UCC_OP_SUM;
  args.src.info.buffer = task->kind == PEER_BROADCAST ? task->recv : task->send;
  args.dst.info.buffer = task->recv;
  args.src.info.count = args.dst.info.count = task->count;
  if (task->kind == PEER_ALLGATHER || task->kind == PEER_REDUCESCATTER ||
      task->kind == PEER_ALLTOALL) {
    args.src.info.count = task->kind == PEER_ALLGATHER ? task->block : blocks;
    args.dst.info.count = task->kind == PEER_REDUCESCATTER ? task->block : blocks;
  }
  args.src.info.datatype = args.dst.info.datatype = UCC_DT_FLOAT32;
  args.src.info.mem_type = args.dst.info.mem_type = UCC_MEMORY_TYPE_HOST;
  for (long i = 0; i < count; i++) {
    args.root = (uint64_t)((turn + i) % task->ranks);
    once(self, &args);
  }
}

// A rank that is done may have to move what others wait for.
static void drain(void* self) {
  ucc_coll_args_t args;
  memset(&args, 0, sizeof args);
  args.coll_type = UCC_COLL_TYPE_BARRIER;
  once(self, &args);
}

static void start(ucc_self* self) {
  peer_world* world = self->world;
  ucc_lib_config_h lib_config;
  ucc_lib_h lib;
  ucc_context_config_h config;
  ucc_status_t status;
  const ucc_lib_params_t params = {.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCC_THREAD_SINGLE};
  const ucc_oob_coll_t oob = {
      gather_post, gather_test, gather_free, self, (uint32_t)world->ranks, (uint32_t)world->rank};
  const ucc_context_params_t context_params = {.mask = UCC_CONTEXT_PARAM_FIELD_OOB, .oob = oob};
  const ucc_team_params_t team_params = {
      .mask = UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE | UCC_TEAM_PARAM_FIELD_OOB,
      .oob = oob,
      .ep = (uint64_t)world->rank,
      .ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG};
  must(ucc_lib_config_read(NULL, NULL, &lib_config), "ucc_lib_config_read");
  must(ucc_init(&params, lib_config, &lib), "ucc_init");
  ucc_lib_config_release(lib_config);
  must(ucc_context_config_read(lib, NULL, &config), "ucc_context_config_read");
  must(ucc_context_create(lib, &context_params, config, &self->context), "ucc_context_create");
  ucc_context_config_release(config);
  must(ucc_team_create_post(&self->context, 1, &team_params, &self->team), "ucc_team_create_post");
  while ((status = ucc_team_create_test(self->team)) == UCC_INPROGRESS)
    ucc_context_progress(self->context);
  must(status, "ucc_team_create_test");
}

int main(int argc, char** argv) {
  peer_world world;
  char version[64];
  if (!peer_parse(&world, argc, argv)) return 2;
  peer_fork(&world);
  peer_pin(world.cpu[world.rank % world.cpus]);
  ucc_self self = {.world = &world, .yields = world.ranks > world.cpus};
  start(&self);
  snprintf(version, sizeof version, "UCC %s", ucc_get_version_string());
  const peer_driver driver = {&self, version, 0, supports, repeat, drain, NULL, NULL};
  const int code = peer_serve(&world, &driver);
  fflush(NULL);
  _exit(code);  // UCX's own farewell needs all ranks at once
}
