// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "hcc-launch/agent/sweep.h"

namespace hcomm::launch {

namespace {

bool is_terminal_of_ours(int fd) {
  return isatty(fd) != 0 && tcgetpgrp(fd) >= 0;
}

}  // namespace

// Keeps the pointers and what they point at together.
struct Agent::RankText {
  std::vector<std::string> own;
  std::vector<char*> environment, argv;

  RankText(const Job& job, const RankPlan& plan, const Handout& handout) {
    const auto add = [&](std::string_view name, const auto& value) {
      own.push_back(fmt::format("HCOMM_{}={}", name, value));
    };
    add("RANK", plan.rank);
    add("SIZE", job.size());
    add("LOCAL_RANK", plan.local_rank);
    add("LOCAL_SIZE", job.size());
    add("JOB_ID", job.id);
    add("SECRET", job.secret);
    add("ROOT", handout.root());
    if (plan.rank == 0) add("ROOT_FD", handout.root_fd());
    add("RECORDER_FD", handout.recorder_fd());
    for (const std::string& entry : job.environments[plan.environment])
      environment.push_back(const_cast<char*>(entry.c_str()));
    for (std::string& entry : own) environment.push_back(entry.data());
    environment.push_back(nullptr);
    argv.push_back(nullptr);  // room for a shell, see SpawnRequest
    for (const std::string& argument : plan.argv)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
  }
};

Agent::Agent(Loop& loop, const Job& job, AgentEvents& events, const AgentSettings& settings)
    : loop_(loop),
      job_(job),
      events_(events),
      settings_(settings),
      handout_(job.size()),
      ranks_(job.size()),
      buffer_(kReadBytes) {}

Agent::~Agent() = default;

void Agent::start() {
  for (const RankPlan& plan : job_.ranks) start_rank(plan.rank);
  handout_.close_root();
}

std::vector<UniqueFd> Agent::take_inputs() {
  return std::move(inputs_);
}

void Agent::open_channels(Rank& rank, UniqueFd (&writing)[2]) {
  for (size_t i = 0; i < 2; i++) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail_system(errno, "make a pipe for a rank's output");
    rank.channels[i].fd.reset(ends[0]);
    writing[i].reset(ends[1]);
    open_channels_++;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
}

// The descriptor that becomes the rank's standard input; `holder` owns it where it is new.
int Agent::input_for(uint32_t rank, UniqueFd& holder) {
  if (job_.stdin_to == StdinTo::one && rank == job_.stdin_rank) return 0;
  if (job_.stdin_to == StdinTo::all) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail_system(errno, "make a pipe for a rank's input");
    holder.reset(ends[0]);
    inputs_.emplace_back(ends[1]);
  } else {
    holder.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!holder) fail_system(errno, "open /dev/null for a rank's input");
  }
  return holder.get();
}

void Agent::start_rank(uint32_t number) {
  const RankPlan& plan = job_.ranks[number];
  Rank& rank = ranks_[number];
  UniqueFd writing[2], input;
  open_channels(rank, writing);
  RankText text(job_, plan, handout_);
  const auto mask = mask_of(plan.cores);
  const int inherit[] = {handout_.recorder_fd(), handout_.root_fd()};

  SpawnRequest request;
  request.path = plan.path.c_str();
  request.argv = text.argv.data();
  request.environment = text.environment.data();
  if (!plan.folder.empty()) request.folder = plan.folder.c_str();
  request.in_fd = input_for(number, input);
  request.out_fd = writing[0].get();
  request.err_fd = writing[1].get();
  request.inherit = {inherit, number == 0 ? 2u : 1u};
  request.core_mask = mask;
  // Only a process of the foreground group may read a terminal.
  rank.own_group = request.in_fd != 0 || !is_terminal_of_ours(0);
  request.own_group = rank.own_group;
  request.signal_mask = settings_.signal_mask;
  request.open_files = settings_.open_files;

  const SpawnResult result = spawn(request);
  if (result.pid < 0) {
    const bool missing = result.error == ENOENT || result.error == ENOTDIR;
    throw StartFailure{!result.by_program ? kExitLauncher
                       : missing          ? kExitMissing
                                          : kExitNoProgram,
                       fmt::format("start rank {} ({}): {}: {}", number, plan.path, result.step,
                                   strerror(result.error))};
  }
  rank.pid = result.pid;
  rank.alive = true;
  living_++;
  watch_rank(number);
}

