// SPDX-License-Identifier: Apache-2.0
// The harness as a library that Python loads: torch_ranks.py is the driver.
#include "harness.h"

typedef void (*torch_repeat)(int kind, long turn, long count);
typedef void (*torch_bind)(int kind, unsigned long count, unsigned long block, float* send,
                           float* recv);

static peer_world world;
static struct {
  unsigned kinds;
  torch_bind bind;
  torch_repeat repeat;
  const float* of;
  peer_kind kind;
} python;

// Makes the ranks; the rank of this process, -1: the words are not those of a job.
int torch_open(int argc, char** argv) {
  if (!peer_parse(&world, argc, argv)) return -1;
  peer_fork(&world);
  world.threaded = 1;
  return world.rank;
}

static int supports(void* self, peer_kind kind) {
  (void)self;
  return (python.kinds >> kind & 1U) != 0;
}

static void repeat(void* self, const peer_task* task, long turn, long count) {
  (void)self;
  if (python.of != task->send || python.kind != task->kind)
    python.bind((int)task->kind, task->count, task->block, task->send, task->recv);
  python.of = task->send;
  python.kind = task->kind;
  python.repeat((int)task->kind, turn, count);
}

static void release(void* self, void* memory, size_t bytes) {
  (void)self;
  if (python.of != NULL) python.bind(-1, 0, 0, NULL, NULL);  // lets go of both buffers
  python.of = NULL;
  munmap(memory, bytes);
}

int torch_serve(const char* version, unsigned kinds, unsigned in_place, torch_bind bind,
                torch_repeat run) {
  const peer_driver driver = {NULL, version, in_place, supports, repeat, NULL, NULL, release};
  python.kinds = kinds;
  python.bind = bind;
  python.repeat = run;
  return peer_serve(&world, &driver);
}
