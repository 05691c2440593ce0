// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace train {

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains a classifier on Fashion-MNIST, the images shared among the ranks."};
  app.add_option("--data", options.data, "folder of the gzipped IDX files")->capture_default_str();
  app.add_option("--epochs", options.epochs, "passes over the images")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  app.add_option("--hidden", options.hidden, "outputs of each hidden layer: 1024,1024")
      ->delimiter(',')
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "images a step, of all ranks together")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  app.add_option("--lr", options.rate, "learning rate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the first weights and of the order of the images")
      ->capture_default_str();
  app.add_option("--limit", options.limit, "use only so many images of each part (0: all)");
  app.add_option("--bucket", options.bucket,
                 "bytes of gradients that travel together while the rest is computed; 0: all")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--exposed", options.rounds,
                 "rounds in which a step is timed first, with and without communication")
      ->check(CLI::Range(0, 10'000));
  app.add_flag("--deterministic", options.deterministic,
               "the same bits in every run; their hash is printed");
  try {
    app.parse(argc, argv);
    if (options.bucket != 0 && options.bucket < 1024)
      throw CLI::ValidationError("--bucket", "0, or 1K and more");
  } catch (const CLI::ParseError& error) {
    std::exit(error.get_exit_code() == 0 ? app.exit(error) : (app.exit(error), 2));
  }
  return options;
}

}  // namespace train
