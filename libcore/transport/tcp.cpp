// SPDX-License-Identifier: Apache-2.0
// Ranks over TCP: a channel is a socket of its own, made at first use by the lower rank of the
// pair: a large message that is cut into tiles travels over as many sockets as it has tiles in
// flight. The endpoint listens once, tells its peers where, and knows which channels wait for what.
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "base/log.h"
#include "transport/dial.h"
#include "transport/socket.h"
#include "transport/tcp_accept.h"
#include "transport/tcp_stream.h"
#include "transport/transport.h"

namespace hcomm::transport {

namespace {

// A peer that refuses for this long is not there; one that keeps silent may be behind a slow
// network.
constexpr int64_t kRefusedMs = 3'000, kSilentMs = 30'000;
constexpr int64_t kLivenessNs = 1'000'000'000;  // between two looks for vanished peers
constexpr size_t kMaxAddresses = 16;

// Where a rank listens: what `address()` says.
struct Offer {
  uint64_t host = 0;  // hash of the host's key
  std::vector<SocketAddress> addresses;

  std::string pack() const {
    std::string text = "TCP1";
    text.append(reinterpret_cast<const char*>(&host), sizeof host);
    for (const SocketAddress& address : addresses) {
      unsigned char packed[SocketAddress::kPacked];
      address.pack(packed);
      text.append(reinterpret_cast<const char*>(packed), sizeof packed);
    }
    return text;
  }

  // No addresses when the text is none of ours.
  static Offer unpack(std::string_view text) {
    Offer offer;
    constexpr size_t kHeadBytes = 4 + sizeof offer.host;
    if (!text.starts_with("TCP1") || text.size() < kHeadBytes) return offer;
    std::memcpy(&offer.host, text.data() + 4, sizeof offer.host);
    text.remove_prefix(kHeadBytes);
    for (; text.size() >= SocketAddress::kPacked; text.remove_prefix(SocketAddress::kPacked)) {
      const auto address =
          SocketAddress::unpack(reinterpret_cast<const unsigned char*>(text.data()));
      if (address.family() != 0) offer.addresses.push_back(address);
    }
    return offer;
  }
};

// The interfaces of this host that a link-local address of a peer may lie behind.
std::vector<uint32_t> link_scopes() {
  std::vector<uint32_t> scopes;
  for (const Interface& here : interfaces())
    if (here.up && here.address.family() == AF_INET6 && here.address.is_link_local())
      scopes.push_back(if_nametoindex(here.name.c_str()));
  return scopes;
}

// The scope of a link-local address is the interface's number on the peer's host; here each of our
// own is tried instead.
std::vector<SocketAddress> reachable_forms(std::span<const SocketAddress> offered,
                                           std::span<const uint32_t> scopes) {
  std::vector<SocketAddress> forms;
  for (const SocketAddress& address : offered) {
    if (address.family() != AF_INET6 || !address.is_link_local()) {
      forms.push_back(address);
      continue;
    }
    for (const uint32_t scope : scopes) {
      sockaddr_in6 scoped = *reinterpret_cast<const sockaddr_in6*>(address.get());
      scoped.sin6_scope_id = scope;
      forms.emplace_back(reinterpret_cast<const sockaddr*>(&scoped), sizeof scoped);
    }
  }
  return forms;
}

// A socket that carries messages.
void tune(int fd) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // An idle connection whose peer's host has gone is noticed after 10 + 3 * 5 s.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  // Within a host there is no congestion to control, and pacing (bbr) halves the bandwidth. Over a
  // network the administrator's choice stands.
  SocketAddress here = SocketAddress::of_local_end(fd), there = SocketAddress::of_remote_end(fd);
  here.set_port(0);
  there.set_port(0);
  if (here != there && !here.is_loopback()) return;
  for (const std::string_view name : {"reno", "cubic"})
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                   static_cast<socklen_t>(name.size())) == 0)
      return;
}

class TcpEndpoint;

