// SPDX-License-Identifier: Apache-2.0
// train: hcc-launch -n 4 train --epochs 3
#include <cinttypes>
#include <cstdio>
#include <exception>

#include "trainer.h"

namespace {

using namespace train;

void run(const Options& options) {
  hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
  config.deterministic = options.deterministic;
  hcomm::Communicator world = hcomm::Communicator::world(&config);
  Trainer trainer(world, options);
  const bool speaks = world.rank() == 0;
  if (speaks)
    std::printf("784-128-10 on %zu images, %d rank%s, batch %zu, rate %g, seed %" PRIu64
                "\nepoch    loss  accuracy   images/s  communication\n",
                trainer.images(), world.size(), world.size() == 1 ? "" : "s", options.batch,
                static_cast<double>(options.rate), options.seed);
  for (int epoch = 1; epoch <= options.epochs; epoch++) {
    const EpochReport report = trainer.epoch();
    if (!speaks) continue;
    std::printf("%5d  %6.4f   %5.2f %%  %9.0f         %4.1f %%\n", epoch, report.loss,
                report.accuracy * 100, report.images_per_s, report.communication * 100);
    std::fflush(stdout);
  }
  const uint64_t hash = trainer.hash();
  if (speaks) std::printf("weights %016" PRIx64 "\n", hash);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return 1;
  }
  return 0;
}
