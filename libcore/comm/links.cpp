// SPDX-License-Identifier: Apache-2.0
#include "comm/links.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/log.h"
#include "comm/text.h"

namespace hcomm::comm {

using transport::Transport;

namespace {

std::string setting_text(const Config& config) {
  return config.transports.empty() ? "HCOMM_TRANSPORT is not set"
                                   : "HCOMM_TRANSPORT=" + config.transports;
}

}  // namespace

std::vector<const Transport*> admitted_transports(const Config& config, uint32_t ranks) {
  const std::vector<std::string_view> wanted = split_list(config.transports);
  std::vector<std::string_view> names;
  for (const Transport* each : transport::all()) names.push_back(each->name());
  for (const std::string_view name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(Code::invalid_argument, "transport '{}' is unknown; there are {}", name,
           fmt::join(names, ", "));
  std::vector<const Transport*> admitted;
  std::string reasons;
  for (const Transport* each : transport::all()) {
    const bool asked =
        wanted.empty() || each->name() == "self" ||
        std::find(wanted.begin(), wanted.end(), each->name()) != wanted.end();
    if (!asked) continue;
    const std::string reason = each->probe(config);
    if (reason.empty())
      admitted.push_back(each);
    else
      reasons += fmt::format("; {}: {}", each->name(), reason);
  }
  if (admitted.size() < 2 && ranks > 1)
    fail(Code::unavailable, "no transport that joins ranks works here ({}){}", setting_text(config),
         reasons);
  return admitted;
}

Links::Links(const transport::Place& place, Control& control, const Circle& circle,
             Deadline deadline) {
  const auto admitted = admitted_transports(*place.config, place.ranks);
  Fields mine;
  for (const Transport* each : admitted) {
    endpoints_.push_back({each->name(), each->open(place)});
    mine.add(each->name());
    mine.add(endpoints_.back().endpoint->address());
  }
  const auto all = control.exchange(circle, "addresses", mine.text(), deadline);
  for (Opened& opened : endpoints_) {
    std::vector<std::string> addresses(place.ranks);
    for (uint32_t rank = 0; rank < place.ranks; rank++) {
      const std::vector<std::string> fields = Fields::split(all[rank]);
      for (size_t i = 0; i + 1 < fields.size(); i += 2)
        if (fields[i] == opened.name) addresses[rank] = fields[i + 1];
    }
    opened.endpoint->connect(addresses, deadline);
  }
  agree(*place.config, control, circle, deadline);
}

// Each rank tells, for every peer, the transports (bits, by their place in transport::all) by which
// it reaches it; a pair takes the first that both name.
void Links::agree(const Config& config, Control& control, const Circle& circle,
                  Deadline deadline) {
  const auto bit_of = [](std::string_view name) {
    size_t index = 0;
    while (transport::all()[index]->name() != name) index++;
    return index;
  };
  const auto ranks = static_cast<uint32_t>(circle.members.size());
  std::string mine(ranks, '\0');
  for (uint32_t peer = 0; peer < ranks; peer++)
    for (const Opened& opened : endpoints_)
      if (opened.endpoint->reach(peer))
        mine[peer] = static_cast<char>(mine[peer] | 1 << bit_of(opened.name));
  const auto all = control.exchange(circle, "transports", mine, deadline);
  choice_.assign(ranks, endpoints_.size());
  for (uint32_t peer = 0; peer < ranks; peer++) {
    for (size_t i = 0; i < endpoints_.size() && choice_[peer] == endpoints_.size(); i++) {
      const int bit = 1 << bit_of(endpoints_[i].name);
      if ((mine[peer] & bit) && all[peer].size() == ranks && (all[peer][circle.index] & bit))
        choice_[peer] = i;
    }
    if (choice_[peer] == endpoints_.size())
      throw Error(Code::unavailable,
                  fmt::format("no transport joins rank {} and rank {} ({}); see HCOMM_LOG=info on "
                              "both",
                              circle.index, peer, setting_text(config)),
                  static_cast<int>(peer));
    log(LogLevel::debug, "rank {} reaches rank {} by {}", circle.index, peer, transport_of(peer));
  }
}

transport::Channel* Links::channel(uint32_t peer, uint32_t slot) {
  return &endpoints_[choice_[peer]].endpoint->channel(peer, slot);
}

transport::Reach Links::reach(uint32_t peer) const {
  return endpoints_[choice_[peer]].endpoint->reach(peer).value_or(transport::Reach{});
}

std::string Links::last_error(uint32_t peer) const {
  return peer < choice_.size() ? endpoints_[choice_[peer]].endpoint->last_error(peer) : "";
}

bool Links::prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) {
  bool quiet = true;
  for (Opened& opened : endpoints_)
    quiet = opened.endpoint->prepare_sleep(descriptors, cap_ms) && quiet;
  return quiet;
}

void Links::after_sleep() {
  for (Opened& opened : endpoints_) opened.endpoint->after_sleep();
}

}  // namespace hcomm::comm
