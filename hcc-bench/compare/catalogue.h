// SPDX-License-Identifier: Apache-2.0
// The libraries that can be measured: how each is found, how its driver is built and started. The
// only place that names them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hcc-bench/compare/child.h"

namespace hcomm::compare {

struct Subject {
  std::string name;  // "openmpi", "openmpi@/opt/ompi"
  std::vector<std::string> transports;
  // Its driver: a file of the folder of drivers, and the words around it that build a program.
  // Without compiler words the file is run as it is.
  std::string source;
  std::vector<std::string> compiler, libraries;
  // The command up to the words of the job; `driver` is the program that was built.
  std::function<Launch(const std::string& driver, const std::string& transport, int ranks)> launch;
};

struct Finding {
  std::vector<Subject> subjects;
  std::string reason;  // why there is none
};

std::vector<std::string> peer_names();
// Of this machine (prefix ""), or below a folder. Throws invalid_argument for an unknown name.
Finding find_peer(std::string_view name, const std::string& prefix);

// HCOMM itself: hcc-launch and hcc-bench, beside this program.
Subject hcomm_subject();
std::string program_folder();  // of this program
std::string driver_folder();   // of the drivers' sources: share/hcomm/peers beside bin

}  // namespace hcomm::compare