class TcpChannel final : public Channel {
 public:
  TcpChannel(TcpEndpoint& endpoint, uint32_t peer, uint32_t slot)
      : endpoint_(endpoint), peer_(peer), slot_(slot) {}

  Status send(Outgoing& message) override {
    if (!stream_)
      if (const Status status = join(); !stream_) return status;
    return seen(stream_->send(message));
  }
  Status peek(Incoming& message, View& view) override {
    view = {};
    if (!stream_)
      if (const Status status = join(); !stream_) return status;
    return seen(stream_->peek(message, view));
  }
  void release(Incoming& message, size_t bytes) override { stream_->release(message, bytes); }
  Status receive(Incoming& message, std::span<const Segment> to) override {
    if (!stream_)
      if (const Status status = join(); !stream_) return status;
    return seen(stream_->receive(message, to));
  }

  // False when it has moved already.
  bool interests(std::vector<pollfd>& descriptors, int& cap_ms);
  bool waits_for_arrival() const { return !stream_ && !dial_; }
  bool vanished();
  void forget();

 private:
  Status join();
  Status join_by_dial();
  Status join_by_arrival();
  Status fail(Code code, std::string_view text);
  Status seen(Status status);
  void wait();

  TcpEndpoint& endpoint_;
  const uint32_t peer_, slot_;
  bool waiting_ = false;  // in the endpoint's list
  Status failed_;
  uint32_t arrivals_seen_ = 0;
  std::unique_ptr<Dial> dial_;
  std::unique_ptr<TcpStream> stream_;
};

// Where to listen and what to offer.
struct Placement {
  SocketAddress listen;
  std::vector<SocketAddress> offered;
};

Placement place_listener(const Config& config) {
  std::vector<SocketAddress> usable = usable_addresses(config, interfaces());
  const bool chosen = !config.interfaces.empty() && !config.interfaces.starts_with('^');
  if (chosen) return {usable[0], {usable[0]}};
  const bool local_job = config.root_fd >= 0
                             ? SocketAddress::of_local_end(config.root_fd).is_loopback()
                             : !config.root.empty() && names_loopback(config.root);
  const auto loopback = std::find_if(usable.begin(), usable.end(),
                                     [](const SocketAddress& a) { return a.is_loopback(); });
  if (loopback != usable.end() && (local_job || loopback == usable.begin()))
    return {*loopback, {*loopback}};
  if (usable.size() > kMaxAddresses) usable.resize(kMaxAddresses);
  return {
      config.family == "ipv4" ? SocketAddress::numeric("0.0.0.0", 0) : SocketAddress::wildcard(0),
      usable};
}

UniqueFd listen_for(const Place& place, const SocketAddress& at) {
  try {
    return listen_on(at, place.config->port_range, place.config->socket_buffer_bytes);
  } catch (const Error& error) {
    hcomm::fail(error.code(), "tcp of rank {} of {}: {}", place.rank, place.ranks, error.text());
  }
}

class TcpEndpoint final : public Endpoint {
 public:
  TcpEndpoint(const Place& place, Placement placement, UniqueFd listener)
      : place_(place),
        buffer_bytes_(place.config->socket_buffer_bytes),
        scopes_(link_scopes()),
        acceptor_(std::move(listener), place),
        channels_(size_t{place.ranks} * kMaxSlots),
        errors_(place.ranks) {
    offer_.host = hash_bytes(place.host_key);
    offer_.addresses = std::move(placement.offered);
  }

  std::string address() const override { return offer_.pack(); }

  void connect(std::span<const std::string> addresses, Deadline) override {
    peers_.assign(addresses.begin(), addresses.end());
  }

  std::optional<Reach> reach(uint32_t peer) const override {
    // A peer that cannot be reached after all shows when its channel is used.
    const bool known = peer < peers_.size() && peer != place_.rank;
    if (!known || Offer::unpack(peers_[peer]).addresses.empty()) return std::nullopt;
    return Reach{.latency_us = 10, .bytes_per_us = 3'000, .map = false};
  }

  Channel& channel(uint32_t peer, uint32_t slot) override {
    HCOMM_CHECK(peer < place_.ranks && peer != place_.rank && slot < kMaxSlots, "peer={} slot={}",
                peer, slot);
    auto& channel = channels_[size_t{peer} * kMaxSlots + slot];
    if (!channel) channel = std::make_unique<TcpChannel>(*this, peer, slot);
    return *channel;
  }

  bool prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) override;
  void after_sleep() override;
  std::string last_error(uint32_t peer) const override {
    return peer < errors_.size() ? errors_[peer] : "";
  }

