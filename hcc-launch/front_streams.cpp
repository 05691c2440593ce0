// SPDX-License-Identifier: Apache-2.0
// The front's dealings with the outside: signals that come in, output and the report that go out.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/clock.h"
#include "base/error.h"
#include "hcc-launch/agent/sweep.h"
#include "hcc-launch/front.h"

namespace hcomm::launch {

namespace {

constexpr int64_t kSweepMs = 5000;
// The same signal within this time is one: `timeout` and the like tell a process and its group.
constexpr int64_t kSameSignalNs = 50'000'000;

}  // namespace

void Front::watch_signals() {
  signals_.reset(signalfd(-1, &guard_.handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) fail_system(errno, "make a descriptor for signals");
  loop_.watch(signals_.get(), EPOLLIN, [this](uint32_t) { read_signals(); });
  loop_.watch(guard_.keeper_fd, EPOLLIN, [](uint32_t) {
    end_descendants(kSweepMs);  // the keeper was killed: nobody waits for us any more
    _exit(kExitLauncher);
  });
}

void Front::read_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    const auto signo = static_cast<int>(info.ssi_signo);
    if (signo == SIGCHLD) {
      agent_.reap();
      continue;
    }
    // What the terminal sends, the rank that shares our process group has already.
    on_signal(signo,
              info.ssi_code == SI_KERNEL ? Agent::Reach::except_foreground : Agent::Reach::every);
  }
}

void Front::on_signal(int signo, Agent::Reach reach) {
  if (options_.common.verbosity >= 1)
    printer_.note(fmt::format("hcc-launch: {} is passed on\n", signal_text(signo)));
  if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP) return on_stop_signal(signo, reach);
  agent_.signal_ranks(signo, reach);
}

void Front::on_stop_signal(int signo, Agent::Reach reach) {
  const int64_t now = now_ns();
  if (now - std::exchange(last_stop_ns_[signo], now) < kSameSignalNs) return;
  if (signo == SIGINT) interrupts_++;
  if (agent_.living() == 0) {  // what is left is output that nobody takes
    abandon_output_ = true;
    for (const Stream stream : kStreams) agent_.close_output(stream);
  }
  verdict_.job_ends(Cause::user_signal, signo);
  agent_.signal_ranks(signo, reach);
  agent_.signal_ranks(SIGCONT, Agent::Reach::every);
  if (interrupts_ >= 2)
    kill_job();
  else
    begin_grace();
}

// Passes on what has gathered, and slows the ranks down where it is not taken.
void Front::serve_output() {
  printer_.flush();
  if (files_) {
    files_->flush();
    if (const std::string error = files_->take_error(); !error.empty()) {
      output_lost_ = true;
      printer_.note(fmt::format("hcc-launch: {}", error));
    }
  }
  for (const Stream stream : kStreams) {
    const Sink& sink = printer_.sink(stream);
    bool& gone = output_gone_[static_cast<size_t>(stream)];
    if (sink.error() != 0 && !gone) {
      gone = true;
      output_lost_ = output_lost_ || sink.error() != EPIPE;
      if (stream == Stream::out && sink.error() != EPIPE)
        printer_.note(
            fmt::format("hcc-launch: write standard output: {}\n", strerror(sink.error())));
      if (!files_) agent_.close_output(stream);
    }
    if (sink.drained()) agent_.resume(stream);
  }
}

void Front::write_report() {
  std::vector<pid_t> pids;
  for (uint32_t rank = 0; rank < job_.size(); rank++) pids.push_back(agent_.pid(rank));
  const JobRecord record{
      options_,        job_,   verdict_,  [this](uint32_t rank) { return agent_.area(rank); },
      std::move(pids), tails_, start_ns_, start_wall_ns_};
  printer_.end_lines();
  printer_.note(options_.common.quiet
                    ? failure_line(record)
                    : failure_box(record, cli::Painter(2, options_.common.color)));
  if (options_.report.empty()) return;
  std::ofstream file(options_.report);
  file << json_report(record) << std::flush;
  if (!file) {
    output_lost_ = true;
    printer_.note(
        fmt::format("hcc-launch: write --report {}: {}\n", options_.report, strerror(errno)));
  }
}

// Whoever reads our output may take his time; ^C or a broken pipe ends the wait.
void Front::finish_output() {
  serve_output();
  const auto pending = [this](Stream stream) {
    const Sink& sink = printer_.sink(stream);
    return !sink.empty() && sink.error() == 0;
  };
  while ((pending(Stream::out) || pending(Stream::err)) && !abandon_output_) {
    loop_.run_once();
    serve_output();
  }
}

}  // namespace hcomm::launch
