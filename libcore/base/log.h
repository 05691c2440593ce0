// SPDX-License-Identifier: Apache-2.0
// Lines for people on standard error (or HCOMM_LOG_FILE), one write a line: "hcomm [rank 3] warn:
// text". Never in the data path. The function that first knows logs, once.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hcomm {

enum class LogLevel : uint8_t { error, warn, info, debug };

// Where lines go and from which level on; process-wide, set when the first Config is read.
void log_setup(std::string_view level, std::string_view file, int rank);
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hcomm
