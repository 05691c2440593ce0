// SPDX-License-Identifier: Apache-2.0
// The links of one communicator: an endpoint of each transport that may be used, and for each pair
// the first transport, in order of preference, that both ends reach. Owned by the communicator; the
// engine asks for channels, drive for descriptors to sleep on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/control/control.h"
#include "engine/executor.h"
#include "transport/transport.h"

namespace hcomm::comm {

class Links final : public engine::Links {
 public:
  // Exchanges addresses with all ranks, connects, and agrees which transport each pair uses. Throws
  // Error(unavailable) that names a pair without any.
  Links(const transport::Place& place, Control& control, const Circle& circle, Deadline deadline);

  transport::Channel* channel(uint32_t peer, uint32_t slot) override;
  std::string_view transport_of(uint32_t peer) const { return endpoints_[choice_[peer]].name; }
  transport::Reach reach(uint32_t peer) const;
  // What the transport saw when a step with this peer failed last: "send: Connection reset by
  // peer". "": it has nothing to tell. From the thread that drives the operation.
  std::string last_error(uint32_t peer) const;
  bool prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms);
  void after_sleep();

 private:
  struct Opened {
    std::string_view name;
    std::unique_ptr<transport::Endpoint> endpoint;
  };
  void agree(const Config& config, Control& control, const Circle& circle, Deadline deadline);

  std::vector<Opened> endpoints_;
  std::vector<size_t> choice_;  // of each peer: an index of endpoints_
};

// The transports that HCOMM_TRANSPORT (or the config) admits and that work here, `self` always.
// Throws Error(invalid_argument) for an unknown name, Error(unavailable) with each reason when none
// is left that joins several ranks.
std::vector<const transport::Transport*> admitted_transports(const Config& config, uint32_t ranks);

}  // namespace hcomm::comm