  // For the channels.
  const Place& place() const { return place_; }
  size_t buffer_bytes() const { return buffer_bytes_; }
  TcpAcceptor& acceptor() { return acceptor_; }
  Offer offer_of(uint32_t peer) const { return Offer::unpack(peers_[peer]); }
  std::span<const uint32_t> scopes() const { return scopes_; }
  uint64_t host() const { return offer_.host; }
  void add_waiting(TcpChannel& channel) { waiting_.push_back(&channel); }
  void set_error(uint32_t peer, std::string_view text) { errors_[peer] = text; }

 private:
  const Place place_;
  const size_t buffer_bytes_;
  const std::vector<uint32_t> scopes_;
  Offer offer_;
  TcpAcceptor acceptor_;
  std::vector<std::string> peers_;
  std::vector<std::unique_ptr<TcpChannel>> channels_;
  // Channels that found something missing since the last sleep: those to wait for.
  std::vector<TcpChannel*> waiting_;
  bool doorbell_armed_ = false;
  int64_t liveness_ns_ = 0;
  std::vector<std::string> errors_;  // the last, by peer
};

// ---- channel

Status TcpChannel::fail(Code code, std::string_view text) {
  failed_ = code;
  endpoint_.set_error(peer_, text);
  return failed_;
}

void TcpChannel::wait() {
  if (waiting_) return;
  waiting_ = true;
  endpoint_.add_waiting(*this);
}

Status TcpChannel::seen(Status status) {
  if (!status.ok() && failed_ != status) return fail(status.code(), stream_->error());
  if (stream_->wants_read() || stream_->wants_write()) wait();
  return status;
}

// Moves towards a connection; stream_ is set when it is there.
Status TcpChannel::join() {
  if (!failed_.ok()) return failed_;
  const Status status = endpoint_.place().rank < peer_ ? join_by_dial() : join_by_arrival();
  if (!stream_) wait();
  return status;
}

Status TcpChannel::join_by_dial() {
  const Place& place = endpoint_.place();
  if (!dial_) {
    Hello hello;
    hello.from = place.rank;
    hello.to = peer_;
    hello.slot = slot_;
    hello.communicator = place.communicator;
    std::copy(std::begin(place.token), std::end(place.token), std::begin(hello.token));
    std::vector<SocketAddress> addresses =
        reachable_forms(endpoint_.offer_of(peer_).addresses, endpoint_.scopes());
    if (addresses.empty())
      return fail(Code::unavailable, "it offers only link-local addresses, and this host has none");
    dial_ = std::make_unique<Dial>(std::move(addresses), std::string(hello.bytes()),
                                   endpoint_.buffer_bytes());
  }
  if (dial_->advance()) {
    UniqueFd fd = dial_->take();
    log(LogLevel::debug, "tcp to rank {} slot {}: joined {}", peer_, slot_,
        SocketAddress::of_remote_end(fd.get()).text());
    tune(fd.get());
    stream_ = std::make_unique<TcpStream>(std::move(fd));
    dial_.reset();
    return {};
  }
  if (dial_->hopeless() != 0) return fail(Code::system, dial_->text());
  const int64_t limit_ms = dial_->refused() ? kRefusedMs : kSilentMs;
  if (dial_->waited_ms() < limit_ms) return {};
  const Offer offer = endpoint_.offer_of(peer_);
  const bool only_loopback =
      std::all_of(offer.addresses.begin(), offer.addresses.end(),
                  [](const SocketAddress& address) { return address.is_loopback(); });
  return fail(Code::unavailable,
              fmt::format("connect: not joined in {} ms: {}; {}", dial_->waited_ms(), dial_->text(),
                          only_loopback && offer.host != endpoint_.host()
                              ? "that rank is on another host and offers loopback only: set "
                                "HCOMM_SOCKET_IFNAME there to an interface that leads here"
                              : "check that the rank lives, that no firewall is between, and "
                                "HCOMM_SOCKET_IFNAME on both hosts"));
}

