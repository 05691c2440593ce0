// SPDX-License-Identifier: Apache-2.0
// Getting in: one door an address. Doors are tried in order, the next one when the last has been
// silent for a second; one that fails is tried again with back-off.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "comm/control/rendezvous.h"

namespace hcomm::comm {

namespace {

using transport::SocketAddress;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kStaggerNs = 1000 * kMs;  // until the next address is tried beside a silent one
constexpr int64_t kConnectNs = 3000 * kMs;  // then the connection is begun anew
constexpr int64_t kFirstBackoffNs = 20 * kMs, kLastBackoffNs = 500 * kMs;
constexpr int64_t kSayNs = 5000 * kMs;     // between lines of the log
constexpr int64_t kOthersNs = 3000 * kMs;  // how long another job's root is put up with
constexpr int kFinalAnswers = 4;           // of a door, in a row: it will not open

struct Door {
  explicit Door(const SocketAddress& to) : address(to) {}

  const SocketAddress& address;
  enum class Phase : uint8_t { idle, connecting, waiting } phase = Phase::idle;
  UniqueFd fd;
  FrameReader reader{kMaxFrameBytes};
  int64_t since_ns = 0, next_ns = 0, backoff_ns = kFirstBackoffNs;
  int final_answers = 0;
  std::string seen = "not tried";
};

class Knocker {
 public:
  Knocker(const Root& root, const Hello& hello, Deadline deadline)
      : root_(root), hello_(hello), deadline_(deadline), start_ns_(now_ns()) {
    for (const SocketAddress& address : root.addresses) doors_.emplace_back(address);
  }

  Welcomed run() {
    while (true) {
      if (deadline_.passed()) give_up(Code::timeout);
      if (is_hopeless()) give_up(Code::peer_failed);
      start_next();
      wait();
      for (Door& door : doors_)
        if (step(door)) return {std::move(door.fd), std::move(door.reader)};
    }
  }

 private:
  bool is_hopeless() const {
    // Another job's root at our port may be on its way out: ours comes when it has gone.
    if (root_.state == Root::State::may_be_late && now_ns() - start_ns_ < kOthersNs) return false;
    return std::all_of(doors_.begin(), doors_.end(),
                       [](const Door& door) { return door.final_answers >= kFinalAnswers; });
  }

  void start_next() {
    const int64_t now = now_ns();
    if (now < hold_until_ns_) return;
    for (Door& door : doors_) {
      if (door.phase != Door::Phase::idle || now < door.next_ns) continue;
      door.since_ns = now;
      door.reader = FrameReader();
      door.fd = transport::start_connect(door.address);
      if (!door.fd) {
        unreached(door, errno);
        continue;
      }
      door.phase = Door::Phase::connecting;
      hold_until_ns_ = now + kStaggerNs;
      return;
    }
  }

  void wait() {
    int64_t until = deadline_.endless() ? INT64_MAX : deadline_.at_ns();
    polls_.clear();
    for (const Door& door : doors_) {
      if (door.phase == Door::Phase::idle) {
        until = std::min(until, std::max(door.next_ns, hold_until_ns_));
        continue;
      }
      const bool connecting = door.phase == Door::Phase::connecting;
      polls_.push_back({door.fd.get(), static_cast<short>(connecting ? POLLOUT : POLLIN), 0});
      if (connecting) until = std::min(until, door.since_ns + kConnectNs);
    }
    const int64_t ms = (until - now_ns() + kMs - 1) / kMs;
    ::poll(polls_.data(), polls_.size(), static_cast<int>(std::clamp<int64_t>(ms, 0, 1000)));
  }

  // True: welcomed.
  bool step(Door& door) {
    if (door.phase == Door::Phase::idle) return false;
    const auto ready = std::find_if(polls_.begin(), polls_.end(), [&](const pollfd& each) {
      return each.fd == door.fd.get() && each.revents != 0;
    });
    if (door.phase == Door::Phase::connecting) {
      if (ready != polls_.end())
        greet(door);
      else if (now_ns() - door.since_ns > kConnectNs)
        shut(door, "no answer to the connection");
      return false;
    }
    return ready != polls_.end() && listen(door);
  }

  void unreached(Door& door, int error) {
    if (error == EMFILE || error == ENFILE)  // waiting does not help, and the user can
      fail_system(error, "join as rank {} of {}: connect to rank 0 at {} (see ulimit -n)",
                  hello_.rank, hello_.ranks, door.address.text());
    const bool refused = error == ECONNREFUSED && root_.state == Root::State::listens;
    const int answers = refused ? door.final_answers + 1 : 0;
    shut(door, std::generic_category().message(error));
    door.final_answers = answers;
  }

