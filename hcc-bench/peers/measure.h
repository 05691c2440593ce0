// SPDX-License-Identifier: Apache-2.0
// One measurement of a driver, and the loop that serves them: the second half of harness.h, which
// includes it.
#ifndef HCOMM_PEERS_MEASURE_H
#define HCOMM_PEERS_MEASURE_H

typedef struct {
  double min_us, median_us, p99_us, before_ns, after_ns;
  long batches, batch, errors;
} peer_result;

static inline int peer_compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static inline double peer_batch(peer_world* world, const peer_driver* driver, const peer_task* task,
                                long count, long* turn) {
  peer_barrier(world);
  const double start = peer_now();
  driver->repeat(driver->self, task, *turn, count);
  const double end = peer_now();
  *turn += count;
  if (driver->drain != NULL) driver->drain(driver->self);
  return end - start;
}

static inline long peer_within(double value, long least, long most) {
  return value <= (double)least ? least : value >= (double)most ? most : (long)value;
}

// How long one operation takes, on all ranks the same number; warms up on the way.
static inline double peer_estimate(peer_world* world, const peer_driver* driver,
                                   const peer_task* task, double budget_s, long* turn) {
  peer_batch(world, driver, task, 1, turn);
  double estimate = peer_maximum(world, peer_batch(world, driver, task, 1, turn));
  for (int i = 0; i < 6 && estimate < budget_s / 5; i++) {
    const long count = peer_within(budget_s / 20 / estimate, 1, i == 0 ? 200 : 2000);
    const double each =
        peer_maximum(world, peer_batch(world, driver, task, count, turn)) / (double)count;
    if (each < estimate) estimate = each;
  }
  return estimate > 1e-9 ? estimate : 1e-9;
}

// Of the slowest rank in each batch; on rank 0.
static inline void peer_summarise(peer_world* world, double passes, peer_result* result) {
  static double times[PEER_MOST_BATCHES];
  const long n = result->batches;
  for (long i = 0; i < n; i++) {
    times[i] = world->region->batch_s[0][i];
    for (int rank = 1; rank < world->ranks; rank++)
      if (world->region->batch_s[rank][i] > times[i]) times[i] = world->region->batch_s[rank][i];
  }
  qsort(times, (size_t)n, sizeof *times, peer_compare);
  const double us = 1e6 / passes;
  const long high = (99 * n + 99) / 100 - 1;  // nearest rank
  result->min_us = times[0] * us;
  result->median_us = (n % 2 != 0 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2) * us;
  result->p99_us = times[high] * us;
}

static inline void peer_time(peer_world* world, const peer_driver* driver, const peer_task* task,
                             double budget_s, peer_result* result) {
  long turn = 0;
  result->before_ns = peer_distance(world);
  const double estimate = peer_estimate(world, driver, task, budget_s, &turn);
  // Long enough that waking up, where the barrier blocks, is nothing.
  const double target_s = world->threaded ? 1e-2 : world->ranks > world->cpus ? 1e-3 : 2e-4;
  result->batch = peer_within(target_s / estimate + 1, 1, 20000);
  if (estimate >= target_s) result->batch = 1;
  const long least = estimate > 0.1 ? 2 : estimate > 0.01 ? 3 : 5;
  result->batches =
      peer_within(budget_s / ((double)result->batch * estimate), least, PEER_MOST_BATCHES);
  for (long i = 0; i < result->batches; i++)
    world->region->batch_s[world->rank][i] =
        peer_batch(world, driver, task, result->batch, &turn) / (double)result->batch;
  peer_barrier(world);
  if (world->rank == 0) peer_summarise(world, task->kind == PEER_PINGPONG ? 2 : 1, result);
  result->after_ns = peer_distance(world);
}

// Runs one operation on fresh data and looks at every element of every rank.
static inline long peer_check(peer_world* world, const peer_driver* driver, const peer_task* task) {
  const int root = 1 % task->ranks;
  peer_prepare(task, root, driver->in_place);
  peer_barrier(world);
  driver->repeat(driver->self, task, root, 1);
  const long errors = peer_verify(task, root);
  if (driver->drain != NULL) driver->drain(driver->self);
  return peer_sum(world, errors);
}

static inline void* peer_allocate(const peer_driver* driver, size_t bytes) {
  if (driver->allocate != NULL) return driver->allocate(driver->self, bytes);
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}
static inline void peer_release(const peer_driver* driver, void* memory, size_t bytes) {
  if (driver->release != NULL)
    driver->release(driver->self, memory, bytes);
  else
    munmap(memory, bytes);
}