Status TcpChannel::join_by_arrival() {
  TcpAcceptor& acceptor = endpoint_.acceptor();
  const uint32_t arrivals = acceptor.arrivals() + 1;  // never 0, which is "not looked yet"
  if (arrivals == arrivals_seen_) return {};
  arrivals_seen_ = arrivals;
  if (UniqueFd fd = acceptor.take(peer_, slot_)) {
    tune(fd.get());
    stream_ = std::make_unique<TcpStream>(std::move(fd));
    return {};
  }
  if (const std::string error = acceptor.error(); !error.empty()) return fail(Code::system, error);
  return {};
}

bool TcpChannel::interests(std::vector<pollfd>& descriptors, int& cap_ms) {
  if (stream_) {
    const int events =
        (stream_->wants_read() ? POLLIN : 0) | (stream_->wants_write() ? POLLOUT : 0);
    if (events != 0) descriptors.push_back({stream_->fd(), static_cast<short>(events), 0});
    return true;
  }
  if (!dial_) return arrivals_seen_ == endpoint_.acceptor().arrivals() + 1;
  dial_->interests(descriptors);
  cap_ms = static_cast<int>(std::min<int64_t>(cap_ms, dial_->wait_ms()));
  return true;
}

bool TcpChannel::vanished() {
  return stream_ && stream_->vanished();
}

void TcpChannel::forget() {
  waiting_ = false;
  if (stream_) stream_->forget_wants();
}

// ---- sleep

bool TcpEndpoint::prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) {
  bool still = true, arrivals = false;
  for (TcpChannel* channel : waiting_) {
    still = channel->interests(descriptors, cap_ms) && still;
    arrivals = arrivals || channel->waits_for_arrival();
  }
  if (waiting_.empty()) return true;
  if (arrivals) {
    descriptors.push_back({acceptor_.doorbell(), POLLIN, 0});
    doorbell_armed_ = true;
  }
  // No event tells that a peer's host has gone while bytes are on their way to it.
  cap_ms = std::min<int>(cap_ms, kLivenessNs / 1'000'000);
  if (const int64_t now = now_ns(); now - liveness_ns_ >= kLivenessNs) {
    liveness_ns_ = now;
    for (TcpChannel* channel : waiting_) still = !channel->vanished() && still;
  }
  return still;
}

void TcpEndpoint::after_sleep() {
  for (TcpChannel* channel : waiting_) channel->forget();
  waiting_.clear();
  if (doorbell_armed_) acceptor_.quiet();
  doorbell_armed_ = false;
}

class TcpTransport final : public Transport {
 public:
  std::string_view name() const override { return "tcp"; }
  std::string probe(const Config& config) const override {
    const int family = config.family == "ipv6" ? AF_INET6 : AF_INET;
    UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd && config.family.empty()) fd.reset(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return fd ? "" : fmt::format("no TCP socket: {}", socket_error_text(errno));
  }
  std::unique_ptr<Endpoint> open(const Place& place) const override {
    Placement placement = place_listener(*place.config);
    UniqueFd listener = listen_for(place, placement.listen);
    const uint16_t port = port_of(listener.get());
    for (SocketAddress& address : placement.offered) address.set_port(port);
    log(LogLevel::info, "tcp: rank {} listens at {}, offers {}", place.rank,
        SocketAddress::of_local_end(listener.get()).text(), placement.offered[0].text());
    return std::make_unique<TcpEndpoint>(place, std::move(placement), std::move(listener));
  }
};

}  // namespace

const Transport& tcp_transport();
const Transport& tcp_transport() {
  static const TcpTransport transport;
  return transport;
}

}  // namespace hcomm::transport
