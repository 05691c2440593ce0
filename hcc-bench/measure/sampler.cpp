// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/measure/sampler.h"

#include <algorithm>
#include <cmath>

#include "hcc-bench/measure/statistics.h"

namespace hcomm::bench {

namespace {

constexpr int64_t kMostBatch = 20'000, kMostSamples = 1'000'000, kMostRun = 256;
constexpr double kRunSeconds = 0.02;  // batches between two exchanges
constexpr double kLeastSeconds = 1e-9;

class Sampler {
 public:
  Sampler(Team& team, const Clock& clock, const Rules& rules, const Subject& subject)
      : team_(team), clock_(clock), rules_(rules), subject_(subject) {}

  Samples run(const std::atomic<int>& stop_signal) {
    const double estimate_s = warm_up();
    Samples result;
    result.batch = batch_for(estimate_s);
    const int64_t least = estimate_s > 0.3 ? 3 : estimate_s > 0.05 ? 5 : 10;
    const int64_t most = rules_.samples > 0 ? rules_.samples : kMostSamples;
    const int64_t start_ns = clock_.read_ns();
    double elapsed_s = 0;
    for (int64_t count = 2;;) {
      const auto taken = static_cast<int64_t>(result.seconds.size());
      count = std::min(count, most - taken);
      std::vector<double> times;
      for (int64_t i = 0; i < count; i++) times.push_back(batch(result.batch) / subject_.passes);
      times.push_back(static_cast<double>(clock_.read_ns() - start_ns) * 1e-9);
      times.push_back(stop_signal.load(std::memory_order_relaxed) != 0 ? 1 : 0);
      team_.maximum(times);
      result.interrupted = times.back() > 0.5;
      times.pop_back();
      const double run_s = std::max(times.back() - elapsed_s, kLeastSeconds);
      elapsed_s = times.back();
      times.pop_back();
      result.seconds.insert(result.seconds.end(), times.begin(), times.end());
      if (finished(result, elapsed_s, least, most)) return result;
      count = next_run(count, run_s);
    }
  }

 private:
  double batch(int64_t count) {
    team_.barrier();
    const int64_t start_ns = clock_.read_ns();
    subject_.repeat(count);
    const int64_t end_ns = clock_.read_ns();
    if (subject_.after_batch) subject_.after_batch();
    return static_cast<double>(end_ns - start_ns) * 1e-9 / static_cast<double>(count);
  }

  double agreed_batch(int64_t count) {
    double seconds = batch(count);
    team_.maximum({&seconds, 1});
    return std::max(seconds, kLeastSeconds);
  }

  // Runs what the rules ask before the first sample; what an operation takes, on the slowest rank.
  // The median of the rounds: the least would make batches of seconds on a machine that is busy
  // elsewhere, the mean would follow one hiccup.
  double warm_up() {
    if (rules_.warmup > 0) subject_.repeat(rules_.warmup);
    const double first_s = agreed_batch(1);
    if (rules_.warmup >= 0 || first_s >= 0.02) return first_s;
    double last_s = first_s;
    std::vector<double> rounds;
    for (int round = 0; round < 6; round++) {  // of 5 ms
      const auto count =
          std::clamp<int64_t>(static_cast<int64_t>(0.005 / last_s), 1, round == 0 ? 200 : 2000);
      last_s = agreed_batch(count);
      rounds.push_back(last_s);
    }
    return statistics(rounds).median;
  }

  int64_t batch_for(double estimate_s) const {
    if (rules_.batch > 0) return rules_.batch;
    if (estimate_s >= rules_.target_s) return 1;
    return std::min(kMostBatch, static_cast<int64_t>(rules_.target_s / estimate_s) + 1);
  }

  // Batches of the next run, from what the last one took: by the clock, not by the estimate, so
  // that a machine that is busy elsewhere still exchanges, and can be stopped, several times a
  // second.
  static int64_t next_run(int64_t count, double run_s) {
    const double fitting = static_cast<double>(count) * kRunSeconds / run_s;
    const double most = static_cast<double>(std::min(2 * count, kMostRun));
    return static_cast<int64_t>(std::clamp(fitting, 1.0, most));
  }

  bool finished(Samples& result, double elapsed_s, int64_t least, int64_t most) const {
    const auto taken = static_cast<int64_t>(result.seconds.size());
    if (taken >= most) {
      result.settled = true;
      return true;
    }
    if (result.interrupted) return true;
    if (rules_.samples > 0 || taken < least) return false;
    const bool quiet = statistics(result.seconds).noise <= rules_.max_noise;
    result.settled = quiet;
    return elapsed_s >= rules_.max_time_s || (elapsed_s >= rules_.min_time_s && quiet);
  }

  Team& team_;
  const Clock& clock_;
  const Rules& rules_;
  const Subject& subject_;
};

}  // namespace

Samples sample(Team& team, const Clock& clock, const Rules& rules, const Subject& subject,
               const std::atomic<int>& stop_signal) {
  return Sampler(team, clock, rules, subject).run(stop_signal);
}

}  // namespace hcomm::bench
