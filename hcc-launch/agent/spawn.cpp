// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace hcomm::launch {

namespace {

struct Child {
  SpawnRequest& request;
  pid_t parent;
  // Written by the child into memory that it shares with us.
  volatile int error = 0;
  const char* volatile step = nullptr;
  volatile bool by_program = false;
};

void keep_open(int fd) {
  const int flags = fcntl(fd, F_GETFD);
  if (flags >= 0) fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC);
}

bool failed(Child& child, int result, const char* step) {
  if (result >= 0) return false;
  child.error = errno;
  child.step = step;
  return true;
}

bool prepare(Child& child) {
  SpawnRequest& request = child.request;
  if (failed(child, prctl(PR_SET_PDEATHSIG, SIGKILL), "tie it to the launcher")) return false;
  if (getppid() != child.parent) _exit(128 + SIGKILL);  // the launcher died before that
  if (request.own_group && failed(child, setpgid(0, 0), "make its process group")) return false;
  if (failed(child, dup2(request.in_fd, 0), "connect its standard input") ||
      failed(child, dup2(request.out_fd, 1), "connect its standard output") ||
      failed(child, dup2(request.err_fd, 2), "connect its standard error"))
    return false;
  for (const int fd : request.inherit) keep_open(fd);
  if (!request.core_mask.empty() &&
      failed(child,
             sched_setaffinity(0, request.core_mask.size_bytes(),
                               reinterpret_cast<const cpu_set_t*>(request.core_mask.data())),
             "bind it to its cores"))
    return false;
  if (request.folder != nullptr &&
      failed(child, chdir(request.folder), "change to its working directory"))
    return false;
  setrlimit(RLIMIT_NOFILE, &request.open_files);
  sigprocmask(SIG_SETMASK, &request.signal_mask, nullptr);
  return true;
}

// Runs between vfork and exec: system calls only, nothing that allocates or locks.
[[noreturn]] void run_child(Child& child) {
  SpawnRequest& request = child.request;
  if (prepare(child)) {
    execve(request.path, request.argv + 1, request.environment);
    if (errno == ENOEXEC) {
      char shell[] = "/bin/sh";
      request.argv[0] = shell;
      request.argv[1] = const_cast<char*>(request.path);
      execve(shell, request.argv, request.environment);
    }
    failed(child, -1, "execute it");
    child.by_program = true;
  }
  _exit(127);
}

}  // namespace

SpawnResult spawn(SpawnRequest& request) {
  Child child{request, getpid()};
  // The mask stays closed until the rank has its own memory: no handler runs in ours meanwhile.
  const pid_t pid = vfork();
  if (pid == 0) run_child(child);
  if (pid < 0) return {-1, errno, "make its process", false};
  if (child.step == nullptr) return {pid, 0, nullptr, false};
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {-1, child.error, child.step, child.by_program};
}

}  // namespace hcomm::launch
