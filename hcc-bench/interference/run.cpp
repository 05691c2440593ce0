// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/interference/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "hcc-bench/interference/report.h"
#include "hcc-bench/overlap/motion.h"
#include "hcc-bench/report/facts.h"

namespace hcomm::bench::interference {

namespace {

constexpr int64_t kBlock = 20;  // samples of a turn
// Ranks that share a core leave it to one another between two operations.
constexpr auto kNap = std::chrono::microseconds(20);

struct Session {
  World& world;
  const Options& options;
  Watchdog& watchdog;
  const std::atomic<int>& stop_signal;
  bool interrupted = false;
};

struct Priorities {
  std::string_view name;
  int operation, load;
};
constexpr Priorities kPriorities[] = {{"ordered", 1, 0}, {"equal", 1, 1}};

class Virtual {
 public:
  Virtual(const World& world, const char* name, int priority) {
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.priority = priority;
    require(hcommCommVirtual(world.comm(), name, &comm_, &config), world.comm(),
            "make a virtual communicator");
  }
  Virtual(const Virtual&) = delete;
  Virtual& operator=(const Virtual&) = delete;
  ~Virtual() { hcommCommDestroy(comm_); }
  hcommComm_t get() const { return comm_; }

 private:
  hcommComm_t comm_ = nullptr;
};

Call call_of(const Task& task, hcommComm_t comm) {
  return {task.operation, task.send, task.recv, hcommFloat32, hcommSum, comm};
}

// An operation that is always under way on this rank while it is kept up.
class Load {
 public:
  Load(const Task& task, hcommComm_t comm)
      : motion_(overlap::make_motion("plan", call_of(task, comm), task.layout, task.place)) {}

  void keep_up() {
    if (!motion_->done()) return motion_->progress();
    if (started_ > 0) motion_->wait();
    motion_->start();
    started_++;
  }
  // Ends it, on all ranks after the same number, which is told.
  double settle(World& world) {
    const double most = world.maximum(static_cast<double>(started_));
    for (; static_cast<double>(started_) < most; started_++) {
      motion_->wait();
      motion_->start();
    }
    if (most > 0) motion_->wait();
    started_ = 0;
    return most;
  }

 private:
  std::unique_ptr<overlap::Motion> motion_;
  uint64_t started_ = 0;
};

// One size with one choice of priorities.
class Point {
 public:
  Point(Session& session, const Task& task, const Task& load_task, const Priorities& priorities)
      : session_(session),
        world_(session.world),
        task_(task),
        load_task_(load_task),
        priorities_(priorities),
        forward_(world_, "forward", priorities.operation),
        backward_(world_, "backward", priorities.load),
        load_(load_task, backward_.get()) {}

  Row run(uint64_t& epoch) {
    session_.watchdog.at(fmt::format("interference, {} {}, {}", name(),
                                     size_text(task_.layout.bytes), priorities_.name),
                         load_task_.layout.bytes);
    std::vector<double> alone, loaded;
    double loads = 0, loads_s = 0;
    while (static_cast<int64_t>(loaded.size()) < session_.options.samples &&
           !session_.interrupted) {
      const Pattern pattern = pattern_of(task_, ++epoch),
                    load_pattern = pattern_of(load_task_, epoch);
      prepare(task_, pattern);
      prepare(load_task_, load_pattern);
      world_.barrier();
      take(alone, [] {});
      const int64_t start_ns = now_ns();
      take(loaded, [&] { load_.keep_up(); });
      loads += load_.settle(world_);
      loads_s += static_cast<double>(now_ns() - start_ns) * 1e-9;
      judge(task_, pattern);
      judge(load_task_, load_pattern);
      session_.interrupted =
          world_.maximum(session_.stop_signal.load(std::memory_order_relaxed)) != 0;
    }
    return {.operation = std::string(name()),
            .priorities = std::string(priorities_.name),
            .ranks = world_.ranks(),
            .bytes = task_.layout.bytes,
            .load_bytes = load_task_.layout.bytes,
            .alone = statistics(alone),
            .loaded = statistics(loaded),
            .loads_per_s = loads / loads_s,
            .wrong = world_.sum(wrong_)};
  }

