// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/heats.h"

#include <algorithm>

#include "algorithm/algorithm.h"
#include "base/bytes.h"

namespace hcomm::choice {

namespace {

// A heat has two parts: a look at all, and turns of those that have not fallen far behind.
struct Part {
  int rounds;
  int64_t samples;  // of a turn
};
constexpr Part kLook{1, 2}, kTurns{3, 3};
constexpr double kBehind = 1.3;  // of the best one's time
constexpr int64_t kWarmup = 2;   // operations; they are long where there are heats
constexpr uint64_t kTiles[] = {128 * kKiB, 512 * kKiB, 2 * kMiB, 8 * kMiB};
constexpr uint32_t kWindows[] = {1, 2, 4};

// All tiles and windows of an algorithm for a block of so many bytes. Where it is too small for any
// tile there is nothing to be said of them.
std::vector<Forced> variants(std::string_view algorithm, size_t block_bytes) {
  std::vector<Forced> list{{.algorithm = std::string(algorithm)}};
  for (const uint64_t tile : kTiles) {
    if (tile >= block_bytes) break;
    list[0].tile_bytes = 0;
    for (const uint32_t window : kWindows) list.push_back({std::string(algorithm), tile, window});
  }
  return list;
}

class Heat {
 public:
  Heat(bench::Session& session, const bench::Sweep& sweep, const bench::Buffers& buffers,
       size_t bytes)
      : session_(session), sweep_(sweep), buffers_(buffers), bytes_(bytes) {}

  // The fastest; nothing where none can run.
  std::optional<Forced> winner(std::vector<Contender> contenders) {
    std::vector<Rival> rivals = run(kLook, contenders);
    if (rivals.empty()) return std::nullopt;
    const double limit_us = kBehind * time_us(best_of(rivals));
    std::erase_if(rivals, [&](const Rival& rival) { return time_us(rival) > limit_us; });
    std::erase_if(contenders, [&](const Contender& contender) {
      return std::none_of(rivals.begin(), rivals.end(), [&](const Rival& rival) {
        return rival.actions == contender.forced().actions();
      });
    });
    if (contenders.size() > 1) rivals = run(kTurns, contenders);
    for (const Contender& contender : contenders)
      if (contender.forced().actions() == best_of(rivals).actions) return contender.forced();
    return std::nullopt;
  }
  bool interrupted() const { return interrupted_; }

 private:
  static const Rival& best_of(const std::vector<Rival>& rivals) {
    return *std::min_element(rivals.begin(), rivals.end(), [](const Rival& a, const Rival& b) {
      return time_us(a) < time_us(b);
    });
  }

  std::vector<Rival> run(const Part& part, std::span<const Contender> contenders) {
    bench::Options options = session_.options;
    options.check = "off";  // those who win are checked
    options.rounds = part.rounds;
    options.rules.samples = part.samples;
    if (options.rules.warmup < 0) options.rules.warmup = kWarmup;
    bench::Session session{session_.world, options, session_.watchdog, session_.stop_signal, {}};
    Match match(session, sweep_, buffers_, bytes_);
    uint64_t epoch = 0;
    Cell cell = match.run(contenders, epoch);
    interrupted_ = match.interrupted();
    return std::move(cell.rivals);
  }

  bench::Session& session_;
  const bench::Sweep& sweep_;
  const bench::Buffers& buffers_;
  size_t bytes_;
  bool interrupted_ = false;
};

}  // namespace

std::vector<Contender> finalists(bench::Session& session, const bench::Sweep& sweep,
                                 const bench::Buffers& buffers, size_t bytes) {
  const schedule::Collective collective = *collective_of(sweep.operation);
  const size_t block_bytes = Match(session, sweep, buffers, bytes).block_bytes();
  Heat heat(session, sweep, buffers, bytes);
  std::vector<Contender> list;
  list.emplace_back(session.world, collective, Forced{});
  for (const algorithm::Algorithm& each : algorithm::all()) {
    if (each.collective != collective) continue;
    std::vector<Contender> all;
    for (Forced& forced : variants(each.name, block_bytes))
      all.emplace_back(session.world, collective, std::move(forced));
    if (all.size() == 1)
      list.push_back(std::move(all[0]));
    else if (auto best = heat.winner(std::move(all)))
      list.emplace_back(session.world, collective, std::move(*best));
    if (heat.interrupted()) break;
  }
  return list;
}

}  // namespace hcomm::choice
