// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/fd.h"
#include "hcc-launch/agent/sweep.h"
#include "hcc-launch/verdict.h"

namespace hcomm::launch {

namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};
constexpr int64_t kSweepMs = 5000;
constexpr char kAgentName[] = "hcc-agent";

// A signal that we were started to ignore (nohup) stays ignored: blocked, it would arrive.
bool is_ignored(int signo) {
  struct sigaction action {};
  return sigaction(signo, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void block_signals(Guard& guard) {
  std::signal(SIGCHLD, SIG_DFL);
  sigemptyset(&guard.handled);
  sigaddset(&guard.handled, SIGCHLD);
  for (const int signo : kPassedOn)
    if (!is_ignored(signo)) sigaddset(&guard.handled, signo);
  sigset_t blocked = guard.handled;
  sigaddset(&blocked, SIGPIPE);  // a write to a reader that left is an error, not our end
  sigprocmask(SIG_BLOCK, &blocked, &guard.inherited_mask);
}

// The agent process is told apart in ps, and is not hit by a killall of hcc-launch.
void rename_process(char* process_name) {
  prctl(PR_SET_NAME, kAgentName);
  const size_t room = std::strlen(process_name);
  if (room < sizeof kAgentName - 1) return;
  std::memset(process_name, 0, room);
  std::memcpy(process_name, kAgentName, sizeof kAgentName - 1);
}

int after_agent(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  end_descendants(kSweepMs);
  const std::string text =
      fmt::format("hcc-launch: its agent process was ended by {}; the job was ended\n",
                  signal_text(WTERMSIG(status)));
  [[maybe_unused]] const ssize_t ignored = write(2, text.data(), text.size());
  return kExitLauncher;
}

int keep(pid_t agent, const Guard& guard) {
  while (true) {
    int status = 0;
    if (waitpid(agent, &status, WNOHANG) == agent) return after_agent(status);
    siginfo_t info{};
    const int signo = sigwaitinfo(&guard.handled, &info);
    if (signo < 0 || signo == SIGCHLD) continue;
    // What the terminal sends goes to its whole foreground group, so to the agent as well.
    if (info.si_code != SI_KERNEL) kill(agent, signo);
    if (signo == SIGTSTP) raise(SIGSTOP);
  }
}

}  // namespace

int run_guarded(char* process_name, const std::function<int(const Guard&)>& work) {
  Guard guard;
  block_signals(guard);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_system(errno, "make a pipe between the two processes");
  const UniqueFd mine(ends[1]);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t agent = fork();
  if (agent < 0) fail_system(errno, "make the agent process");
  if (agent == 0) {
    close(ends[1]);
    guard.keeper_fd = ends[0];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    rename_process(process_name);
    _exit(work(guard));
  }
  close(ends[0]);
  return keep(agent, guard);
}

}  // namespace hcomm::launch
