// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/output/report.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "base/bytes.h"
#include "base/clock.h"
#include "cli/json.h"
#include "datatype/types.h"
#include "hcc-launch/output/core_file.h"
#include "schedule/schedule.h"
#include "trace/reader.h"

namespace hcomm::launch {

namespace {

using schedule::Collective;

std::string operation_text(const trace::OpSnapshot& op) {
  const auto collective = static_cast<Collective>(op.collective);
  if (collective > Collective::point_to_point || op.type >= kTypes || op.op >= kOps)
    return fmt::format("#{} (written by another version)", op.sequence);
  std::string text = fmt::format("{} #{}", schedule::name(collective), op.sequence);
  const auto type = static_cast<Type>(op.type);
  if (collective != Collective::barrier)
    text +=
        fmt::format(", {} x {} ({})", op.count, name(type), size_text(op.count * size_of(type)));
  if (schedule::reduces(collective)) text += fmt::format(" {}", name(static_cast<Op>(op.op)));
  if (schedule::rooted(collective)) text += fmt::format(", root {}", op.root);
  text += fmt::format(", communicator {:08x}", op.communicator);
  switch (op.state) {
    case trace::OpState::none:
      break;
    case trace::OpState::running:
      return text + fmt::format("; begun at {:.3f} s, not complete", op.begin_us / 1e6);
    case trace::OpState::done:
      return text + fmt::format("; complete at {:.3f} s", op.end_us / 1e6);
    case trace::OpState::failed:
      return text + fmt::format("; failed at {:.3f} s", op.end_us / 1e6);
  }
  return text;
}

std::string hcomm_text(const trace::RankSnapshot& rank) {
  switch (rank.state) {
    case trace::RankState::none:
      break;
    case trace::RankState::starting:
      return "HCOMM: in init, waiting for the other ranks";
    case trace::RankState::ready:
      if (!rank.last.empty())
        return fmt::format("last operation: {}", operation_text(rank.last[0]));
      return "HCOMM: initialised, no operation yet";
  }
  return {};
}

Numbers ranks_that(const JobRecord& record, bool (*test)(const Verdict&, uint32_t)) {
  Numbers ranks;
  for (uint32_t rank = 0; rank < record.job.size(); rank++)
    if (test(record.verdict, rank)) ranks.push_back(rank);
  return ranks;
}

bool has_failed(const Verdict& verdict, uint32_t rank) {
  return verdict.failed(rank);
}
bool was_ended(const Verdict& verdict, uint32_t rank) {
  return verdict.ended_by_launcher(rank);
}

bool makes_core(int signo) {
  return signo == SIGSEGV || signo == SIGABRT || signo == SIGBUS || signo == SIGFPE ||
         signo == SIGILL || signo == SIGQUIT || signo == SIGTRAP || signo == SIGSYS;
}

CoreFile core_of(const JobRecord& record, uint32_t rank, const RankEnd& end) {
  if (!makes_core(end.signal)) return {};
  if (end.dumped_core) {
    const RankPlan& plan = record.job.ranks[rank];
    return find_core({.pid = record.pids[rank],
                      .outer_pid = {},
                      .uid = getuid(),
                      .gid = getgid(),
                      .signal = end.signal,
                      .time_s = end.wall_ns / 1'000'000'000,
                      .host = record.job.host,
                      .program = plan.path},
                     plan.folder);
  }
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  return {"", limit.rlim_cur == 0 ? "core: none, since ulimit -c is 0" : "core: none was written"};
}

double seconds_at(const JobRecord& record, const RankEnd& end) {
  return static_cast<double>(end.at_ns - record.start_ns) / 1e9;
}

class Box {
 public:
  explicit Box(const cli::Painter& painter) : painter_(painter) {}
  void title(std::string_view text) {
    text_ += fmt::format("+-- {}\n", painter_.paint(cli::Color::red, text));
  }
  void line(std::string_view text) {
    if (!text.empty()) text_ += fmt::format("| {}\n", text);
  }
  std::string take() { return std::move(text_) + "+--\n"; }

