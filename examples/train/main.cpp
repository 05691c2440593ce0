// SPDX-License-Identifier: Apache-2.0
// train: hcc-launch -n 4 train --epochs 3
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "trainer.h"

namespace {

using namespace train;

std::string shape_of(const Options& options) {
  std::string shape = std::to_string(kInputs) + '-';
  for (const size_t outputs : options.hidden) shape += std::to_string(outputs) + '-';
  return shape + std::to_string(kClasses);
}

void print_epochs(Trainer& trainer, int epochs, bool speaks) {
  if (speaks) std::printf("epoch    loss  accuracy   images/s  communication\n");
  for (int epoch = 1; epoch <= epochs; epoch++) {
    const EpochReport report = trainer.epoch();
    if (!speaks) continue;
    std::printf("%5d  %6.4f   %5.2f %%  %9.0f         %4.1f %%\n", epoch, report.loss,
                report.accuracy * 100, report.images_per_s, report.communication * 100);
    std::fflush(stdout);
  }
}

void run(const Options& options) {
  const std::unique_ptr<Team> team = join_team(options);
  Trainer trainer(*team, options);
  const bool speaks = team->rank() == 0;
  if (speaks)
    std::printf("%s on %zu images, %zu rank%s over %s, batch %zu, rate %g, seed %" PRIu64 "\n",
                shape_of(options).c_str(), trainer.images(), team->size(),
                team->size() == 1 ? "" : "s", std::string(team->library()).c_str(), options.batch,
                static_cast<double>(options.rate), options.seed);
  if (options.rounds > 0) {
    const StepReport step = trainer.measure_step(options.rounds);
    if (speaks)
      std::printf("step %.2f ms, without communication %.2f ms, exposed %.2f ms\n",
                  step.usual * 1e3, step.mute * 1e3, (step.usual - step.mute) * 1e3);
    std::fflush(stdout);
  }
  if (options.epochs > 0) print_epochs(trainer, options.epochs, speaks);
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
