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

// The same signal within this time is one: `timeout` and the like tell a process and its group.
constexpr int64_t kSameSignalNs = 50'000'000;

}  // namespace

void Front::watch_signals() {
  signals_.reset(signalfd(-1, &guard_.handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) fail_system(errno, "make a descriptor for signals");
  loop_.watch(signals_.get(), EPOLLIN, [this] { read_signals(); });
}

// From the keeper, or from the terminal. What else comes was sent to our whole process group: the
// keeper passes it on to us, and the rank that shares the group has it already.
void Front::read_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    const auto signo = static_cast<int>(info.ssi_signo);
    if (signo == parent_gone_signal()) {  // nobody waits for us any more
      end_descendants();
      _exit(kExitLauncher);
    }
    const int told = info.ssi_int;  // to the keeper
    if (signo == SIGCHLD)
      agent_.reap();
    else if (signo == passed_on_signal() && told > 0 && told < NSIG)
      on_signal(told, std::exchange(group_was_told_[told], false) ? Agent::Reach::except_foreground
                                                                  : Agent::Reach::every);
    else if (info.ssi_code == SI_KERNEL)
      on_signal(signo, Agent::Reach::except_foreground);
    else
      group_was_told_[signo] = true;
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
  if (verdict_.job_ends(Cause::user_signal, signo)) remember_states();
  if (signo == SIGTERM) {
    agent_.signal_tree(signo, reach);
    tree_told_ = true;
  } else {
    agent_.signal_ranks(signo, reach);
  }
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
      if (output_error_.empty()) output_error_ = error;
      say("{}", error);
    }
  }
  for (const Stream stream : kStreams) {
    const Sink& sink = printer_.sink(stream);
    bool& gone = output_gone_[static_cast<size_t>(stream)];
    if (sink.error() != 0 && !gone) {
      gone = true;
      const std::string error =
          fmt::format("write standard {}: {}", stream == Stream::out ? "output" : "error",
                      strerror(sink.error()));
      if (sink.error() != EPIPE && output_error_.empty()) output_error_ = error;
      if (sink.error() != EPIPE && stream == Stream::out) say("{}", error);
      if (!files_) agent_.close_output(stream);
    }
    if (sink.drained()) agent_.resume(stream);
  }
}

int Front::exit_code() const {
  const int code = verdict_.exit_code();
  return code == 0 && !output_error_.empty() ? kExitLauncher : code;
}

JobRecord Front::record() {
  std::vector<pid_t> pids;
  for (uint32_t rank = 0; rank < job_.size(); rank++) pids.push_back(agent_.pid(rank));
  return {options_, job_,   verdict_,        exit_code(), start_error_,  output_error_,
          states_,  tails_, std::move(pids), start_ns_,   start_wall_ns_};
}

// The last of all, since it tells whether the output could be written.
void Front::write_report() {
  if (options_.report.empty()) return;
  report_ << json_report(record()) << std::flush;
  if (report_) return;
  output_error_ = fmt::format("write --report {}: {}", options_.report, strerror(errno));
  say("{}", output_error_);
  printer_.flush();
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
