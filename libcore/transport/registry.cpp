// SPDX-License-Identifier: Apache-2.0
// The list of transports.def as a table. Adding a transport is a file and a line there.
#include "transport/transport.h"

namespace hcomm::transport {

#define HCOMM_TRANSPORT(name) const Transport& name##_transport();
#include "transport/transports.def"
#undef HCOMM_TRANSPORT

std::span<const Transport* const> all() {
#define HCOMM_TRANSPORT(name) &name##_transport(),
  static const Transport* const table[] = {
#include "transport/transports.def"
  };
#undef HCOMM_TRANSPORT
  return table;
}

const Transport* find(std::string_view name) {
  for (const Transport* each : all())
    if (each->name() == name) return each;
  return nullptr;
}

}  // namespace hcomm::transport
