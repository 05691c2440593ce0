// SPDX-License-Identifier: Apache-2.0
#include "base/config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/error.h"

namespace hcomm {

namespace {

using View = std::string_view;
using Kind = Setting::Kind;

template <typename Integer>
Integer parse_integer(View text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    fail(Code::invalid_argument, "'{}' is not a whole number", text);
  return value;
}

uint32_t parse_within(View text, uint32_t least, uint32_t most) {
  const auto value = parse_integer<uint32_t>(text);
  if (value < least || value > most)
    fail(Code::invalid_argument, "{} is not within {} to {}", value, least, most);
  return value;
}

int64_t parse_ms(View text) {
  if (text == "none") return 0;
  return (parse_duration_ns(text) + 999'999) / 1'000'000;
}

bool parse_bool(View text) {
  if (text == "1" || text == "on" || text == "true" || text == "yes") return true;
  if (text == "0" || text == "off" || text == "false" || text == "no") return false;
  fail(Code::invalid_argument, "'{}' is neither on nor off", text);
}

Switch parse_switch(View text) {
  if (text == "auto") return Switch::automatic;
  return parse_bool(text) ? Switch::on : Switch::off;
}

std::string one_of(View text, std::initializer_list<View> allowed) {
  for (const View value : allowed)
    if (text == value) return std::string(text);
  fail(Code::invalid_argument, "'{}' is not one of {}", text, fmt::join(allowed, ", "));
}

constexpr Setting kSettings[] = {
    {"HCOMM_ALGO", "NAME | COLLECTIVE=NAME,...", "",
     "algorithm to use instead of the one that the cost model chooses",
     [](Config& c, View v) { c.algorithm = v; }},
    {"HCOMM_CALIBRATION", "cache|measure", "cache",
     "what is known of the links: measured once a week and kept for the user, or at every init",
     [](Config& c, View v) { c.calibration_cached = one_of(v, {"cache", "measure"}) == "cache"; }},
    {"HCOMM_DETERMINISTIC", "on|off", "off",
     "results depend on inputs and rank order alone: a left fold in rank order",
     [](Config& c, View v) { c.deterministic = parse_bool(v); }},
    {"HCOMM_HOST_ID", "text", "", "ranks of equal text may share memory; default: boot and network",
     [](Config& c, View v) { c.host_id = v; }},
    {"HCOMM_HUGEPAGES", "on|off|auto", "auto", "huge pages for shared memory",
     [](Config& c, View v) { c.huge_pages = parse_switch(v); }},
    {"HCOMM_INIT_TIMEOUT", "time", "60s", "how long a communicator waits for its ranks",
     [](Config& c, View v) { c.init_timeout_ms = parse_ms(v); }},
    {"HCOMM_JOB_ID", "text", "", "names the job; set by hcc-launch",
     [](Config& c, View v) { c.job_id = v; }, Kind::of_launcher},
    {"HCOMM_KERNELS", "scalar|avx2|avx512", "", "the reduction kernels; default: the best there is",
     [](Config& c, View v) { c.kernels = one_of(v, {"scalar", "avx2", "avx512"}); }},
    {"HCOMM_LOCAL_RANK", "number", "", "rank on this host; set by hcc-launch",
     [](Config&, View v) { parse_integer<int>(v); }, Kind::of_launcher},
    {"HCOMM_LOCAL_SIZE", "number", "", "ranks on this host; set by hcc-launch",
     [](Config&, View v) { parse_integer<int>(v); }, Kind::of_launcher},
    {"HCOMM_LOG", "error|warn|info|debug", "warn", "what is said on standard error",
     [](Config& c, View v) { c.log_level = one_of(v, {"error", "warn", "info", "debug"}); }},
    {"HCOMM_LOG_FILE", "path", "", "says it there instead; %r is the rank, %p the process",
     [](Config& c, View v) { c.log_file = v; }},
    {"HCOMM_NAME", "text", "world", "name of the first communicator in errors and tools",
     [](Config& c, View v) { c.name = v; }},
    {"HCOMM_POLICY", "path", "/etc/hcomm/policy.conf", "file of rules",
     [](Config& c, View v) { c.policy_file = v; }},
    {"HCOMM_PORT_RANGE", "LOW-HIGH", "", "ports to listen on; default: any",
     [](Config& c, View v) { c.port_range = v; }},
    {"HCOMM_RANK", "number", "", "rank of this process; set by hcc-launch",
     [](Config& c, View v) { c.rank = parse_integer<int>(v); }, Kind::of_launcher},
    {"HCOMM_RECORDER_FD", "number", "", "memory of the recorder; set by hcc-launch",
     [](Config& c, View v) { c.recorder_fd = parse_integer<int>(v); }, Kind::of_launcher},
    {"HCOMM_RING", "size", "", "shared memory of a pair of ranks; default: by the number of ranks",
     [](Config& c, View v) { c.ring_bytes = parse_size(v); }},
    {"HCOMM_ROOT", "ADDRESS:PORT", "", "where rank 0 listens; [v6]:port and names are allowed",
     [](Config& c, View v) { c.root = v; }, Kind::of_launcher},
    {"HCOMM_ROOT_FD", "number", "", "rank 0's listening socket; set by hcc-launch",
     [](Config& c, View v) { c.root_fd = parse_integer<int>(v); }, Kind::of_launcher},
    {"HCOMM_SECRET", "hex", "", "the job's secret; set by hcc-launch",
     [](Config& c, View v) { c.secret = v; }, Kind::secret},
    {"HCOMM_SECRET_FILE", "path", "", "file that holds the job's secret",
     [](Config& c, View v) { c.secret_file = v; }},
    {"HCOMM_SHM_PULL", "on|off|auto", "auto",
     "read a peer's buffers by process_vm_readv; auto: never today",
     [](Config& c, View v) { c.pull = parse_switch(v); }},
    {"HCOMM_SIZE", "number", "", "ranks of the job; set by hcc-launch",
     [](Config&, View v) { parse_integer<int>(v); }, Kind::of_launcher},
    {"HCOMM_SOCKET_BUFFER", "size", "4MiB", "kernel buffer of a TCP connection",
     [](Config& c, View v) { c.socket_buffer_bytes = parse_size(v); }},
    {"HCOMM_SOCKET_FAMILY", "ipv4|ipv6", "", "address family to use; default: both",
     [](Config& c, View v) { c.family = one_of(v, {"ipv4", "ipv6"}); }},
    {"HCOMM_SOCKET_IFNAME", "LIST", "",
     "network interfaces: prefixes, =NAME exact, ^LIST excludes; loopback is always last",
     [](Config& c, View v) { c.interfaces = v; }},
    {"HCOMM_SPIN", "time", "", "how long a wait spins before it sleeps; default: by cores",
     [](Config& c, View v) { c.spin_us = parse_duration_ns(v) / 1000; }},
    {"HCOMM_TILE", "size", "", "part of a large message that runs a schedule once; default: chosen",
     [](Config& c, View v) { c.tile_bytes = parse_size(v); }},
    {"HCOMM_TIMEOUT", "time | none", "600s", "how long an operation may wait for others",
     [](Config& c, View v) { c.timeout_ms = parse_ms(v); }},
    {"HCOMM_TRANSPORT", "LIST", "", "transports that may be used: shm, tcp; default: all",
     [](Config& c, View v) { c.transports = v; }},
    {"HCOMM_WINDOW", "number", "", "tiles in flight, 1 to 7; default: chosen",
     [](Config& c, View v) { c.window = parse_within(v, 1, 7); }},
};

// Settings of versions to come: known, so that nobody takes their silence for their working.
constexpr View kPlanned[] = {"HCOMM_COMPRESS", "HCOMM_DEBUG", "HCOMM_ECC", "HCOMM_MEMLOG",
                             "HCOMM_TOPOLOGY"};

// As the XDG base directory specification has it: a path that is not absolute counts as unset.
std::string cache_folder_of(std::span<const char* const> environment) {
  if (const View cache = value_of(environment, "XDG_CACHE_HOME"); cache.starts_with('/'))
    return std::string(cache);
  const View home = value_of(environment, "HOME");
  return home.starts_with('/') ? fmt::format("{}/.cache", home) : "";
}

bool contains(std::span<const View> names, View name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::span<const Setting> settings() { return kSettings; }

std::span<const char* const> process_environment() {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) count++;
  return {environ, count};
}

Config Config::from_env() { return from_env(process_environment()); }

Config Config::from_env(std::span<const char* const> environment) {
  Config config;
  config.cache_folder = cache_folder_of(environment);
  for (const char* entry : environment) {
    const View text = entry;
    const size_t equals = text.find('=');
    if (equals == View::npos || equals + 1 == text.size()) continue;  // empty counts as unset
    for (const Setting& setting : kSettings) {
      if (setting.name != text.substr(0, equals)) continue;
      try {
        setting.set(config, text.substr(equals + 1));
      } catch (const Error& error) {
        fail(Code::invalid_argument, "{}: {}; expected: {}", setting.name, error.text(),
             setting.values);
      }
    }
  }
  return config;
}

std::string_view value_of(std::span<const char* const> environment, std::string_view name) {
  for (const View entry : environment)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return {};
}

std::vector<std::string> unknown_settings(std::span<const char* const> environment) {
  std::vector<View> known;
  for (const Setting& setting : kSettings) known.push_back(setting.name);
  std::vector<std::string> lines;
  for (const char* entry : environment) {
    const View name = View(entry).substr(0, View(entry).find('='));
    if (!name.starts_with("HCOMM_") || contains(known, name)) continue;
    const std::string near = nearest(name, known.data(), known.size());
    if (contains(kPlanned, name))
      lines.push_back(fmt::format("{} is not in this version: it does nothing", name));
    else if (near.empty())
      lines.push_back(fmt::format("{} is unknown; hcc env lists all", name));
    else
      lines.push_back(fmt::format("{} is unknown; did you mean {}?", name, near));
  }
  return lines;
}

}  // namespace hcomm
