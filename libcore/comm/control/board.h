// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job have posted at the hub: parts of exchanges, the first failure of each
// communicator, signatures of calls that are stuck. Pure: no sockets, no clock, so that a test can
// drive it. Owned and called by Hub, in the service thread. Absent: who has joined.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/control/wire.h"

namespace hcomm::comm {

// Why a communicator, or all of them, cannot go on.
struct Failure {
  uint64_t communicator = 0;  // 0: all
  Code code = Code::internal;
  int rank = -1;          // who reports; of the communicator, of the job where that is 0
  int peer = -1;          // who is blamed, -1: nobody; counted as `rank`, see peer_in
  std::string host;       // of the peer, or of the reporter
  uint64_t sequence = 0;  // of the operation, 0: none
  std::string text;

  // Who is blamed, as a rank of the communicator of these ranks of the job; -1: none of them.
  int peer_in(std::span<const uint32_t> members) const;

  Encoder& write(Encoder& to) const;
  Packet encode() const;  // a frame of its own
  static std::optional<Failure> decode(std::string_view body);
};

// A member's part of an exchange, or its signature.
struct Post {
  uint64_t communicator = 0, round = 0;  // round: or the sequence of the operation
  uint32_t index = 0, size = 0;          // of the member
  uint32_t left_ms = 0;                  // 0: no deadline
  std::string what;                      // is exchanged, in which communicator; for messages
  std::string text;

  Packet encode(Kind kind) const;
  static std::optional<Post> decode(std::string_view body);
};

// "rank 0", "ranks 1-3, 7"; of any ascending list.
std::string rank_list(const std::vector<uint32_t>& ranks);

class Board {
 public:
  explicit Board(uint32_t ranks) : ranks_(ranks) {}

  // A frame for one rank of the job.
  struct Letter {
    uint32_t to;
    Packet frame;
  };
  using Letters = std::vector<Letter>;

  Letters post(uint32_t from, Post post, int64_t now_ns);
  // True: the first failure of its communicator; then exchanges that wait in this communicator are
  // ended by `letters`. Always true of communicator 0: each death is its own, and the hub tells it
  // once.
  bool note(const Failure& failure, Letters& letters);
  // A rank is gone: exchanges that need it end, as far as their members are known here. After a
  // death also those that it had a part in.
  enum class Loss : uint8_t { death, left };
  Letters lose(uint32_t rank, Loss loss, const Failure& why);
  void sign(const Post& post, int64_t now_ns);
  // Indices of 0..size-1 that have not signed.
  std::vector<uint32_t> unsigned_of(const Post& question) const;

  // Ends exchanges whose deadline has passed.
  Letters expire(int64_t now_ns);
  // Signatures that differ, once the other members had time to send theirs.
  std::vector<Failure> mismatches(int64_t now_ns);
  bool waiting() const;  // expire or mismatches will have something to do

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // communicator, round or sequence
  struct Part {
    uint32_t rank;  // of the job
    std::string text;
  };
  struct Exchange {
    uint32_t size = 0;
    std::string what;
    int64_t deadline_ns = 0;         // the earliest of its members', 0: none
    std::map<uint32_t, Part> parts;  // by index
  };
  struct Signatures {
    uint32_t size = 0;
    int64_t differ_ns = 0;                  // when two were first seen to differ
    std::map<uint32_t, std::string> texts;  // by index
  };
  using Exchanges = std::map<Key, Exchange>;

  std::string unfit(const Exchange& exchange, const Post& post) const;
  bool needs(const Exchanges::value_type& entry, uint32_t rank, Loss loss) const;
  Exchanges::iterator end(Exchanges::iterator exchange, const Failure& why, Letters& letters);
  Letters gather(Exchanges::iterator exchange);
  static Packet refusal(const Key& key, const Failure& why);

  const uint32_t ranks_;
  Exchanges exchanges_;
  std::map<Key, Failure> ended_;                       // those that failed lately
  std::map<uint64_t, std::vector<uint32_t>> members_;  // ranks of the job, once known
  std::map<uint32_t, std::pair<Loss, Failure>> gone_;  // by rank of the job
  std::map<uint64_t, Failure> failures_;               // first of a communicator
  std::map<Key, Signatures> signatures_;
};

}  // namespace hcomm::comm
