// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/match.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/thread.h"
#include "cli/terminal.h"
#include "hcc-bench/call.h"
#include "hcc-bench/measure/statistics.h"

namespace hcomm::choice {

using bench::Task;

Match::Match(bench::Session& session, const bench::Sweep& sweep, const bench::Buffers& buffers,
             size_t bytes)
    : session_(session), sweep_(sweep), bytes_(bytes) {
  const int rank = session.world.rank(), ranks = session.world.ranks();
  at_root_ = buffers.task(sweep, bytes, {rank, ranks, rank});
  other_ = ranks > 1 ? buffers.task(sweep, bytes, {rank, ranks, (rank + 1) % ranks}) : at_root_;
}

const Task& Match::task(int root) {
  Task& chosen = root == session_.world.rank() ? at_root_ : other_;
  chosen.place.root = root;
  return chosen;
}

int Match::next_root() {
  if (sweep_.root != bench::kRootRotate) return sweep_.root;
  const int root = turn_;
  turn_ = (turn_ + 1) % session_.world.ranks();
  return root;
}

void Match::once(const Entry& entry, int root) {
  const Task& t = task(root);
  bench::Call call{};
  call.operation = sweep_.operation;
  call.send = t.send;
  call.recv = t.recv;
  call.type = static_cast<hcommDataType_t>(sweep_.type);
  call.redop = sweep_.redop ? static_cast<hcommRedOp_t>(*sweep_.redop) : hcommSum;
  call.comm = entry.contender->comm();
  bench::require(bench::run(call, t.layout, t.place), call.comm, entry.rival.plan);
  session_.watchdog.step();
}

void Match::check(Entry& entry, uint64_t epoch) {
  bench::World& world = session_.world;
  const bench::Pattern pattern(sweep_.type, sweep_.redop, world.ranks(), epoch);
  const int root = next_root();
  bench::prepare(task(root), pattern);
  once(entry, root);
  const bench::Verdict verdict = bench::verify(task(root), pattern);
  if (verdict.wrong > 0)
    cli::complain(fmt::format("hcc-bench: rank {}: {} {} by {}: {}; {} wrong", world.rank(),
                              bench::info(sweep_.operation).name, size_text(bytes_),
                              entry.rival.plan, verdict.text, verdict.wrong));
  entry.rival.wrong = world.sum(verdict.wrong);
}

void Match::turn(Entry& entry) {
  bench::World& world = session_.world;
  const auto repeat = [&](int64_t count) {
    for (int64_t i = 0; i < count; i++) once(entry, next_root());
  };
  bench::Rules rules = session_.options.rules;
  rules.target_s = world.local_ranks() > static_cast<int>(usable_cores()) ? 1e-3 : 2e-4;
  rules.min_time_s /= session_.options.rounds;
  rules.max_time_s = rules.min_time_s;  // the turns are equally long, whatever their noise
  if (entry.batch > 0) {                // warm: what the others have cooled in between
    rules.warmup = entry.batch;
    rules.batch = entry.batch;
  }
  const bench::Samples samples =
      bench::sample(world, bench::MonotonicClock{}, rules, {repeat, {}, 1}, session_.stop_signal);
  entry.batch = samples.batch;
  interrupted_ = samples.interrupted;
  entry.rival.turns_us.push_back(bench::statistics(samples.seconds).median * 1e6);
}

Cell Match::run(std::span<const Contender> contenders, uint64_t& epoch) {
  Cell cell{sweep_.series(session_.world.ranks()), at_root_.layout.bytes, {}};
  const auto where = [&](const Entry& entry, std::string_view phase) {
    session_.watchdog.at(fmt::format("{} {} by {}, {}", bench::info(sweep_.operation).name,
                                     size_text(bytes_), entry.rival.plan, phase),
                         bytes_);
  };
  std::vector<Entry> entries;
  for (const Contender& contender : contenders) {
    std::string plan = contender.plan(sweep_, at_root_.layout.count);
    const Forced& forced = contender.forced();
    if (!forced.runs(plan)) continue;
    entries.push_back(
        {&contender, {forced.algorithm, forced.actions(), std::move(plan), {}, 0}, 0});
  }
  for (Entry& entry : entries) {
    where(entry, "checking");
    if (session_.options.check != "off") check(entry, ++epoch);
  }
  for (int round = 0; round < session_.options.rounds && !interrupted_; round++)
    for (size_t i = 0; i < entries.size() && !interrupted_; i++) {
      Entry& entry = entries[(i + static_cast<size_t>(round)) % entries.size()];
      where(entry, "timing");
      turn(entry);
    }
  for (Entry& entry : entries) cell.rivals.push_back(std::move(entry.rival));
  return cell;
}

}  // namespace hcomm::choice
