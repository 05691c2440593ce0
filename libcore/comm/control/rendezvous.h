// SPDX-License-Identifier: Apache-2.0
// How a rank finds the hub and how both prove that they belong to one job. A UniqueId is what a
// user carries (256 bytes); a Root is what a rank needs to get in: addresses and a nonce. Used by
// Hub, Control and the finder of jobs. Absent: what happens after the hub's welcome.
//
// The nonce never goes over the network. A rank sends proof = MAC(nonce, its hello) and the hub
// answers with MAC(nonce, the rank's challenge), so a stranger who reads a hello can neither answer
// it nor change it. The MAC is SipHash-2-4 with 128 bits (Aumasson, Bernstein).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "comm/control/wire.h"
#include "transport/socket.h"

namespace hcomm::comm {

using Nonce = std::array<unsigned char, 16>;
using Mac = std::array<unsigned char, 16>;

Nonce random_nonce();
Mac mac(const Nonce& key, std::string_view message);
// The nonce of a job whose ranks know a secret (any text) and the job's name.
Nonce derive_nonce(std::string_view secret, std::string_view job_id);
// Eight hex digits that name a nonce in messages and do not give it away.
std::string fingerprint(const Nonce& nonce);

// Where the hub is.
struct Root {
  std::vector<transport::SocketAddress> addresses;  // best first
  Nonce nonce{};
  // The hub listened before this was given away (a UniqueId): refused connections mean that it is
  // gone. Otherwise a late hub is waited for.
  enum class State : uint8_t { listens, may_be_late } state = State::listens;
  std::string text() const;  // "10.0.0.2:4711, 127.0.0.1:4711"
};

struct UniqueId {
  static constexpr size_t kBytes = 256, kMaxAddresses = 7;
  std::array<char, kBytes> bytes{};
};
// Throws Error(invalid_argument) where there is no address; leaves out those past kMaxAddresses,
// never the last.
UniqueId encode_id(const Root& root);
// Throws Error(invalid_argument): not an id, an id of another version, a damaged id.
Root decode_id(const UniqueId& id);
std::string id_hex(const UniqueId& id);
UniqueId id_from_hex(std::string_view hex);  // throws as decode_id

// Who a rank is; the first frame of a connection.
struct Hello {
  static constexpr uint32_t kMagic = 0x4f4c4548, kProtocol = 2;
  uint32_t protocol = kProtocol;
  uint32_t library = 0;  // version code
  std::string job;       // fingerprint of the nonce
  uint32_t rank = 0, ranks = 0;
  uint32_t pid = 0;
  uint32_t left_ms = 0;   // until its init deadline; 0: none
  uint64_t attempt = 0;   // random; several connections of one attempt to join have the same
  std::string challenge;  // 16 random bytes, the hub's proof covers them
  std::string host;
  std::string settings;  // what all ranks must have equal, "NAME=value NAME=value"

  Packet encode(const Nonce& nonce) const;
  // False: no hello at all. A hello of another protocol has only `protocol` filled. `mac_ok` tells
  // whether it was made with this nonce.
  static bool decode(std::string_view body, const Nonce& nonce, Hello& hello, bool& mac_ok);
  Mac answer(const Nonce& nonce) const;  // the hub's proof
};

struct Refusal {
  uint8_t code = 0;        // of base/error.h
  bool other_job = false;  // the rank came to the wrong hub: another address may be right
  std::string text;
  Packet encode() const;
  static Refusal decode(std::string_view body);
};

// A connection that the hub has welcomed.
struct Welcomed {
  UniqueFd fd;
  FrameReader reader;
};
// Tries all addresses until one is the hub of this job and welcomes us: an address that does not
// answer within a second does not hold up the next. Blocks until the deadline. Throws
// Error(timeout | peer_failed | what the hub refused with), naming each address and what was seen.
Welcomed knock(const Root& root, const Hello& hello, Deadline deadline);

}  // namespace hcomm::comm
