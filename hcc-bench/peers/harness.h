// SPDX-License-Identifier: Apache-2.0
// What every driver of `hcc-bench compare` shares: how a job of ranks is told what to measure, and
// how it is timed, so that all libraries are held against one clock, one barrier, one check.
//
// A driver is started once with all of its ranks and serves: rank 0 holds a socket to hcc-bench,
// the others sleep on a futex. A job is known by six words, the arguments of its program:
// - the name of the socket, in the abstract namespace
// - the file that all ranks map
// - the number of ranks
// - the process that ends the job when it goes
// - cores, "0,1": rank i runs on the i-th, and so on in turn
// - plain or hcomm: where the buffers come from, if the library has memory of its own
//
// A command is a line, and so is its answer:
// - measure KIND BYTES BUDGET_S LIMIT_S
// - ok MIN_US MEDIAN_US P99_US BATCHES BATCH ERRORS DISTANCE_BEFORE_NS DISTANCE_AFTER_NS
// - unsupported
//
// A sample is a batch of operations between two barriers of the harness, of the slowest rank,
// divided by their number. C11 and C++17 with _GNU_SOURCE, header only; nothing here depends on any
// library that is measured. Absent: retries; a job that hangs is ended by SIGALRM, and said by
// hcc-bench.
#ifndef HCOMM_PEERS_HARNESS_H
#define HCOMM_PEERS_HARNESS_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "data.h"

enum { PEER_MOST_RANKS = 64, PEER_MOST_BATCHES = 4096, PEER_SHARED_BYTES = 65536 };

// Shared by the ranks of a job; all zero at first. Counters that are spun on have lines of their
// own.
typedef struct {
  uint32_t arrived, pad0[15];
  uint32_t epoch, pad1[15];
  uint32_t ball, pad2[15];     // of the probe
  uint32_t command, pad3[15];  // how many were given
  int32_t kind, quit;
  uint32_t limit_s;
  uint64_t bytes;
  double budget_s, distance_ns;
  double value[PEER_MOST_RANKS];
  double batch_s[PEER_MOST_RANKS][PEER_MOST_BATCHES];
  uint32_t posted[PEER_MOST_RANKS];  // for drivers that bring up their library over the region
  unsigned char shared[PEER_MOST_RANKS][PEER_SHARED_BYTES];
} peer_region;

typedef struct {
  int rank, ranks, cpus, threaded, hcomm_memory, socket;
  int cpu[PEER_MOST_RANKS];
  pid_t owner;
  const char* socket_name;
  peer_region* region;
} peer_world;

// What a driver brings.
typedef struct {
  void* self;
  const char* version;  // one line: library and version
  unsigned in_place;    // bit of a kind: the library only knows it in place
  int (*supports)(void* self, peer_kind kind);
  // Runs `count` operations back to back; the root of the first is turn % ranks, then the next.
  void (*repeat)(void* self, const peer_task* task, long turn, long count);
  void (*drain)(void* self);                    // after a batch, not timed; may be null
  void* (*allocate)(void* self, size_t bytes);  // may be null: mmap
  void (*release)(void* self, void* memory, size_t bytes);
} peer_driver;