// The buffers live as long as the measurement: the jobs of a comparison take turns.
static inline void peer_measure(peer_world* world, const peer_driver* driver, peer_result* result) {
  const peer_region* region = world->region;
  peer_task task;
  memset(&task, 0, sizeof task);
  memset(result, 0, sizeof *result);
  task.kind = (peer_kind)region->kind;
  task.rank = world->rank;
  task.ranks = world->ranks;
  task.count = region->bytes / sizeof(float) > 0 ? region->bytes / sizeof(float) : 1;
  task.block = task.count / (size_t)world->ranks > 0 ? task.count / (size_t)world->ranks : 1;
  const size_t bytes = peer_capacity(&task) * sizeof(float);
  task.send = (float*)peer_allocate(driver, bytes);
  task.recv = (float*)peer_allocate(driver, bytes);
  if (task.send == NULL || task.recv == NULL) {
    fprintf(stderr, "rank %d: no memory for two buffers of %zu bytes\n", world->rank, bytes);
    _exit(1);
  }
  peer_fill(task.send, peer_capacity(&task), task.rank);
  result->errors = peer_check(world, driver, &task);
  // In place the sums would grow out of all bounds, and slow down.
  if ((driver->in_place >> task.kind & 1U) != 0) memset(task.recv, 0, bytes);
  const long errors = result->errors;
  peer_time(world, driver, &task, region->budget_s, result);
  result->errors = errors + peer_check(world, driver, &task);
  peer_release(driver, task.send, bytes);
  peer_release(driver, task.recv, bytes);
  peer_barrier(world);
}

static inline int peer_write_line(peer_world* world, const char* line) {
  for (size_t length = strlen(line); length > 0;) {
    const ssize_t sent = send(world->socket, line, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return 0;
    line += sent;
    length -= (size_t)sent;
  }
  return 1;
}

static inline int peer_connect(peer_world* world, const char* version) {
  struct sockaddr_un address;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  const size_t length = strlen(world->socket_name);
  if (length + 1 > sizeof address.sun_path) return 0;
  memcpy(address.sun_path + 1, world->socket_name, length);  // abstract: begins with a zero
  world->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  if (connect(world->socket, (const struct sockaddr*)&address, size) != 0) return 0;
  char line[256];
  snprintf(line, sizeof line, "hello %.200s\n", version);
  return peer_write_line(world, line);
}

// Rank 0: the next command into the region; at the end of the socket: quit.
static inline void peer_next_command(peer_world* world) {
  peer_region* region = world->region;
  char line[256], kind[32];
  size_t length = 0;
  unsigned long long bytes = 0;
  unsigned limit = 0;
  region->quit = 1;
  while (length + 1 < sizeof line) {
    const ssize_t got = read(world->socket, line + length, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || line[length] == '\n') break;
    length++;
  }
  line[length] = '\0';
  if (sscanf(line, "measure %31s %llu %lf %u", kind, &bytes, &region->budget_s, &limit) == 4) {
    region->kind = PEER_KINDS;  // one that nobody supports
    for (int i = 0; i < PEER_KINDS; i++)
      if (strcmp(kind, peer_kind_names[i]) == 0) region->kind = i;
    region->bytes = bytes;
    region->limit_s = limit;
    region->quit = 0;
  }
  __atomic_add_fetch(&region->command, 1, __ATOMIC_RELEASE);
  peer_futex_wake(&region->command);
}

// The other ranks: asleep until there is one. Whoever started the job may be gone.
static inline void peer_await_command(peer_world* world, uint32_t seen) {
  const struct timespec two_seconds = {2, 0};
  while (__atomic_load_n(&world->region->command, __ATOMIC_ACQUIRE) == seen) {
    peer_futex_wait(&world->region->command, seen, &two_seconds);
    if (kill(world->owner, 0) != 0 && errno == ESRCH) _exit(0);
  }
}

// Serves until hcc-bench closes the socket. All ranks call it, with their library up. The exit
// code.
static inline int peer_serve(peer_world* world, const peer_driver* driver) {
  peer_barrier(world);
  if (world->rank == 0 && !peer_connect(world, driver->version)) {
    fprintf(stderr, "cannot reach hcc-bench: %s\n", strerror(errno));
    return 1;
  }
  for (uint32_t seen = 0;; seen++) {
    if (world->rank == 0)
      peer_next_command(world);
    else
      peer_await_command(world, seen);
    if (world->region->quit) return 0;
    alarm(world->region->limit_s);
    const peer_kind kind = (peer_kind)world->region->kind;
    char line[256] = "unsupported\n";
    if (kind < PEER_KINDS && driver->supports(driver->self, kind)) {
      peer_result r;
      peer_measure(world, driver, &r);
      snprintf(line, sizeof line, "ok %.4f %.4f %.4f %ld %ld %ld %.1f %.1f\n", r.min_us,
               r.median_us, r.p99_us, r.batches, r.batch, r.errors, r.before_ns, r.after_ns);
    }
    alarm(0);
    peer_barrier(world);                                 // before rank 0 may write the next command
    if (world->rank == 0) peer_write_line(world, line);  // failed: the next command is to quit
  }
}

#endif
