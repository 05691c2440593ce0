// SPDX-License-Identifier: Apache-2.0
// The user's side of a running job: takes what the agent reports, decides what is a failure and
// when the job ends, prints, reports, and gives the exit code. Lives in the agent process
// (keeper.h). States: ranks run -> (a cause of end: told to end -> grace is over: killed) -> all
// have ended -> output is written -> report.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hcc-launch/agent/agent.h"
#include "hcc-launch/agent/input.h"
#include "hcc-launch/agent/loop.h"
#include "hcc-launch/keeper.h"
#include "hcc-launch/options.h"
#include "hcc-launch/output/files.h"
#include "hcc-launch/output/printer.h"
#include "hcc-launch/output/report.h"
#include "hcc-launch/verdict.h"
#include "trace/reader.h"

namespace hcomm::launch {

class Front final : AgentEvents {
 public:
  Front(const Options& options, const Job& job, const Guard& guard);
  int run();  // until nothing of the job is left; the exit code

 private:
  void on_output(uint32_t rank, Stream stream, const Piece& piece) override;
  void on_end(uint32_t rank, const RankEnd& end) override;

  void start();
  void show_bindings();
  void watch_signals();
  void read_signals();
  void on_signal(int signo, Agent::Reach reach);
  void on_stop_signal(int signo, Agent::Reach reach);
  void fail_start(Cause cause, int code, const std::string& text);
  void end_job(Cause cause, int detail);
  void remember_states();
  void begin_grace();
  void kill_job();
  bool joined(uint32_t rank) const;
  void check_init();
  void serve_output();
  void end_leftovers();
  void finish_output();
  JobRecord record();
  void write_report();
  int exit_code() const;
  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args);
  template <typename... Args>
  void tell(int verbosity, fmt::format_string<Args...> format, Args&&... args);

  const Options& options_;
  const Job& job_;
  const Guard& guard_;
  const rlimit open_files_;  // as we were started; raised before anything is opened
  Loop loop_;
  Printer printer_;
  std::unique_ptr<OutputFiles> files_;
  Agent agent_;
  std::unique_ptr<InputPump> input_;
  Verdict verdict_;
  UniqueFd signals_;
  int64_t start_ns_, start_wall_ns_;
  std::ofstream report_;

  std::vector<std::optional<trace::RankSnapshot>> states_;  // when the job was told to end
  std::vector<std::deque<std::string>> tails_;
  std::vector<bool> tail_open_;
  bool output_gone_[2] = {};
  std::string start_error_, output_error_;  // "": none

  Loop::TimerId timeout_ = 0, grace_ = 0, init_check_ = 0, leftovers_ = 0;
  int64_t last_stop_ns_[NSIG] = {};  // by signal
  bool group_was_told_[NSIG] = {};   // likewise: the keeper's copy is still to come
  int interrupts_ = 0;
  int init_checks_ = 0;     // in a row that found the job stuck in init
  bool tree_told_ = false;  // every process has had SIGTERM
  int64_t kill_pause_ms_ = 0, killing_since_ns_ = 0;
  bool abandon_output_ = false;
};

template <typename... Args>
void Front::say(fmt::format_string<Args...> format, Args&&... args) {
  printer_.note(fmt::format("hcc-launch: {}\n", fmt::format(format, std::forward<Args>(args)...)));
}

template <typename... Args>
void Front::tell(int verbosity, fmt::format_string<Args...> format, Args&&... args) {
  if (options_.common.verbosity >= verbosity) say(format, std::forward<Args>(args)...);
}

}  // namespace hcomm::launch