static inline double peer_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline void peer_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static inline void peer_futex_wait(uint32_t* word, uint32_t seen, const struct timespec* limit) {
  syscall(SYS_futex, word, FUTEX_WAIT, seen, limit, NULL, 0);
}
static inline void peer_futex_wake(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void peer_pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Reads the six words after the program's name. 0: they are not those of a job.
static inline int peer_parse(peer_world* world, int argc, char** argv) {
  memset(world, 0, sizeof *world);
  world->socket = -1;
  if (argc != 7) return 0;
  world->socket_name = argv[1];
  world->ranks = atoi(argv[3]);
  world->owner = (pid_t)atoi(argv[4]);
  for (char* at = argv[5]; *at != '\0' && world->cpus < PEER_MOST_RANKS;) {
    world->cpu[world->cpus++] = (int)strtol(at, &at, 10);
    if (*at == ',') at++;
  }
  world->hcomm_memory = strcmp(argv[6], "hcomm") == 0;
  if (world->ranks < 1 || world->ranks > PEER_MOST_RANKS || world->cpus < 1) return 0;
  const int fd = open(argv[2], O_RDWR | O_CLOEXEC);
  if (fd < 0) return 0;
  void* memory = mmap(NULL, sizeof(peer_region), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return 0;
  world->region = (peer_region*)memory;
  return 1;
}

// For libraries without a launcher of their own: makes the ranks, and returns in each of them; the
// first process waits for all.
static inline void peer_fork(peer_world* world) {
  for (int i = 0; i < world->ranks; i++) {
    world->rank = i;
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      return;
    }
  }
  int code = 0, status = 0;
  for (int i = 0; i < world->ranks; i++) {
    if (wait(&status) < 0) break;
    if (status == 0) continue;
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    break;  // the others wait for it: they end with this process
  }
  _exit(code);
}

// Blocks at once where the library works in threads of its own, which a spinning rank would keep
// from their core; spins a little where ranks share cores.
static inline void peer_barrier(peer_world* world) {
  peer_region* region = world->region;
  const uint32_t epoch = __atomic_load_n(&region->epoch, __ATOMIC_ACQUIRE);
  const uint32_t arrived = __atomic_add_fetch(&region->arrived, 1, __ATOMIC_ACQ_REL);
  if (arrived == (uint32_t)world->ranks) {
    __atomic_store_n(&region->arrived, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&region->epoch, 1, __ATOMIC_RELEASE);
    peer_futex_wake(&region->epoch);
    return;
  }
  const int spins = world->threaded ? 0 : world->ranks > world->cpus ? 50 : 20000;
  for (int i = 0; i < spins; i++) {
    if (__atomic_load_n(&region->epoch, __ATOMIC_ACQUIRE) != epoch) return;
    peer_pause();
  }
  while (__atomic_load_n(&region->epoch, __ATOMIC_ACQUIRE) == epoch)
    peer_futex_wait(&region->epoch, epoch, NULL);
}

static inline double peer_maximum(peer_world* world, double value) {
  peer_region* region = world->region;
  region->value[world->rank] = value;
  peer_barrier(world);
  double most = region->value[0];
  for (int i = 1; i < world->ranks; i++)
    if (region->value[i] > most) most = region->value[i];
  peer_barrier(world);
  return most;
}

static inline long peer_sum(peer_world* world, long value) {
  peer_region* region = world->region;
  region->value[world->rank] = (double)value;
  peer_barrier(world);
  double sum = 0;
  for (int i = 0; i < world->ranks; i++) sum += region->value[i];
  peer_barrier(world);
  return (long)sum;
}

// How far apart the cores of ranks 0 and 1 are now: the least one-way time of a cache line, in ns;
// -1 where there are not two, or where others keep them busy. A host moves virtual cores at any
// time, which changes every number over shared memory. About a millisecond.
static inline double peer_distance(peer_world* world) {
  enum { REPEATS = 30, TURNS = 100 };
  peer_region* region = world->region;
  if (world->ranks < 2 || world->cpus < 2) return -1;
  peer_barrier(world);
  if (world->rank < 2) {
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    peer_pin(world->cpu[world->rank]);
    const double give_up = peer_now() + 0.1;
    double best = -1;
    uint32_t want = (uint32_t)world->rank;
    int late = 0;
    for (int repeat = 0; repeat < REPEATS && !late; repeat++) {
      const double start = peer_now();
      for (int turn = 0; turn < TURNS && !late; turn++, want += 2) {
        for (long spins = 0; __atomic_load_n(&region->ball, __ATOMIC_ACQUIRE) != want && !late;
             spins++)
          late = spins % 4096 == 4095 && peer_now() > give_up;
        if (!late) __atomic_store_n(&region->ball, want + 1, __ATOMIC_RELEASE);
      }
      const double each = (peer_now() - start) / (2 * TURNS);
      if (!late && (best < 0 || each < best)) best = each;
    }
    if (world->rank == 0) region->distance_ns = best < 0 ? -1 : best * 1e9;
    sched_setaffinity(0, sizeof before, &before);
  }
  peer_barrier(world);
  if (world->rank == 0) __atomic_store_n(&region->ball, 0, __ATOMIC_RELEASE);
  const double distance = region->distance_ns;
  peer_barrier(world);
  return distance;
}

#include "measure.h"
#endif
