// SPDX-License-Identifier: Apache-2.0
// hcc plan: which algorithm a collective would use, why, what it would cost; and the schedule
// itself, proved, printed or drawn. Runs nothing: the same pure functions that a communicator
// calls, over a machine of nominal numbers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "base/thread.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "datatype/types.h"
#include "policy/policy.h"
#include "schedule/check.h"
#include "schedule/dump.h"

namespace hcomm::cli {

namespace {

using schedule::Collective;
using schedule::Schedule;

constexpr int64_t kMostRanks = 1024;

std::string collective_names() {
  std::string names;
  for (int i = 0; i < schedule::kCollectives; i++) {
    if (i > 0) names += '|';
    names += schedule::name(static_cast<Collective>(i));
  }
  return names;
}

class Plan : public Command {
 public:
  std::string_view name() const override { return "plan"; }
  std::string_view summary() const override {
    return "which algorithm a collective would use, why, at what cost; its schedule";
  }

  void describe(CLI::App& app) override {
    set_page(app, {.usage = "hcc plan COLLECTIVE --ranks N [--size SIZE] [OPTION]...",
                   .examples = {{"hcc plan allreduce --ranks 8 --size 1M", ""},
                                {"hcc plan allreduce --ranks 24 --algo ring --check", ""},
                                {"hcc plan broadcast --ranks 4 --dot | dot -Tsvg > b.svg", ""}},
                   .environment = "HCOMM_ALGO, HCOMM_POLICY, HCOMM_TILE, HCOMM_WINDOW and "
                                  "HCOMM_DETERMINISTIC count as they would in a communicator.",
                   .exits = "0 done; 1 --check found a fault; 2 usage; 3 cannot run so",
                   .see_also = "hcomm(7), policy.conf(5)"});
    describe_shape(app);
    describe_output(app);
  }

  int run() override {
    const policy::Request request = make_request();
    const policy::Inputs inputs = make_inputs();
    const policy::Plan plan = policy::choose(inputs, request);
    if (dot_) {
      fmt::print("{}", schedule::dump_dot(all_ranks(plan)));
      return kDone;
    }
    if (json_)
      fmt::print("{}", json_pretty(plan_json(request, plan)));
    else
      fmt::print("{}", policy::explain(inputs, request, plan));
    if (cost_) fmt::print("\n{}", cost_text(plan));
    if (dump_) print_dump(plan);
    return check_ ? print_check(plan) : kDone;
  }

 private:
  void describe_shape(CLI::App& app) {
    static const std::string kGroup = "What";
    add_value(app, {"collective", collective_names(), "the collective", kGroup},
              [this](const std::string& text) {
                const auto found = policy::collective_named(text);
                if (!found)
                  fail(Code::invalid_argument, "unknown collective '{}'{}", text,
                       did_you_mean(text, CLI::detail::split(collective_names(), '|')));
                collective_ = *found;
              })
        ->required();
    add_value(app, {"--ranks", "N", "number of ranks", kGroup}, [this](const std::string& text) {
      ranks_ = static_cast<uint32_t>(parse_number(text, 1, kMostRanks));
    })->required();
    add_value(app, {"--size", "SIZE", "of the message, as hcc-bench counts (default 1M)", kGroup},
              [this](const std::string& text) { bytes_ = parse_size(text); });
    add_value(app, {"--ppn", "N", "ranks of a node (default: all)", kGroup},
              [this](const std::string& text) {
                ppn_ = static_cast<uint32_t>(parse_number(text, 1, kMostRanks));
              });
    add_value(app, {"--cores", "N", "cores of a node (default: those of this one)", kGroup},
              [this](const std::string& text) {
                cores_ = static_cast<uint32_t>(parse_number(text, 1, kMostRanks));
              });
    add_value(app, {"--dtype", "TYPE", "element type (default float32)", kGroup},
              [this](const std::string& text) {
                if (!type_named(text)) fail(Code::invalid_argument, "unknown type '{}'", text);
                dtype_ = text;
              });
    add_value(app, {"--root", "N", "root (default 0)", kGroup}, [this](const std::string& text) {
      root_ = static_cast<uint32_t>(parse_number(text, 0, kMostRanks - 1));
    });
    add_value(app, {"--algo", "NAME", "this algorithm instead of the one chosen", kGroup},
              [this](const std::string& text) { algorithm_ = text; });
    add_switch(app, {"--deterministic", "", "reductions as a left fold in rank order", kGroup},
               deterministic_);
  }

