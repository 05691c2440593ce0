// SPDX-License-Identifier: Apache-2.0
// What the buffers of a measurement hold, and whether the result is right. Element i of rank r is
// i mod 13 + r + 1: small whole numbers, so that every sum is exact. C11 and C++17; included by
// harness.h.
#ifndef HCOMM_PEERS_DATA_H
#define HCOMM_PEERS_DATA_H

#include <stddef.h>
#include <string.h>

// The names of hcc-bench's operations are in peer_kind_names, in this order.
typedef enum {
  PEER_ALLREDUCE,
  PEER_REDUCESCATTER,
  PEER_ALLGATHER,
  PEER_BROADCAST,
  PEER_REDUCE,
  PEER_ALLTOALL,
  PEER_SENDRECV,  // a ring: each rank sends to the next
  PEER_PINGPONG,  // ranks 0 and 1; an operation is a round trip, the time reported half of it
  PEER_BARRIER,
  PEER_KINDS
} peer_kind;

static const char* const peer_kind_names[PEER_KINDS] = {"allreduce", "reducescatter", "allgather",
                                                        "broadcast", "reduce",        "alltoall",
                                                        "sendrecv",  "pingpong",      "barrier"};

// One measurement, as a driver sees it. Broadcast works in recv on every rank.
typedef struct {
  peer_kind kind;
  int rank, ranks;
  size_t count;  // elements of an operation that is not cut into blocks
  size_t block;  // elements of a rank's block: at least one
  float* send;
  float* recv;  // both hold the larger of count and block * ranks
} peer_task;

static inline size_t peer_capacity(const peer_task* task) {
  const size_t blocks = task->block * (size_t)task->ranks;
  return task->count > blocks ? task->count : blocks;
}

// a * (i mod 13) + b, from element `first` on. A period is written out many times so that what
// follows is memcpy and memcmp: the check must not take longer than the operation.
enum { PEER_PERIOD = 13, PEER_TABLE = 13 * 256 };
typedef struct {
  float table[PEER_TABLE + PEER_PERIOD];
  size_t phase;
} peer_pattern;

static inline size_t peer_part(size_t left) {
  const size_t most = PEER_TABLE;
  return left < most ? left : most;
}

static inline void peer_pattern_make(peer_pattern* pattern, size_t first, size_t a, size_t b) {
  for (size_t i = 0; i < PEER_TABLE + PEER_PERIOD; i++)
    pattern->table[i] = (float)(a * (i % PEER_PERIOD) + b);
  pattern->phase = first % PEER_PERIOD;
}

static inline void peer_pattern_fill(const peer_pattern* pattern, float* into, size_t count) {
  for (size_t at = 0; at < count; at += PEER_TABLE) {
    const size_t part = peer_part(count - at);
    memcpy(into + at, pattern->table + pattern->phase, part * sizeof(float));
  }
}

static inline long peer_pattern_errors(const peer_pattern* pattern, const float* seen,
                                       size_t count) {
  long errors = 0;
  for (size_t at = 0; at < count; at += PEER_TABLE) {
    const size_t part = peer_part(count - at);
    const float* expected = pattern->table + pattern->phase;
    if (memcmp(seen + at, expected, part * sizeof(float)) == 0) continue;
    for (size_t i = 0; i < part; i++)
      if (memcmp(seen + at + i, expected + i, sizeof(float)) != 0) errors++;
  }
  return errors;
}

// The data of one rank, from element `first` on.
static inline void peer_fill(float* into, size_t count, int rank) {
  peer_pattern pattern;
  peer_pattern_make(&pattern, 0, 1, (size_t)rank + 1);
  peer_pattern_fill(&pattern, into, count);
}
static inline long peer_errors_of(const float* seen, size_t first, size_t count, int rank) {
  peer_pattern pattern;
  peer_pattern_make(&pattern, first, 1, (size_t)rank + 1);
  return peer_pattern_errors(&pattern, seen, count);
}
static inline long peer_errors_of_sum(const float* seen, size_t first, size_t count, int ranks) {
  const size_t n = (size_t)ranks;
  peer_pattern pattern;
  peer_pattern_make(&pattern, first, n, n * (n + 1) / 2);
  return peer_pattern_errors(&pattern, seen, count);
}

// Nothing that is right: -1 is in no pattern. `in_place`: kinds whose input is in recv.
static inline void peer_prepare(const peer_task* task, int root, unsigned in_place) {
  const size_t capacity = peer_capacity(task);
  for (size_t i = 0; i < capacity; i++) task->recv[i] = -1.0F;
  if ((task->kind == PEER_BROADCAST && task->rank == root) || (in_place >> task->kind & 1U) != 0)
    peer_fill(task->recv, capacity, task->rank);
}

// Wrong elements of this rank's result after one operation with that root.
static inline long peer_verify(const peer_task* task, int root) {
  const size_t block = task->block, rank = (size_t)task->rank;
  const int before = (task->rank + task->ranks - 1) % task->ranks;
  long errors = 0;
  switch (task->kind) {
    case PEER_ALLREDUCE:
      return peer_errors_of_sum(task->recv, 0, task->count, task->ranks);
    case PEER_REDUCE:
      return task->rank == root ? peer_errors_of_sum(task->recv, 0, task->count, task->ranks) : 0;
    case PEER_REDUCESCATTER:
      return peer_errors_of_sum(task->recv, block * rank, block, task->ranks);
    case PEER_BROADCAST:
      return peer_errors_of(task->recv, 0, task->count, root);
    case PEER_ALLGATHER:
      for (int i = 0; i < task->ranks; i++)
        errors += peer_errors_of(task->recv + (size_t)i * block, 0, block, i);
      return errors;
    case PEER_ALLTOALL:
      for (int i = 0; i < task->ranks; i++)
        errors += peer_errors_of(task->recv + (size_t)i * block, block * rank, block, i);
      return errors;
    case PEER_SENDRECV:
      return peer_errors_of(task->recv, 0, task->count, before);
    case PEER_PINGPONG:
      return task->rank < 2 ? peer_errors_of(task->recv, 0, task->count, 1 - task->rank) : 0;
    case PEER_BARRIER:
    case PEER_KINDS:
      break;
  }
  return 0;
}

#endif
