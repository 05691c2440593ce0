// SPDX-License-Identifier: Apache-2.0
// A peer's driver as a program: built when it is first used, kept in the user's cache under a name
// that stands for its sources and its compiler. Two runs at once both build, and either's result is
// whole.
#pragma once

#include <string>

#include "hcc-bench/compare/catalogue.h"

namespace hcomm::compare {

// $XDG_CACHE_HOME/hcomm/peers, ~/.cache/hcomm/peers.
std::string cache_folder();

// The program of `subject`; "" where nothing is to be built. Throws unavailable with what the
// compiler said.
std::string build_driver(const Subject& subject, const std::string& sources,
                         const std::string& cache);

}  // namespace hcomm::compare