  void describe_output(CLI::App& app) {
    static const std::string kGroup = "What is shown besides the choice";
    auto* check =
        add_switch(app, {"--check", "", "prove the schedules of all ranks", kGroup}, check_);
    auto* cost = add_switch(
        app, {"--cost", "", "every candidate with tile, window and predicted time", kGroup}, cost_);
    auto* dump = add_switch(app, {"--dump", "", "the schedule of each rank", kGroup}, dump_);
    add_value(app, {"--rank", "N", "with --dump: of this rank only", kGroup},
              [this](const std::string& text) { only_rank_ = parse_number(text, 0, kMostRanks); })
        ->needs(dump);
    auto* dot = add_switch(
        app, {"--dot", "", "only the schedules of all ranks, as a Graphviz graph", kGroup}, dot_);
    auto* json =
        add_switch(app, {"--json", "", "the choice and every candidate, as JSON", kGroup}, json_);
    for (CLI::Option* other : {check, cost, dump, json}) dot->excludes(other);
    for (CLI::Option* other : {cost, dump}) json->excludes(other);
  }

  policy::Request make_request() const {
    if (root_ >= ranks_)
      fail(Code::invalid_argument, "--root {}: there are {} ranks", root_, ranks_);
    if (only_rank_ >= static_cast<int64_t>(ranks_))
      fail(Code::invalid_argument, "--rank {}: there are {} ranks", only_rank_, ranks_);
    policy::Request request;
    request.shape.collective = collective_;
    request.shape.ranks = ranks_;
    request.shape.root = root_;
    request.block_bytes = 1;
    const uint64_t blocks = policy::message_bytes(request);  // of the larger buffer
    request.block_bytes = bytes_ / std::max<uint64_t>(1, blocks);
    request.dtype = dtype_;
    return request;
  }

  policy::Inputs make_inputs() const {
    Config config = Config::from_env();
    if (!algorithm_.empty())
      config.algorithm = fmt::format("{}={}", schedule::name(collective_), algorithm_);
    config.deterministic = config.deterministic || deterministic_;
    const uint32_t ppn = ppn_ == 0 ? ranks_ : ppn_;
    const uint32_t cores = cores_ == 0 ? usable_cores() : cores_;
    policy::Inputs inputs =
        policy::inputs_from(config, policy::default_machine(ranks_, ppn, cores));
    if (ppn >= ranks_) inputs.link = "shm";
    return inputs;
  }

  static std::vector<Schedule> build(const policy::Plan& plan, schedule::Shape shape) {
    return algorithm::build_all(*plan.chosen.algorithm, shape);
  }
  std::vector<Schedule> all_ranks(const policy::Plan& plan) const {
    return build(plan, make_request().shape);
  }

  static std::string cost_text(const policy::Plan& plan) {
    std::vector<policy::Candidate> order = plan.candidates;
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.predicted_us < b.predicted_us; });
    Table table({{"predicted us", Align::right}, {"candidate"}, {"source of the method"}});
    for (const policy::Candidate& each : order)
      table.add({number_text(each.predicted_us), policy::text(each),
                 std::string(each.algorithm->source)});
    return table.text();
  }

  Json plan_json(const policy::Request& request, const policy::Plan& plan) const {
    const auto candidate = [](const policy::Candidate& each) {
      return Json{{"algorithm", each.algorithm->name},
                  {"tile_bytes", each.tile_bytes},
                  {"window", each.window},
                  {"predicted_us", each.predicted_us}};
    };
    Json json = document("hcc-plan", 1);
    json["collective"] = schedule::name(collective_);
    json["ranks"] = ranks_;
    json["bytes"] = policy::message_bytes(request);
    json["dtype"] = dtype_;
    json["root"] = schedule::rooted(collective_) ? Json(root_) : Json(nullptr);
    json["chosen"] = candidate(plan.chosen);
    json["reason"] = plan.reason;
    json["notes"] = plan.notes;
    json["candidates"] = Json::array();
    for (const policy::Candidate& each : plan.candidates)
      json["candidates"].push_back(candidate(each));
    return json;
  }

  void print_dump(const policy::Plan& plan) const {
    for (const Schedule& schedule : all_ranks(plan))
      if (only_rank_ < 0 || only_rank_ == static_cast<int64_t>(schedule.shape.rank))
        fmt::print("\n{}", schedule::dump(schedule));
  }

  int print_check(const policy::Plan& plan) const {
    const schedule::Report report = schedule::check(all_ranks(plan));
    const std::string text =
        report.ok ? fmt::format(
                        "check: {} steps of {} ranks are right: messages match, no deadlock, "
                        "no race, the result is the collective's",
                        report.steps, ranks_)
                  : fmt::format("check: WRONG: {}", report.finding);
    if (json_)
      complain(text);
    else
      fmt::print("\n{}\n", text);
    return report.ok ? kDone : kProblem;
  }

  Collective collective_ = Collective::all_reduce;
  uint32_t ranks_ = 1, ppn_ = 0, cores_ = 0, root_ = 0;
  size_t bytes_ = kMiB;
  std::string dtype_ = "float32", algorithm_;
  int64_t only_rank_ = -1;
  bool deterministic_ = false, check_ = false, cost_ = false, dump_ = false, dot_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan() {
  return std::make_unique<Plan>();
}

}  // namespace hcomm::cli
