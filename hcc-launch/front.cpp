// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/front.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "hcc-launch/agent/limits.h"
#include "hcc-launch/agent/sweep.h"

namespace hcomm::launch {

namespace {

constexpr int64_t kKillAgainMs = 50, kLongestKillPauseMs = 1000;
constexpr int64_t kUnkillableNs = 10'000'000'000;
constexpr int64_t kLeftoverMs = 1000;
constexpr int64_t kInitCheckMs = 250;
constexpr int kInitChecks = 6;  // 1.5 s of a job that cannot go on

PrinterSettings printer_settings(const Options& options, const Job& job) {
  return {options.label, options.timestamp, job.host, job.size()};
}

// Of a rank: two pipes for its output, perhaps one for its input, a descriptor of its process, and
// its files.
uint64_t descriptors_needed(const Options& options, const Job& job) {
  constexpr uint64_t kOurOwn = 32;
  const uint64_t each =
      3 + (job.stdin_to == StdinTo::all ? 1 : 0) + (options.output_pattern.empty() ? 0 : 2);
  return each * job.size() + kOurOwn;
}

AgentSettings agent_settings(const Options& options, const Job& job, const Guard& guard,
                             const rlimit& open_files) {
  AgentSettings settings;
  if (passes_through(printer_settings(options, job))) settings.held_ms = 0;
  settings.signal_mask = guard.inherited_mask;
  settings.open_files = open_files;
  return settings;
}

std::unique_ptr<OutputFiles> make_files(const Options& options, const Job& job) {
  if (options.output_pattern.empty()) return nullptr;
  return std::make_unique<OutputFiles>(
      options.output_pattern, job,
      options.timestamp ? OutputFiles::Time::stamped : OutputFiles::Time::plain);
}

std::ofstream open_report(const std::string& path) {
  std::ofstream file;
  if (path.empty()) return file;
  file.open(path);
  if (!file) fail_system(errno, "--report {}: open it", path);
  return file;
}

}  // namespace

Front::Front(const Options& options, const Job& job, const Guard& guard)
    : options_(options),
      job_(job),
      guard_(guard),
      open_files_(raise_open_files(descriptors_needed(options, job))),
      printer_(loop_, printer_settings(options, job)),
      files_(make_files(options, job)),
      agent_(loop_, job, *this, agent_settings(options, job, guard, open_files_)),
      verdict_(job.size()),
      start_ns_(now_ns()),
      start_wall_ns_(wall_ns()),
      report_(open_report(options.report)),
      tails_(job.size()),
      tail_open_(job.size()) {}

int Front::run() {
  watch_signals();
  start();
  while (!agent_.finished()) {
    loop_.run_once();
    end_leftovers();
    serve_output();
  }
  input_.reset();
  for (Loop::TimerId* timer : {&timeout_, &grace_, &init_check_, &leftovers_}) loop_.cancel(*timer);
  if (states_.empty()) remember_states();
  printer_.end_lines();
  printer_.note(options_.common.quiet
                    ? failure_line(record())
                    : failure_box(record(), cli::Painter(2, options_.common.color)));
  finish_output();
  write_report();
  return exit_code();
}

void Front::start() {
  tell(1, "job {}: {} ranks on {}, root {}", job_.id, job_.size(), job_.host, agent_.root());
  try {
    agent_.start();
  } catch (const StartFailure& failure) {
    return fail_start(Cause::start_failed, failure.exit_code, failure.text);
  } catch (const Error& error) {
    return fail_start(Cause::launcher_failed, 0, error.text());
  }
  if (options_.show_bindings) show_bindings();
  for (uint32_t rank = 0; rank < job_.size(); rank++)
    tell(2, "rank {} is process {}", rank, agent_.pid(rank));
  if (job_.stdin_to == StdinTo::all)
    input_ = std::make_unique<InputPump>(loop_, 0, agent_.take_inputs());
  if (options_.timeout_ms > 0)
    timeout_ = loop_.after_ms(options_.timeout_ms, [this] { end_job(Cause::timeout, 0); });
}

void Front::fail_start(Cause cause, int code, const std::string& text) {
  start_error_ = text;
  say("{}", text);
  end_job(cause, code);
  kill_job();
}

void Front::show_bindings() {
  const cli::Painter painter(2, options_.common.color);
  for (const RankPlan& plan : job_.ranks) {
    const Cores now = cores_of(agent_.pid(plan.rank));
    std::string line = fmt::format("rank {}  host {}  pid {}  cores {}", plan.rank, job_.host,
                                   agent_.pid(plan.rank), now.empty() ? "?" : numbers_text(now));
    if (plan.cores.empty())
      line += "  (not bound)";
    else if (!now.empty() && now != plan.cores)
      line += painter.paint(cli::Color::red,
                            fmt::format("  differs: {} was asked for", numbers_text(plan.cores)));
    say("{}", line);
  }
}

void Front::on_output(uint32_t rank, Stream stream, const Piece& piece) {
  if (files_) files_->write(rank, stream, piece);
  if (!files_ || options_.tee) {
    printer_.print(rank, stream, piece);
    if (printer_.sink(stream).full()) {
      agent_.pause(stream);
      if (&printer_.sink(Stream::out) == &printer_.sink(Stream::err))
        for (const Stream each : kStreams) agent_.pause(each);
    }
  }
  if (stream != Stream::err) return;
  auto& tail = tails_[rank];
  if (!tail_open_[rank] || tail.empty()) tail.emplace_back();
  if (tail.size() > kTailLines) tail.pop_front();
  std::string& line = tail.back();
  line += piece.text.substr(0, kTailColumns - std::min(kTailColumns, line.size()));
  tail_open_[rank] = !piece.ends;
}

void Front::on_end(uint32_t rank, const RankEnd& end) {
  const bool first = verdict_.rank_ended(rank, end);
  tell(2, "rank {} (process {}) {}", rank, agent_.pid(rank), end_text(end));
  if (first && !options_.keep_going && !verdict_.ending()) {
    agent_.reap_ranks();  // who has failed by now has failed by itself
    end_job(Cause::rank_failed, static_cast<int>(rank));
  }
  if (agent_.living() == 0) loop_.cancel(timeout_);  // what is left is output, at its reader's pace
  if (end.good() && !joined(rank) && init_check_ == 0)
    init_check_ = loop_.after_ms(kInitCheckMs, [this] { check_init(); });
}

// The communicator of the whole job; a program may have others, of its own choice.
bool Front::joined(uint32_t rank) const {
  const auto seen = trace::read_rank(agent_.area(rank), 0);
  return seen && seen->ranks == job_.size();
}

// A rank that ended well without ever joining is missed by those that are in init. When all that
// still run are in init, nobody is left who could join them.
void Front::check_init() {
  init_check_ = 0;
  if (agent_.living() == 0 || verdict_.ending()) return;
  bool stuck = true;
  int missing = -1;
  for (uint32_t rank = 0; rank < job_.size(); rank++) {
    const bool counts = joined(rank);
    if (agent_.alive(rank))
      stuck = stuck && counts &&
              trace::read_rank(agent_.area(rank), 0)->state == trace::RankState::starting;
    else if (!counts && missing < 0)
      missing = static_cast<int>(rank);
  }
  stuck = stuck && missing >= 0;
  init_checks_ = stuck ? init_checks_ + 1 : 0;
  if (init_checks_ >= kInitChecks) {
    say("rank {} left before init: it exited with code 0 and never joined; the ranks that wait for "
        "it in init are told to end",
        missing);
    return end_job(Cause::left_before_init, missing);
  }
  init_check_ = loop_.after_ms(kInitCheckMs, [this] { check_init(); });
}

void Front::end_job(Cause cause, int detail) {
  if (!verdict_.job_ends(cause, detail)) return;
  remember_states();
  if (cause == Cause::timeout)
    say("the time limit of {} is reached: {} ranks are told to end",
        seconds_text(options_.timeout_ms), agent_.living());
  if (cause == Cause::rank_failed && agent_.living() > 0)
    tell(1, "rank {} failed: the others are told to end", detail);
  agent_.signal_tree(SIGTERM);
  agent_.signal_tree(SIGCONT);  // one that is stopped could not hear it
  tree_told_ = true;
  begin_grace();
}

// Before a rank can act on what it is told.
void Front::remember_states() {
  states_.clear();
  for (uint32_t rank = 0; rank < job_.size(); rank++)
    states_.push_back(trace::read_rank(agent_.area(rank), 1));
}

void Front::begin_grace() {
  if (grace_ == 0) grace_ = loop_.after_ms(options_.grace_ms, [this] { kill_job(); });
}

// Again and again, for a process may have been about to fork; ever more slowly, for one that hangs
// in the kernel has it all pending.
void Front::kill_job() {
  loop_.cancel(grace_);
  if (!agent_.anything_left()) return;
  agent_.signal_tree(SIGKILL);
  if (kill_pause_ms_ == 0) killing_since_ns_ = now_ns();
  if (killing_since_ns_ != 0 && now_ns() - killing_since_ns_ > kUnkillableNs) {
    killing_since_ns_ = 0;  // said once
    say("still there after SIGKILL: processes {}; they wait in the kernel (ps -o stat,wchan), and "
        "hcc-launch waits for them",
        fmt::join(descendants(getpid()), ", "));
  }
  kill_pause_ms_ = std::clamp(kill_pause_ms_ * 2, kKillAgainMs, kLongestKillPauseMs);
  grace_ = loop_.after_ms(kill_pause_ms_, [this] { kill_job(); });
}

void Front::end_leftovers() {
  if (leftovers_ != 0 || !agent_.leftovers()) return;
  leftovers_ = loop_.after_ms(verdict_.ending() ? 0 : kLeftoverMs, [this] {
    if (!agent_.leftovers()) return;
    tell(1, "processes that outlived their ranks are ended");
    if (!tree_told_) agent_.signal_tree(SIGTERM);
    tree_told_ = true;
    begin_grace();
  });
}

}  // namespace hcomm::launch