 private:
  const cli::Painter& painter_;
  std::string text_;
};

void add_first(Box& box, const JobRecord& record, uint32_t rank) {
  const RankEnd& end = *record.verdict.end_of(rank);
  box.title(fmt::format("hcc-launch: rank {} failed first: it {}", rank, end_text(end)));
  box.line(fmt::format("host {}, pid {}, after {:.3f} s, at {}", record.job.host, record.pids[rank],
                       seconds_at(record, end), utc_text(end.wall_ns)));
  box.line(fmt::format("program: {}", cli::printable(record.job.ranks[rank].argv[0])));
  box.line(core_of(record, rank, end).text);
  if (const auto& seen = record.states[rank]) {
    box.line(hcomm_text(*seen));
    if (seen->waiting_peer >= 0)
      box.line(fmt::format("it waits for rank {} of that communicator", seen->waiting_peer));
  }
  const auto& tail = record.tails[rank];
  box.line(tail.empty() ? "it wrote nothing to standard error"
                        : fmt::format("its last lines on standard error ({}):", tail.size()));
  for (const std::string& line : tail) box.line(fmt::format("    {}", cli::printable(line)));
}

// For a job that was stopped, not one that failed: what every rank was at when it was.
void add_states(Box& box, const JobRecord& record) {
  constexpr uint32_t kMost = 16;
  for (uint32_t rank = 0; rank < record.job.size() && rank < kMost; rank++)
    if (const auto& seen = record.states[rank]) {
      const std::string waits =
          seen->waiting_peer < 0 ? "" : fmt::format("; waits for rank {}", seen->waiting_peer);
      box.line(fmt::format("rank {} on {}: {}{}", rank, record.job.host, hcomm_text(*seen), waits));
    }
  if (record.job.size() > kMost) box.line("... see --report for all");
}

void add_failed(Box& box, const JobRecord& record) {
  const Numbers failed = ranks_that(record, has_failed);
  constexpr size_t kMost = 16;
  for (size_t i = 0; i < failed.size() && i < kMost; i++) {
    const RankEnd& end = *record.verdict.end_of(failed[i]);
    box.line(fmt::format("failed by itself: rank {} {} after {:.3f} s", failed[i], end_text(end),
                         seconds_at(record, end)));
  }
  if (failed.size() > kMost)
    box.line(fmt::format("failed by themselves, too: ranks {}",
                         numbers_text({failed.begin() + kMost, failed.end()})));
  const Numbers ended = ranks_that(record, was_ended);
  if (!ended.empty())
    box.line(fmt::format("ended by hcc-launch: rank{} {}", ended.size() == 1 ? "" : "s",
                         numbers_text(ended)));
}

std::string cause_text(const JobRecord& record) {
  const Verdict& verdict = record.verdict;
  switch (verdict.cause()) {
    case Cause::timeout:
      return fmt::format("the time limit of {} was reached",
                         seconds_text(record.options.timeout_ms));
    case Cause::user_signal:
      return fmt::format("the job was ended by {}", signal_text(verdict.detail()));
    case Cause::left_before_init:
      return fmt::format(
          "rank {} left before init: it exited with code 0 and never joined, the others waited for "
          "it in init",
          verdict.detail());
    case Cause::start_failed:
    case Cause::launcher_failed:
      return record.start_error;
    case Cause::none:
    case Cause::rank_failed:
      break;
  }
  return record.output_error;
}

// Not known from what was said before.
bool is_news(const JobRecord& record) {
  const Cause cause = record.verdict.cause();
  return cause == Cause::timeout || cause == Cause::user_signal || cause == Cause::left_before_init;
}

std::string_view state_name(const JobRecord& record, uint32_t rank) {
  const auto& end = record.verdict.end_of(rank);
  if (!end) return record.pids[rank] < 0 ? "not started" : "lost";
  if (record.verdict.ended_by_launcher(rank)) return "ended";
  return end->good() ? "ok" : "failed";
}

cli::Json operation_json(const trace::OpSnapshot& op) {
  cli::Json json;
  json["text"] = operation_text(op);
  json["sequence"] = op.sequence;
  json["count"] = op.count;
  const bool known = op.type < kTypes;
  const auto type = static_cast<Type>(op.type);
  json["type"] = known ? cli::Json(name(type)) : cli::Json(nullptr);
  json["bytes"] = known ? cli::Json(op.count * size_of(type)) : cli::Json(nullptr);
  json["complete"] = op.state == trace::OpState::done;
  json["begin_s"] = op.begin_us / 1e6;
  return json;
}

cli::Json rank_json(const JobRecord& record, uint32_t rank) {
  cli::Json json;
  const RankPlan& plan = record.job.ranks[rank];
  const auto& end = record.verdict.end_of(rank);
  json["rank"] = rank;
  json["host"] = record.job.host;
  json["pid"] = record.pids[rank] < 0 ? cli::Json(nullptr) : cli::Json(record.pids[rank]);
  json["argv"] = plan.argv;
  json["cores"] = plan.cores.empty() ? cli::Json(nullptr) : cli::Json(numbers_text(plan.cores));
  json["state"] = state_name(record, rank);
  const bool exited = end && end->signal == 0, killed = end && end->signal != 0;
  json["exit_code"] = exited ? cli::Json(end->code) : cli::Json(nullptr);
  json["signal"] = killed ? cli::Json(end->signal) : cli::Json(nullptr);
  json["signal_name"] = killed ? cli::Json(signal_text(end->signal)) : cli::Json(nullptr);
  json["core_dumped"] = end && end->dumped_core;
  const std::string core = end ? core_of(record, rank, *end).path : "";
  json["core_file"] = core.empty() ? cli::Json(nullptr) : cli::Json(core);
  json["duration_s"] = end ? cli::Json(seconds_at(record, *end)) : cli::Json(nullptr);
  const auto& seen = record.states[rank];
  const bool has_operation = seen && !seen->last.empty();
  json["last_operation"] = has_operation ? operation_json(seen->last[0]) : cli::Json(nullptr);
  json["waits_for_rank"] =
      seen && seen->waiting_peer >= 0 ? cli::Json(seen->waiting_peer) : cli::Json(nullptr);
  json["stderr_tail"] = record.tails[rank];
  return json;
}

}  // namespace

std::string seconds_text(int64_t ms) {
  return fmt::format("{:g} s", static_cast<double>(ms) / 1000);
}

std::string failure_box(const JobRecord& record, const cli::Painter& painter) {
  Box box(painter);
  if (const auto first = record.verdict.first_failure()) {
    add_first(box, record, *first);
    if (is_news(record)) box.line(cause_text(record));
  } else if (is_news(record)) {
    box.title(fmt::format("hcc-launch: {}", cause_text(record)));
    add_states(box, record);
  } else {
    return {};
  }
  add_failed(box, record);
  return box.take();
}

std::string failure_line(const JobRecord& record) {
  if (const auto first = record.verdict.first_failure())
    return fmt::format("hcc-launch: rank {} (pid {}) {}\n", *first, record.pids[*first],
                       end_text(*record.verdict.end_of(*first)));
  return is_news(record) ? fmt::format("hcc-launch: {}\n", cause_text(record)) : std::string();
}

std::string json_report(const JobRecord& record) {
  cli::Json json = cli::document("hcomm.launch.report", 1);
  json["job"] = record.job.id;
  json["host"] = record.job.host;
  json["ranks_count"] = record.job.size();
  json["start"] = utc_text(record.start_wall_ns);
  json["duration_s"] = static_cast<double>(now_ns() - record.start_ns) / 1e9;
  json["exit_code"] = record.exit_code;
  const std::string cause = cause_text(record);
  json["cause"] = cause.empty() ? cli::Json(nullptr) : cli::Json(cause);
  const auto first = record.verdict.first_failure();
  json["first_failure"] = first ? cli::Json(*first) : cli::Json(nullptr);
  json["failed_ranks"] = ranks_that(record, has_failed);
  json["ended_ranks"] = ranks_that(record, was_ended);
  json["ranks"] = cli::Json::array();
  for (uint32_t rank = 0; rank < record.job.size(); rank++)
    json["ranks"].push_back(rank_json(record, rank));
  return cli::json_pretty(json);
}

}  // namespace hcomm::launch
