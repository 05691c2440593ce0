// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/measure/load.h"

#include <poll.h>

#include <fstream>
#include <sstream>

namespace hcomm::bench {

namespace {

std::optional<CoreTime> read_core_time() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  return parse_core_time(line);
}

}  // namespace

std::optional<CoreTime> parse_core_time(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  words >> name;
  if (name != "cpu") return std::nullopt;
  CoreTime time;
  uint64_t value = 0;
  int column = 0;
  // user nice system idle iowait irq softirq steal; guests are within user and nice
  for (; column < 8 && words >> value; column++) {
    time.all += value;
    if (column != 3 && column != 4) time.busy += value;
  }
  return column >= 5 ? std::optional(time) : std::nullopt;
}

std::optional<double> busy_share(int64_t over_ms) {
  const std::optional<CoreTime> first = read_core_time();
  poll(nullptr, 0, static_cast<int>(over_ms));
  const std::optional<CoreTime> last = read_core_time();
  if (!first || !last || last->all <= first->all || last->busy < first->busy) return std::nullopt;
  return static_cast<double>(last->busy - first->busy) /
         static_cast<double>(last->all - first->all);
}

}  // namespace hcomm::bench
