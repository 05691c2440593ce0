// SPDX-License-Identifier: Apache-2.0
// The hub while ranks join: listeners, guests, seats, the deadline.
#include "comm/control/hub.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/log.h"
#include "base/process.h"

namespace hcomm::comm {

using transport::SocketAddress;

namespace {

constexpr int64_t kMs = 1'000'000;
constexpr size_t kMaxGuests = 64;
constexpr uint32_t kMaxRanks = 65536;
constexpr int64_t kGuestMs = 1900;  // with the tick's grain: within 2 s
constexpr int64_t kLingerMs = 2000;

std::string version_text(uint32_t code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

// The first word of `a` that is not the same in `b`, "(not set)" where there is none.
std::string differing_word(std::string_view a, std::string_view b) {
  while (!a.empty()) {
    const std::string_view word = a.substr(0, a.find(' '));
    a.remove_prefix(std::min(a.size(), word.size() + 1));
    const std::string padded = fmt::format(" {} ", b);
    if (padded.find(fmt::format(" {} ", word)) == std::string::npos) return std::string(word);
  }
  return "(not set)";
}

// Listens on each address, all at one port where that is free.
std::vector<UniqueFd> listen_on_all(std::vector<SocketAddress>& addresses, std::string_view range) {
  std::vector<UniqueFd> listeners;
  std::vector<SocketAddress> usable;
  std::string problem;
  for (SocketAddress address : addresses) {
    UniqueFd listener;
    try {
      if (!usable.empty() && address.port() == 0) {
        SocketAddress same_port = address;
        same_port.set_port(usable[0].port());
        listener = transport::listen_on(same_port, "");
      }
    } catch (const Error&) {
      // taken there; any other port does as well
    }
    try {
      if (!listener) listener = transport::listen_on(address, range);
      address.set_port(transport::port_of(listener.get()));
      usable.push_back(address);
      listeners.push_back(std::move(listener));
    } catch (const Error& error) {
      problem += (problem.empty() ? "" : "; ") + error.text();
    }
  }
  if (usable.empty()) fail(Code::system, "rank 0 cannot listen for the other ranks: {}", problem);
  if (!problem.empty()) log(LogLevel::info, "rank 0 does not listen everywhere: {}", problem);
  addresses = std::move(usable);
  return listeners;
}

}  // namespace

std::unique_ptr<Hub> Hub::listen(Service& service, const Config& config, Worlds worlds) {
  Root root;
  root.addresses = transport::usable_addresses(config, transport::interfaces());
  if (root.addresses.size() > UniqueId::kMaxAddresses)
    root.addresses.erase(root.addresses.begin() + UniqueId::kMaxAddresses - 1,
                         root.addresses.end() - 1);
  root.nonce = random_nonce();
  std::vector<UniqueFd> listeners = listen_on_all(root.addresses, config.port_range);
  return std::unique_ptr<Hub>(new Hub(service, std::move(root), std::move(listeners), worlds));
}

std::unique_ptr<Hub> Hub::listen_at(Service& service, const Root& root, UniqueFd listener,
                                    Worlds worlds) {
  Root mine = root;
  std::vector<UniqueFd> listeners;
  if (listener) {  // a launcher's: it blocks and goes to children, ours must not
    int listening = 0;
    socklen_t bytes = sizeof listening;
    if (::getsockopt(listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 ||
        listening == 0)
      hcomm::fail(
          Code::invalid_argument,
          "HCOMM_ROOT_FD={} is no listening socket here; hcc-launch sets it for rank 0 alone: "
          "unset it, or start this process by hcc-launch",
          listener.release());
    if (::fcntl(listener.get(), F_SETFL, O_NONBLOCK) != 0 ||
        ::fcntl(listener.get(), F_SETFD, FD_CLOEXEC) != 0)
      fail_system(errno, "HCOMM_ROOT_FD={}: fcntl", listener.get());
    listeners.push_back(std::move(listener));
  } else {
    listeners = listen_on_all(mine.addresses, "");
  }
  return std::unique_ptr<Hub>(new Hub(service, std::move(mine), std::move(listeners), worlds));
}

Hub::Hub(Service& service, Root root, std::vector<UniqueFd> listeners, Worlds worlds)
    : service_(service),
      root_(std::move(root)),
      job_(fingerprint(root_.nonce)),
      worlds_(worlds),
      listeners_(std::move(listeners)) {
  log(LogLevel::info, "the root of job {} listens at {}", job_, root_.text());
  try {
    for (const UniqueFd& listener : listeners_) {
      const int fd = listener.get();
      service_.watch(fd, [this, fd] { accept_from(fd); });
    }
  } catch (const Error&) {
    service_.run([this] { close(); });
    throw;
  }
}

Hub::~Hub() {
  if (service_.inherited()) return;  // the parent's connections, not ours
  if (!awaited_) await_goodbyes(goodbyes_end());
  service_.run([this] { close(); });
  for (const Seat& seat : seats_)
    if (seat.link) seat.link->flush(100);
}

void Hub::close() {
  for (const UniqueFd& listener : listeners_) service_.unwatch(listener.get());
  if (phase_ == Phase::joining && !seats_.empty())
    fail_join(Code::aborted, "rank 0 ended before all ranks had joined: " + joined_text());
  Encoder frame(Kind::goodbye);
  const Packet goodbye = packet(frame);
  for (const Seat& seat : seats_) {
    if (!seat.link) continue;
    seat.link->send(goodbye);
    seat.link->finish_sending();
    seat.link->stop();
  }
  guests_.clear();
  service_.cancel(tick_);
}

Deadline Hub::goodbyes_end() {
  return Deadline::after_ms(kLingerMs);
}

void Hub::await_goodbyes(Deadline deadline) {
  if (service_.inherited()) return;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(deadline.left_ms()), [&] { return all_left_; });
  awaited_ = true;
}

bool Hub::over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

void Hub::accept_from(int listener) {
  while (guests_.size() < kMaxGuests) {
    if (listeners_.empty()) return;  // the last one completed the world
    UniqueFd fd = transport::accept_on(listener);
    if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
      return out_of_descriptors(errno);
    if (!fd) return;  // nobody there
    set_control_options(fd.get());
    auto link = std::make_unique<Link>(service_, std::move(fd), FrameReader(kMaxHelloBytes));
    hear_guest(host(std::move(link)));  // mostly the hello is there already
  }
  pause_listeners(0);
}

Hub::Guests::iterator Hub::host(std::unique_ptr<Link> link) {
  const auto guest = guests_.insert(
      guests_.end(), Guest{.link = std::move(link), .until_ns = now_ns() + kGuestMs * kMs});
  guest->link->start([this, guest] { hear_guest(guest); });
  need_tick(kTickMs);
  return guest;
}

void Hub::pause_listeners(int64_t ms) {
  resume_ns_ = now_ns() + ms * kMs;
  for (const UniqueFd& each : listeners_) service_.want(each.get(), Service::Want::nothing);
  need_tick(kTickMs);
}

void Hub::resume_listeners() {
  if (resume_ns_ == 0 || now_ns() < resume_ns_ || guests_.size() >= kMaxGuests) return;
  resume_ns_ = 0;
  for (const UniqueFd& each : listeners_) service_.want(each.get(), Service::Want::read);
}

void Hub::out_of_descriptors(int error) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (phase_ == Phase::joining)
    fail_join(Code::system,
              fmt::format("rank 0's process (host {}, pid {}) cannot accept more ranks: {}; its "
                          "limit is {} descriptors: raise it with ulimit -n; {}",
                          host_name(), getpid(), std::generic_category().message(error),
                          limit.rlim_cur, joined_text()));
  pause_listeners(kTickMs);
}

void Hub::hear_guest(Guests::iterator guest) {
  const bool open = guest->link->receive();
  const std::optional<Frame> frame = guest->link->next();
  if (frame && !guest->refused && guest->hello.empty()) {
    if (frame->kind == Kind::hello) return greet(guest, frame->body);
    guests_.erase(guest);
    return;
  }
  if (!open || (guest->link->reader().broken() && !guest->refused)) guests_.erase(guest);
}

void Hub::greet(Guests::iterator guest, std::string_view body) {
  Hello hello;
  bool mac_ok = false;
  if (!Hello::decode(body, root_.nonce, hello, mac_ok)) {
    guests_.erase(guest);
    return;
  }
  const auto usage = static_cast<uint8_t>(Code::invalid_usage);
  if (hello.protocol != Hello::kProtocol)
    return refuse(guest, {usage, false,
                          fmt::format("this rank speaks control protocol {}, rank 0 speaks {}; use "
                                      "one version of HCOMM",
                                      hello.protocol, Hello::kProtocol)});
  if (!mac_ok)
    return refuse(guest, {usage, true,
                          fmt::format("this is the root of job {}, not of job {} (another id or "
                                      "secret)",
                                      job_, hello.job.substr(0, 8))});
  if (phase_ == Phase::failed) return refuse(guest, failed_before());
  if (is_early(hello)) {
    guest->hello = body;
    guest->until_ns = INT64_MAX;
    return;
  }
  const std::string problem = disagreement(hello);
  if (problem.empty()) return seat(guest, std::move(hello));
  // It will never be complete: all learn why at once.
  if (phase_ == Phase::joining) fail_join(Code::invalid_usage, problem);
  refuse(guest, {usage, false, problem});
}

// It comes for the next world while others, or the end of its own last connection, are on their way
// out of this one.
bool Hub::is_early(const Hello& hello) const {
  if (phase_ != Phase::ready || worlds_ == Worlds::one || hello.rank >= seats_.size()) return false;
  const Seat& last = seats_[hello.rank];
  return last.state == Seat::State::left ||
         (last.state == Seat::State::joined && last.hello.pid == hello.pid &&
          last.hello.host == hello.host && last.hello.attempt != hello.attempt);
}

std::string Hub::disagreement(const Hello& hello) const {
  if (hello.ranks == 0 || hello.ranks > kMaxRanks || hello.rank >= hello.ranks)
    return fmt::format("rank {} of {} ranks: ranks count from 0 and {} is the limit", hello.rank,
                       hello.ranks, kMaxRanks);
  const auto other = std::find_if(seats_.begin(), seats_.end(), [](const Seat& seat) {
    return seat.state != Seat::State::empty;
  });
  if (other == seats_.end()) return "";
  const Hello& first = other->hello;
  if (hello.ranks != first.ranks)
    return fmt::format("rank {} says that there are {} ranks, rank {} says {}", hello.rank,
                       hello.ranks, first.rank, first.ranks);
  if (hello.library != first.library)
    return fmt::format(
        "rank {} (host {}) has HCOMM {}, rank {} (host {}) has {}; install one "
        "version",
        hello.rank, hello.host, version_text(hello.library), first.rank, first.host,
        version_text(first.library));
  if (hello.settings != first.settings)
    return fmt::format(
        "rank {} (host {}) has {}, rank {} (host {}) has {}; set it alike on all "
        "ranks",
        hello.rank, hello.host, differing_word(hello.settings, first.settings), first.rank,
        first.host, differing_word(first.settings, hello.settings));
  return "";
}

void Hub::seat(Guests::iterator guest, Hello hello) {
  if (seats_.empty()) seats_.resize(hello.ranks);
  const uint32_t rank = hello.rank;
  Seat& seat = seats_[rank];
  if (seat.state != Seat::State::empty) {
    if (seat.hello.attempt == hello.attempt) {  // it came by two addresses at once
      guests_.erase(guest);
      return;
    }
    return refuse(guest,
                  {static_cast<uint8_t>(Code::invalid_usage), false,
                   fmt::format("rank {} has joined already ({}), this is host {}, pid {}: each "
                               "rank needs a number of its own, each communicator a new id",
                               rank, rank_text(rank), hello.host, hello.pid)});
  }
  if (hello.left_ms != 0) {
    const int64_t until = now_ns() + hello.left_ms * kMs;
    if (deadline_ns_ == 0 || until < deadline_ns_) deadline_ns_ = until;
  }
  seat = {.link = std::move(guest->link), .hello = std::move(hello), .state = Seat::State::joined};
  guests_.erase(guest);
  seat.link->stop();
  seat.link->reader().set_max(kMaxFrameBytes);
  seat.link->start([this, rank] { hear(rank); });
  const Mac proof = seat.hello.answer(root_.nonce);
  Encoder welcome(Kind::welcome);
  seat.link->send(packet(welcome.raw({reinterpret_cast<const char*>(proof.data()), proof.size()})));
  const bool complete = std::all_of(seats_.begin(), seats_.end(), [](const Seat& each) {
    return each.state == Seat::State::joined;
  });
  if (complete) announce();
}

void Hub::refuse(Guests::iterator guest, const Refusal& refusal) {
  guest->refused = true;
  guest->hello.clear();
  guest->until_ns = now_ns() + kGuestMs * kMs;
  guest->link->send(refusal.encode());
  guest->link->finish_sending();
}

// For those who come when the join has failed: nothing that they can do would mend it.
Refusal Hub::failed_before() const {
  Refusal refusal = failed_;
  refusal.text += worlds_ == Worlds::one
                      ? "; this id is of no more use: make a new one"
                      : "; the ranks of this job cannot join any more: start the job again";
  return refusal;
}

void Hub::fail_join(Code code, const std::string& text) {
  phase_ = Phase::failed;
  {
    const std::lock_guard lock(mutex_);
    over_ = worlds_ == Worlds::one;
  }
  failed_ = {static_cast<uint8_t>(code), false, text};
  for (Seat& seat : seats_) {
    if (!seat.link) continue;
    seat.link->stop();
    seat.state = Seat::State::left;
    refuse(host(std::move(seat.link)), failed_);
  }
}

std::string Hub::joined_text() const {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < seats_.size(); rank++)
    if (seats_[rank].state == Seat::State::empty) missing.push_back(rank);
  if (seats_.empty()) return "no rank joined";
  return fmt::format("{} of {} joined, missing: {}", seats_.size() - missing.size(), seats_.size(),
                     missing.empty() ? "none" : rank_list(missing));
}

