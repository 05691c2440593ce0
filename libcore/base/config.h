// SPDX-License-Identifier: Apache-2.0
// Every setting of the library: one field, one HCOMM_* variable, one line of documentation. Read
// once, at Config::from_env; nothing else calls getenv. `hcc env` prints this table. A value that
// cannot be read is an error that names the variable; an unknown HCOMM_* is reported once with the
// nearest name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hcomm {

enum class Switch : uint8_t { off, on, automatic };

struct Config {
  // life
  std::string name = "world";
  std::string device = "cpu";
  int64_t timeout_ms = 600'000;
  int64_t init_timeout_ms = 60'000;
  bool deterministic = false;
  // choice
  std::string transports;  // empty: all
  std::string algorithm;   // "ring" or "all_reduce=ring,broadcast=chain"
  uint64_t tile_bytes = 0;  // 0: chosen
  uint32_t window = 0;      // 0: chosen
  std::string policy_file;
  bool calibration_cached = true;  // numbers of earlier jobs serve; else every init measures
  std::string cache_folder;  // of the user, XDG_CACHE_HOME or HOME/.cache; empty: there is none
  // job
  std::string root;  // address:port of rank 0
  int root_fd = -1;  // a listening socket that the launcher made for rank 0
  int rank = -1;     // that hcc-launch gave; comm/control/job.h knows all launchers
  std::string job_id;
  std::string secret;  // of the job, hex
  std::string secret_file;
  int recorder_fd = -1;  // memory of the recorder, made by the launcher
  // network
  std::string interfaces;  // "eth0,ib" prefixes, "^docker" excludes, "=eth0" exact
  std::string family;      // "", "ipv4", "ipv6"
  std::string port_range;  // "20000-20100"
  std::string host_id;     // who shares memory with whom; empty: found out
  uint64_t socket_buffer_bytes = 4 << 20;
  // shared memory
  uint64_t ring_bytes = 0;           // of a pair; 0: chosen from the number of ranks
  Switch pull = Switch::automatic;   // process_vm_readv; automatic: the ring, which is faster
  Switch huge_pages = Switch::automatic;
  // waiting
  int64_t spin_us = -1;  // before a wait sleeps; -1: chosen
  // what is said
  std::string log_level = "warn";
  std::string log_file;
  std::string kernels;  // "", scalar, avx2, avx512

  // Reads the environment (the process's, or `environment` as NAME=VALUE for tests). Throws
  // invalid_argument.
  static Config from_env();
  static Config from_env(std::span<const char* const> environment);
};

struct Setting {
  std::string_view name;           // HCOMM_TIMEOUT
  std::string_view values;         // "time", "size", "on|off|auto"
  std::string_view default_value;  // as one would write it
  std::string_view doc;
  void (*set)(Config&, std::string_view value);
  // Who sets it: a person, or hcc-launch for each rank. A secret is the launcher's, too, and is
  // never shown.
  enum class Kind : uint8_t { plain, of_launcher, secret } kind = Kind::plain;
};
std::span<const Setting> settings();

// One line for each HCOMM_* of the environment that is not a setting: "HCOMM_TIMOUT is unknown; did
// you mean HCOMM_TIMEOUT?", "HCOMM_DEBUG is not in this version: it does nothing".
std::vector<std::string> unknown_settings(std::span<const char* const> environment);
std::span<const char* const> process_environment();
// Of a variable in an environment; "" when it is empty or not there.
std::string_view value_of(std::span<const char* const> environment, std::string_view name);

}  // namespace hcomm