 private:
  std::string_view name() const { return info(task_.operation).name; }

  Pattern pattern_of(const Task& task, uint64_t epoch) const {
    const bool reduces = info(task.operation).reduces;
    return {Type::float32, reduces ? std::optional(Op::sum) : std::nullopt, world_.ranks(), epoch};
  }

  // Some operations; before each, `meanwhile` is called for a time.
  void take(std::vector<double>& samples, const std::function<void()>& meanwhile) {
    const Call call = call_of(task_, forward_.get());
    std::vector<double> block;
    for (int64_t i = 0; i < kBlock; i++) {
      const int64_t next_ns = now_ns() + session_.options.every_ns;
      do {
        meanwhile();
        session_.watchdog.step();
        std::this_thread::sleep_for(kNap);
      } while (now_ns() < next_ns);
      const int64_t start_ns = now_ns();
      require(bench::run(call, task_.layout, task_.place), call.comm, name());
      block.push_back(static_cast<double>(now_ns() - start_ns) * 1e-9);
      session_.watchdog.step();
    }
    world_.maximum(block);
    samples.insert(samples.end(), block.begin(), block.end());
  }

  void judge(const Task& task, const Pattern& pattern) {
    const Verdict verdict = verify(task, pattern);
    if (verdict.wrong > 0 && wrong_ == 0)
      cli::complain(fmt::format("hcc-bench: rank {}: {} {}: {}; {} wrong", world_.rank(),
                                info(task.operation).name, size_text(task.layout.bytes),
                                verdict.text, verdict.wrong));
    wrong_ += verdict.wrong;
  }

  Session& session_;
  World& world_;
  const Task &task_, &load_task_;
  const Priorities& priorities_;
  Virtual forward_, backward_;
  Load load_;
  uint64_t wrong_ = 0;  // elements of this rank
};

Sweep sweep_of(Operation operation, std::vector<size_t> sizes) {
  return {.operation = operation,
          .redop = info(operation).reduces ? std::optional(Op::sum) : std::nullopt,
          .sizes = std::move(sizes)};
}

Outcome measure(Session& session, const Sweep& sweep, const Sweep& load, Sheet* sheet) {
  World& world = session.world;
  const Place place{world.rank(), world.ranks(), 0};
  const Buffers buffers(capacity({&sweep, 1}, place.rank, place.ranks), "plain");
  const Buffers load_buffers(capacity({&load, 1}, place.rank, place.ranks), "plain");
  const Task load_task = load_buffers.task(load, session.options.load, place);
  Outcome outcome;
  uint64_t epoch = 1;
  for (const size_t bytes : sweep.sizes)
    for (const Priorities& priorities : kPriorities) {
      const Task task = buffers.task(sweep, bytes, place);
      const Row row = Point(session, task, load_task, priorities).run(epoch);
      outcome.wrong += row.wrong;
      outcome.interrupted = session.interrupted;
      if (outcome.interrupted) return outcome;
      if (sheet) sheet->add(entry_of(row));
    }
  return outcome;
}

}  // namespace

Outcome run(World& world, const Options& options, const std::atomic<int>& stop_signal) {
  std::vector<Sweep> sweeps = {sweep_of(options.operation, options.sizes),
                               sweep_of(Operation::all_reduce, {options.load})};
  fit_to_memory(world, sweeps, TooLarge::refuse);
  std::unique_ptr<Sheet> sheet;
  world.on_rank_0([&] {
    sheet = std::make_unique<Sheet>(sheet_plan(options, collect_facts(world, {.check = "all"})));
  });
  const auto give_up = [&](const std::string& reason) {
    if (sheet) sheet->give_up(reason);
  };
  Watchdog watchdog(options.hang_ns, world.rank(), world.ranks(), [&] { give_up("hang"); });
  Session session{world, options, watchdog, stop_signal};
  Outcome outcome;
  try {
    outcome = measure(session, sweeps[0], sweeps[1], sheet.get());
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  }
  if (sheet) sheet->end(outcome.interrupted ? "interrupted" : "");
  watchdog.at("the end", 0);
  return outcome;
}

}  // namespace hcomm::bench::interference