void Hub::announce() {
  phase_ = Phase::ready;
  board_.emplace(static_cast<uint32_t>(seats_.size()));
  {
    const std::lock_guard lock(mutex_);
    all_left_ = false;
  }
  if (worlds_ == Worlds::one) close_listeners();
  Encoder frame(Kind::ready);
  frame.u32(world_++).u32(static_cast<uint32_t>(seats_.size()));
  for (const Seat& seat : seats_) frame.text(seat.hello.host).u32(seat.hello.pid);
  const Packet ready = packet(frame);
  for (const Seat& seat : seats_) seat.link->send(ready);
}

void Hub::close_listeners() {
  for (const UniqueFd& each : listeners_) service_.unwatch(each.get());
  listeners_.clear();
}

bool Hub::world_is_over() const {
  return worlds_ == Worlds::many && std::all_of(seats_.begin(), seats_.end(), [](const Seat& seat) {
           return seat.state == Seat::State::left;
         });
}

// After a death there is no next world.
void Hub::refuse_early_if_broken() {
  const auto dead = std::find_if(seats_.begin(), seats_.end(),
                                 [](const Seat& seat) { return seat.state == Seat::State::dead; });
  if (dead == seats_.end()) return;
  const auto rank = static_cast<uint32_t>(dead - seats_.begin());
  for (auto guest = guests_.begin(); guest != guests_.end(); guest++)
    if (!guest->hello.empty())
      refuse(guest,
             {static_cast<uint8_t>(Code::peer_failed), false, rank_text(rank) + " has died"});
}

