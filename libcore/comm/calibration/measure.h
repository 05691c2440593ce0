// SPDX-License-Identifier: Apache-2.0
// Measures what the cost model needs: one pair of ranks the messages between them, one rank its own
// kernels. Called by calibrate() alone. Nothing waits longer than it was told: what was not
// measured by then is not known.
#pragma once

#include <cstdint>
#include <optional>

#include "schedule/cost.h"
#include "transport/transport.h"

namespace hcomm::comm {

// What a rank's own processor does: gamma.
struct Work {
  double copy_us_per_byte = 0, reduce_us_per_byte = 0;
};

// At most so many rounds, and so long, of each of the parts: small messages, large ones, kernels.
struct Effort {
  int64_t small_rounds, large_rounds, part_ns;
};
inline constexpr Effort kQuick{64, 4, 25'000'000};
inline constexpr Effort kThorough{4096, 128, 25'000'000};

// One end of a ping-pong. The first one measures, and says with each message whether another one
// follows; the second one answers as long as it is told to.
struct PairEnd {
  transport::Channel& channel;
  bool crowded;      // yield instead of spin
  int64_t start_ns;  // of the calibration
};
// Microseconds one way for a small message, per byte, and of a processor's time. Nothing: it took
// too long, or failed.
std::optional<schedule::Link> measure_pair(const PairEnd& end, const Effort& effort);
void answer_pair(const PairEnd& end);

Work measure_work(const Effort& effort);

// Whether a number can be one that was measured: finite, and of something that exists.
bool plausible(const schedule::Link& link);
bool plausible(const Work& work);

}  // namespace hcomm::comm
