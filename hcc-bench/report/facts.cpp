// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/report/facts.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>

#include "base/clock.h"
#include "base/config.h"
#include "base/thread.h"
#include "cli/terminal.h"
#include "cli/version.h"

namespace hcomm::bench {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

// The HCOMM_* of this process that a person has set, without the job's secret.
std::vector<std::string> environment() {
  std::vector<std::string> list;
  for (const Setting& setting : settings()) {
    const std::string_view value = cli::environment_value(setting.name);
    if (!value.empty() && setting.kind == Setting::Kind::plain)
      list.push_back(fmt::format("{}={}", setting.name, value));
  }
  return list;
}

}  // namespace

Facts machine_facts() {
  Facts facts;
  facts.tool = cli::version_line("hcc-bench");
  facts.time = utc_text(wall_ns());
  utsname system{};
  if (uname(&system) == 0) facts.kernel = fmt::format("{} {}", system.sysname, system.release);
  facts.processor = processor();
  facts.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  facts.cores = static_cast<int>(usable_cores());
  facts.environment = environment();
  return facts;
}

Facts collect_facts(const World& world, const Options& options) {
  Facts facts = machine_facts();
  int version = 0;
  require(hcommGetVersion(&version), nullptr, "version");
  facts.library = "libhcomm-core " + cli::version_code_text(version);
  facts.ranks = world.ranks();
  facts.hosts = world.hosts();
  facts.hosts_text = world.hosts_text();
  facts.init_ms = world.init_seconds() * 1e3;
  facts.memory_mib = world.memory_mib();
  facts.check = options.check;
  facts.memory = options.memory;
  return facts;
}

}  // namespace hcomm::bench