  void greet(Door& door) {
    const int error = transport::finish_connect(door.fd.get());
    if (error == EINPROGRESS) return;
    if (error != 0) return unreached(door, error);
    hello_.left_ms = deadline_.endless() ? 0 : static_cast<uint32_t>(deadline_.left_ms());
    const Packet frame = hello_.encode(root_.nonce);
    // A fresh connection takes some KiB at once.
    const ssize_t bytes = ::send(door.fd.get(), frame->data(), frame->size(), MSG_NOSIGNAL);
    if (bytes != static_cast<ssize_t>(frame->size())) return shut(door, "closed after connecting");
    door.phase = Door::Phase::waiting;
    door.seen = "connected, no answer";
  }

  bool listen(Door& door) {
    char buffer[4096];
    const ssize_t bytes = ::recv(door.fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (bytes < 0 && again(errno)) return false;
    if (bytes <= 0) {
      shut(door, bytes == 0 ? "closed the connection without an answer"
                            : "connected, then: " + std::generic_category().message(errno));
      return false;
    }
    door.reader.append({buffer, static_cast<size_t>(bytes)});
    const std::optional<Frame> frame = door.reader.next();
    if (door.reader.broken()) shut(door, "what answers is no HCOMM root");
    if (!frame) return false;
    const Mac proof = hello_.answer(root_.nonce);
    const std::string_view expected(reinterpret_cast<const char*>(proof.data()), proof.size());
    if (frame->kind == Kind::welcome && frame->body == expected) return true;
    if (frame->kind == Kind::refused) {
      const Refusal refusal = Refusal::decode(frame->body);
      if (!refusal.other_job) throw Error(static_cast<Code>(refusal.code), refusal.text, 0);
      const int answers = door.final_answers + 1;
      shut(door, refusal.text);
      door.final_answers = answers;
      return false;
    }
    shut(door, "what answers cannot prove that it is the root of this job");
    return false;
  }

  void shut(Door& door, std::string seen) {
    const int64_t now = now_ns();
    door.fd.reset();
    door.phase = Door::Phase::idle;
    door.next_ns = now + door.backoff_ns;
    door.backoff_ns = std::min(door.backoff_ns * 2, kLastBackoffNs);
    door.seen = std::move(seen);
    door.final_answers = 0;
    hold_until_ns_ = 0;  // the next address need not wait for this one
    if (tries_++ > 0 && now - said_ns_ < kSayNs) return;
    said_ns_ = now;
    log(LogLevel::info, "rank {} waits for rank 0 at {}: {}", hello_.rank, door.address.text(),
        door.seen);
  }

  [[noreturn]] void give_up(Code code) {
    std::string text;
    bool all_loopback = true;
    for (const Door& door : doors_) {
      text += (text.empty() ? "" : "; ") + door.address.text() + ": " + door.seen;
      all_loopback = all_loopback && door.address.is_loopback();
    }
    std::string advice =
        code == Code::timeout
            ? "is rank 0 running, and can this host reach it? (HCOMM_SOCKET_IFNAME, firewall)"
            : "rank 0's process has ended, all its ranks have joined already, or the id or secret "
              "is that of another job: make a new id, give all ranks the same";
    if (all_loopback)
      advice += "; rank 0 offers loopback only: for ranks on other hosts give it another interface "
                "with HCOMM_SOCKET_IFNAME or another HCOMM_ROOT";
    throw Error(code,
                fmt::format("join as rank {} of {}: rank 0 {}: {}; {}", hello_.rank, hello_.ranks,
                            code == Code::timeout ? "did not let us in before the init timeout"
                                                  : "cannot be found",
                            text, advice),
                0);
  }

  const Root& root_;
  Hello hello_;
  const Deadline deadline_;
  std::deque<Door> doors_;
  std::vector<pollfd> polls_;
  int64_t hold_until_ns_ = 0;
  const int64_t start_ns_;
  int64_t said_ns_ = start_ns_;
  uint64_t tries_ = 0;
};

}  // namespace

Welcomed knock(const Root& root, const Hello& hello, Deadline deadline) {
  if (root.addresses.empty()) fail(Code::invalid_argument, "join: the root has no address");
  return Knocker(root, hello, deadline).run();
}

}  // namespace hcomm::comm
