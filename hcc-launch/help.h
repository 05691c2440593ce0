// SPDX-License-Identifier: Apache-2.0
// The texts of --help: the page around the option table, and the topics of --help TOPIC. The man
// page holds the same texts; a test compares them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/options.h"

namespace hcomm::launch {

struct Topic {
  std::string_view name, title;
  std::string_view text;  // paragraphs, an empty line between
};
std::span<const Topic> topics();

cli::Page help_page();
std::string topic_names();  // "bind, ending, env, ..."
// Throws invalid_argument with the nearest name.
std::string help_topic(std::string_view name);

}  // namespace hcomm::launch
