// SPDX-License-Identifier: Apache-2.0
// hcommConfig_t over the process's settings.
#include "api/handles.h"
#include "engine/traffic.h"

namespace hcomm::api {

namespace {

// What this version does not offer is refused, never ignored.
void refuse_unless(const char* field, const char* value, const char* neutral) {
  if (value == nullptr || std::string_view(value) == neutral) return;
  fail(Code::unsupported, "hcommConfig_t.{}='{}' is not offered in this version; use NULL", field,
       value);
}

int64_t wait_of(const char* field, int value, int64_t base_ms) {
  if (value == HCOMM_CONFIG_UNDEF_INT) return base_ms;
  if (value < 0)
    fail(Code::invalid_argument, "hcommConfig_t.{}={}: milliseconds, 0 for none", field, value);
  return value;
}

}  // namespace

Config configured(const Config& base, const hcommConfig_t* given) {
  Config config = base;
  if (given == nullptr) return config;
  if (given->size != sizeof(hcommConfig_t) || given->magic != HCOMM_CONFIG_MAGIC)
    fail(Code::invalid_argument,
         "hcommConfig_t has size {} and magic {:#x}; start from HCOMM_CONFIG_INITIALIZER of the "
         "header that the library was built with (size {})",
         given->size, given->magic, sizeof(hcommConfig_t));
  if (given->version / 100 != HCOMM_VERSION_CODE / 100)
    fail(Code::invalid_argument, "hcommConfig_t is of version {}, the library of {}",
         given->version, HCOMM_VERSION_CODE);
  if (given->name != nullptr) config.name = given->name;
  if (given->device != nullptr) config.device = given->device;
  if (given->transports != nullptr) config.transports = given->transports;
  if (given->policy != nullptr) config.policy_file = given->policy;
  config.timeout_ms = wait_of("timeout_ms", given->timeout_ms, base.timeout_ms);
  config.init_timeout_ms = wait_of("init_timeout_ms", given->init_timeout_ms, base.init_timeout_ms);
  if (given->deterministic != HCOMM_CONFIG_UNDEF_INT)
    config.deterministic = given->deterministic != 0;
  if (given->blocking != HCOMM_CONFIG_UNDEF_INT && given->blocking != 0 && given->blocking != 1)
    fail(Code::invalid_argument, "hcommConfig_t.blocking={}: 0 or 1", given->blocking);
  if (given->priority != HCOMM_CONFIG_UNDEF_INT)
    fail(Code::unsupported, "hcommConfig_t.priority={} is for hcommCommVirtual", given->priority);
  refuse_unless("compression", given->compression, "none");
  refuse_unless("integrity", given->integrity, "off");
  refuse_unless("topology", given->topology, "");
  if (config.device != "cpu")
    fail(Code::unsupported, "device '{}' is not offered in this version; there is cpu",
         config.device);
  return config;
}

VirtualSettings configured_virtual(const Config& base, const char* name,
                                   const hcommConfig_t* given) {
  hcommConfig_t rest = HCOMM_CONFIG_INITIALIZER;
  int priority = std::string_view(name) == "forward" ? 1 : 0;
  if (given != nullptr && given->size == sizeof rest) {
    rest = *given;
    if (given->priority != HCOMM_CONFIG_UNDEF_INT) priority = given->priority;
    rest.priority = HCOMM_CONFIG_UNDEF_INT;
    given = &rest;
  }
  if (priority < 0 || priority >= engine::kPriorities)
    fail(Code::invalid_argument, "hcommConfig_t.priority={}: 0 to {}, the higher goes first",
         priority, engine::kPriorities - 1);
  VirtualSettings settings{configured(base, given), priority};
  settings.config.name = name;
  return settings;
}

}  // namespace hcomm::api