void Hub::open_next_world() {
  phase_ = Phase::joining;
  deadline_ns_ = 0;
  seats_.clear();
  board_.reset();
  std::vector<Guests::iterator> waiting;
  for (auto guest = guests_.begin(); guest != guests_.end(); guest++)
    if (!guest->hello.empty()) waiting.push_back(guest);
  for (const auto guest : waiting) greet(guest, std::exchange(guest->hello, {}));
}

void Hub::need_tick(int64_t ms) {
  if (ticking_ && ms > 0) return;
  if (ticking_) service_.cancel(tick_);
  ticking_ = true;
  tick_ = service_.run_after(ms, [this] { tick(); });
}

void Hub::tick() {
  ticking_ = false;
  const int64_t now = now_ns();
  for (auto guest = guests_.begin(); guest != guests_.end();)
    guest = now >= guest->until_ns ? guests_.erase(guest) : std::next(guest);
  if (phase_ == Phase::joining && deadline_ns_ != 0 && now >= deadline_ns_)
    fail_join(Code::timeout, fmt::format("the init timeout is over: {}; look at what the missing "
                                         "ranks do, or raise HCOMM_INIT_TIMEOUT",
                                         joined_text()));
  if (phase_ == Phase::ready) {
    deliver(board_->expire(now));
    look_for_mismatches();
    refuse_early_if_broken();
    if (world_is_over()) open_next_world();
  }
  resume_listeners();
  const bool joining = phase_ == Phase::joining && deadline_ns_ != 0;
  const bool waiting = phase_ == Phase::ready && board_->waiting();
  if (!guests_.empty() || resume_ns_ != 0 || joining || waiting) need_tick(kTickMs);
}

}  // namespace hcomm::comm
