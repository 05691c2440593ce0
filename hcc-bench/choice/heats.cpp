// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/heats.h"

#include <algorithm>

#include "algorithm/algorithm.h"
#include "base/bytes.h"

namespace hcomm::choice {

namespace {

constexpr int kRounds = 3;      // of a heat, and its share of the time of a match
constexpr int64_t kWarmup = 2;  // operations; they are long where there are heats
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

// The fastest of some contenders; nothing where none can run.
std::optional<Forced> winner(Match& match, std::span<const Contender> contenders) {
  uint64_t epoch = 0;
  const Cell cell = match.run(contenders, epoch);
  const auto best =
      std::min_element(cell.rivals.begin(), cell.rivals.end(),
                       [](const Rival& a, const Rival& b) { return time_us(a) < time_us(b); });
  if (best == cell.rivals.end()) return std::nullopt;
  for (const Contender& contender : contenders)
    if (contender.forced().actions() == best->actions) return contender.forced();
  return std::nullopt;
}

}  // namespace

std::vector<Contender> finalists(bench::Session& session, const bench::Sweep& sweep,
                                 const bench::Buffers& buffers, size_t bytes) {
  const schedule::Collective collective = *collective_of(sweep.operation);
  bench::Options quick = session.options;
  quick.check = "off";  // those who win are checked
  if (quick.rules.warmup < 0) quick.rules.warmup = kWarmup;
  quick.rounds = std::min(kRounds, quick.rounds);
  quick.rules.min_time_s *= static_cast<double>(quick.rounds) / session.options.rounds;
  bench::Session of_heats{session.world, quick, session.watchdog, session.stop_signal, {}};
  Match match(of_heats, sweep, buffers, bytes);
  std::vector<Contender> list;
  list.emplace_back(session.world, collective, Forced{});
  for (const algorithm::Algorithm& each : algorithm::all()) {
    if (each.collective != collective) continue;
    std::vector<Contender> heat;
    for (Forced& forced : variants(each.name, match.block_bytes()))
      heat.emplace_back(session.world, collective, std::move(forced));
    if (heat.size() == 1) {
      list.push_back(std::move(heat[0]));
      continue;
    }
    if (auto best = winner(match, heat))
      list.emplace_back(session.world, collective, std::move(*best));
    if (match.interrupted()) break;
  }
  return list;
}

}  // namespace hcomm::choice
