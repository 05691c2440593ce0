// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "hcc-bench/peers/harness.h"

namespace hcomm::compare {

namespace {

constexpr size_t kLastLines = 4;
constexpr int kSliceMs = 50;  // how soon a signal or the end of the library is noticed

UniqueFd make_region() {
  UniqueFd fd(memfd_create("hcc-bench", MFD_CLOEXEC));
  if (!fd || ftruncate(fd.get(), sizeof(peer_region)) != 0)
    fail_system(errno, "memory that the ranks share");
  return fd;
}

UniqueFd listen_at(const std::string& name) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!fd || bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(fd.get(), 4) != 0)
    fail_system(errno, "a socket for the ranks");
  return fd;
}

std::string fresh_name() {
  std::array<std::byte, 8> random{};
  fill_random(random);
  std::string name = fmt::format("hcc-bench.{}.", getpid());
  for (const std::byte byte : random) name += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return name;
}

// Any user may connect to an abstract name.
bool ours(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

int64_t after(double seconds) {
  return now_ns() + static_cast<int64_t>(seconds * 1e9);
}

}  // namespace

std::vector<int> usable_cpus() {
  std::vector<int> list;
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) list.push_back(cpu);
  if (list.empty()) list.push_back(0);
  return list;
}

std::optional<Measurement> parse_answer(const std::string& line) {
  if (line == "unsupported") return std::nullopt;
  Measurement m;
  int end = -1;
  const int fields = std::sscanf(
      line.c_str(), "ok %lf %lf %lf %" SCNd64 " %" SCNd64 " %" SCNd64 " %lf %lf%n", &m.min_us,
      &m.median_us, &m.p99_us, &m.batches, &m.batch, &m.errors, &m.before_ns, &m.after_ns, &end);
  const bool sane = fields == 8 && end == static_cast<int>(line.size()) && m.min_us >= 0 &&
                    m.median_us >= m.min_us && std::isfinite(m.p99_us) && m.batches > 0;
  if (!sane) fail(Code::peer_failed, "answered '{}'", last_lines(line, 1));
  return m;
}

Session::Session(Launch launch, const Job& job, const std::atomic<int>& stop)
    : stop_(stop), region_(make_region()) {
  const std::string name = fresh_name();
  listener_ = listen_at(name);
  for (const std::string& word :
       {name, fmt::format("/proc/{}/fd/{}", getpid(), region_.get()), std::to_string(job.ranks),
        std::to_string(getpid()), fmt::format("{}", fmt::join(job.cpus, ",")), job.memory})
    launch.words.push_back(word);
  child_.emplace(launch);
  accept_driver(job.start_s);
  const std::string hello = read_line(job.start_s);
  if (!hello.starts_with("hello ")) fail(Code::peer_failed, "said '{}'", last_lines(hello, 1));
  version_ = last_lines(hello.substr(6), 1);
}

// The ranks leave when the socket is closed; libraries take a moment to say farewell.
Session::~Session() {
  socket_.reset();
  child_->end(3000);
}

void Session::accept_driver(double limit_s) {
  const int64_t end_ns = after(limit_s);
  while (!socket_) {
    await(listener_.get(), end_ns);
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd && ours(fd.get())) socket_ = std::move(fd);
  }
  listener_.reset();
}

// Until `fd` has something.
void Session::await(int fd, int64_t end_ns) {
  while (true) {
    pollfd entry{fd, POLLIN, 0};
    const int ready = poll(&entry, 1, kSliceMs);
    if (stop_.load() != 0) fail(Code::aborted, "stopped");
    if (ready > 0) return;
    if (!child_->running()) ended();
    if (now_ns() > end_ns) {
      const std::string words = last_lines(child_->output(), kLastLines);
      fail(Code::timeout, "no answer in time{}{}", words.empty() ? "" : ": ", words);
    }
  }
}

void Session::ended() {
  child_->end(5000);
  const std::string words = last_lines(child_->output(), kLastLines);
  fail(Code::peer_failed, "ended, {}{}{}", child_->end_text(), words.empty() ? "" : ": ", words);
}

std::string Session::read_line(double limit_s) {
  const int64_t end_ns = after(limit_s);
  while (true) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    await(socket_.get(), end_ns);
    char block[512];
    const ssize_t got = read(socket_.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) ended();
    received_.append(block, static_cast<size_t>(got));
    if (received_.size() > 65536) fail(Code::peer_failed, "an answer without an end");
  }
}

std::optional<Measurement> Session::measure(const Question& q) {
  // The ranks end themselves a little later than we would: also where nobody is left to do it.
  const std::string line = fmt::format("measure {} {} {:.6f} {}\n", q.operation, q.bytes,
                                       q.budget_s, static_cast<int64_t>(std::ceil(q.limit_s)) + 10);
  const ssize_t sent = send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(line.size())) ended();
  return parse_answer(read_line(q.limit_s));
}

}  // namespace hcomm::compare