void Agent::watch_rank(uint32_t number) {
  Rank& rank = ranks_[number];
  // Where the kernel has none, SIGCHLD tells of the end, without the order among several.
  rank.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, rank.pid, 0)));
  if (rank.pidfd) loop_.watch(rank.pidfd.get(), EPOLLIN, [this, number] { rank_ready(number); });
  for (const Stream stream : kStreams) watch_channel(number, stream);
}

void Agent::rank_ready(uint32_t number) {
  Rank& rank = ranks_[number];
  if (!rank.alive) return;
  int status = 0;
  if (waitpid(rank.pid, &status, WNOHANG) != rank.pid) return;
  rank_ended(number, status);
  reap_orphans();  // that stood behind it
}

void Agent::rank_ended(uint32_t number, int status) {
  Rank& rank = ranks_[number];
  rank.alive = false;
  living_--;
  if (rank.pidfd) loop_.forget(rank.pidfd.get());
  rank.pidfd.reset();
  RankEnd end;
  end.at_ns = now_ns();
  end.wall_ns = wall_ns();
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.dumped_core = WCOREDUMP(status);
  } else {
    end.code = WEXITSTATUS(status);
  }
  // What it wrote last stands in its pipes by now, and belongs before what is said of its end.
  for (const Stream stream : kStreams) read_rest(number, stream);
  events_.on_end(number, end);
}

void Agent::reap_ranks() {
  for (uint32_t number = 0; number < ranks_.size(); number++) rank_ready(number);
}

// A rank with a pidfd has its turn in the order in which ranks ended, which SIGCHLD does not tell.
void Agent::reap() {
  for (uint32_t number = 0; number < ranks_.size(); number++)
    if (!ranks_[number].pidfd) rank_ready(number);
  reap_orphans();
}

void Agent::reap_orphans() {
  // Orphans of the job are our children (we are a subreaper). A rank that ended since is left to
  // its turn, after which we come here again: only the one that is peeked at is known to be none.
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const auto is_rank = [&](const Rank& rank) { return rank.alive && rank.pid == info.si_pid; };
    if (std::any_of(ranks_.begin(), ranks_.end(), is_rank)) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

bool Agent::leftovers() const {
  siginfo_t info{};
  return living_ == 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool Agent::finished() {
  if (living_ != 0 || leftovers()) return false;
  if (open_channels_ != 0) drain();
  return open_channels_ == 0;
}

void Agent::signal_ranks(int signo, Reach reach) {
  for (const Rank& rank : ranks_) {
    if (!rank.alive) continue;
    if (rank.own_group) {
      kill(-rank.pid, signo);
    } else if (reach == Reach::every) {
      kill(rank.pid, signo);
      for (const pid_t pid : descendants(rank.pid)) kill(pid, signo);
    }
  }
}

// Each once. The ranks first: they are known without a look at /proc, which may be hidden from us.
void Agent::signal_tree(int signo, Reach reach) {
  std::unordered_set<pid_t> seen;
  const auto tell = [&](pid_t pid) {
    if (!seen.insert(pid).second) return;
    if (reach == Reach::every || getpgid(pid) != getpgrp()) kill(pid, signo);
  };
  for (const Rank& rank : ranks_)
    if (rank.alive) tell(rank.pid);
  for (const pid_t pid : descendants(getpid())) tell(pid);
}

}  // namespace hcomm::launch
