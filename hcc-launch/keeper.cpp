// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/keeper.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "cli/terminal.h"
#include "hcc-launch/agent/sweep.h"
#include "hcc-launch/verdict.h"

namespace hcomm::launch {

namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};
constexpr char kGuardName[] = "hcc-guard", kAgentName[] = "hcc-agent";
enum class Role : uint8_t { keeper, guard };

// A signal that we were started to ignore (nohup) stays ignored: blocked, it would arrive.
bool is_ignored(int signo) {
  struct sigaction action {};
  return sigaction(signo, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void block_signals(Guard& guard) {
  std::signal(SIGCHLD, SIG_DFL);
  sigemptyset(&guard.handled);
  sigaddset(&guard.handled, SIGCHLD);
  sigaddset(&guard.handled, parent_gone_signal());
  sigaddset(&guard.handled, passed_on_signal());
  for (const int signo : kPassedOn)
    if (!is_ignored(signo)) sigaddset(&guard.handled, signo);
  sigset_t blocked = guard.handled;
  sigaddset(&blocked, SIGPIPE);  // a write to a reader that left is an error, not our end
  sigprocmask(SIG_BLOCK, &blocked, &guard.inherited_mask);
}

// Our processes are told apart in ps, and a killall of hcc-launch hits the keeper alone.
template <size_t N>
void rename_process(char* process_name, const char (&name)[N]) {
  prctl(PR_SET_NAME, name);
  const size_t room = std::strlen(process_name);
  if (room < N - 1) return;
  std::memset(process_name, 0, room);
  std::memcpy(process_name, name, N - 1);
}

// Whatever the child left behind, when it was killed or could not go on, ends here.
int after_child(int status, std::string_view name) {
  end_descendants();
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  cli::complain(fmt::format("hcc-launch: its process {} was ended by {}; the job was ended", name,
                            signal_text(WTERMSIG(status))));
  return kExitLauncher;
}

int keep(pid_t child, const Guard& guard, Role role) {
  const std::string_view name = role == Role::keeper ? kGuardName : kAgentName;
  while (true) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return after_child(status, name);
    siginfo_t info{};
    const int signo = sigwaitinfo(&guard.handled, &info);
    if (signo < 0 || signo == SIGCHLD) continue;
    if (signo == parent_gone_signal()) {  // nobody waits for us any more
      end_descendants();
      _exit(kExitLauncher);
    }
    if (role == Role::guard) {
      sigqueue(child, passed_on_signal(), {.sival_int = signo});
      continue;
    }
    // What the terminal sends goes to its whole foreground group, so to the agent as well.
    if (info.si_code != SI_KERNEL) kill(child, signo);
    if (signo == SIGTSTP) raise(SIGSTOP);
  }
}

// A child that is told when we die.
pid_t fork_child(std::string_view what) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail_system(errno, "make the {} process", what);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, parent_gone_signal());
  if (getppid() != parent) _exit(kExitLauncher);  // it died before that
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return 0;
}

[[noreturn]] void be_guard(char* process_name, Guard& guard,
                           const std::function<int(const Guard&)>& work) {
  const pid_t group = getpgrp();
  setpgid(0, 0);
  rename_process(process_name, kGuardName);
  const pid_t agent = fork_child("agent");
  if (agent != 0) {
    std::signal(SIGTTOU, SIG_IGN);  // its one message may be for a terminal where it is background
    _exit(keep(agent, guard, Role::guard));
  }
  setpgid(0, group);  // back to the terminal's job, as whose part it reads and is stopped
  rename_process(process_name, kAgentName);
  _exit(work(guard));
}

}  // namespace

int run_guarded(char* process_name, const std::function<int(const Guard&)>& work) {
  Guard guard;
  block_signals(guard);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = fork_child("guard");
  if (child == 0) be_guard(process_name, guard, work);
  return keep(child, guard, Role::keeper);
}

}  // namespace hcomm::launch
