// SPDX-License-Identifier: Apache-2.0
#include "comm/control/host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace hcomm::comm {

namespace {

uint64_t network_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::string boot_id() {
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t bytes = file ? ::read(file.get(), text, sizeof text) : -1;
  if (bytes >= 36) return std::string(text, 36);
  struct stat status {};
  if (::stat("/proc/1", &status) == 0) return fmt::format("start-{}", status.st_ctim.tv_sec);
  return "unknown";
}

std::string host_key(const Config& config) {
  if (!config.host_id.empty()) return "id:" + config.host_id;
  return fmt::format("{}/{:x}/{}", boot_id(), network_namespace(), geteuid());
}

}  // namespace hcomm::comm
