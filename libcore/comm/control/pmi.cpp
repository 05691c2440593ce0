// SPDX-License-Identifier: Apache-2.0
#include "comm/control/pmi.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/dynlib.h"
#include "base/error.h"
#include "base/fd.h"

namespace hcomm::comm {

namespace {

constexpr const char* kKey = "hcomm-root";

// PMI-1: lines "cmd=NAME key=value ...\n", each answered by a line. The protocol is that of MPICH's
// simple PMI, which Slurm's plug-in speaks too.
class Pmi1 {
 public:
  Pmi1(int fd, Deadline deadline) : fd_(fd), deadline_(deadline) {}

  // Sends a command; returns the value of `want` in the answer `expected`.
  std::string ask(std::string_view command, std::string_view expected, std::string_view want) {
    send(fmt::format("cmd={}\n", command));
    const std::string line = receive();
    const std::string_view name = command.substr(0, command.find(' '));
    if (value(line, "cmd") != expected)
      fail(Code::system, "PMI: {} was answered by '{}', not by {}", name, line, expected);
    const std::string code = value(line, "rc");
    if (!code.empty() && code != "0")
      fail(Code::system, "PMI: {} failed: '{}'; is the launcher one that speaks PMI-1?", name,
           line);
    return want.empty() ? "" : value(line, want);
  }

 private:
  void wait(short events) {
    pollfd each{fd_, events, 0};
    while (true) {
      if (deadline_.passed())
        fail(Code::timeout,
             "PMI: the launcher did not answer before the init timeout; do all ranks of the job "
             "start HCOMM? (HCOMM_INIT_TIMEOUT)");
      const int64_t ms = std::min<int64_t>(deadline_.left_ms(), 60'000);
      if (::poll(&each, 1, static_cast<int>(ms)) > 0) return;
    }
  }

  void send(std::string_view line) {
    while (!line.empty()) {
      wait(POLLOUT);
      const ssize_t bytes = ::send(fd_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (bytes < 0 && again(errno)) continue;
      if (bytes < 0) fail_system(errno, "PMI: write to the launcher (descriptor {})", fd_);
      line.remove_prefix(static_cast<size_t>(bytes));
    }
  }

  std::string receive() {
    while (true) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      if (buffer_.size() > 65'536) fail(Code::system, "PMI: the launcher sends no line");
      wait(POLLIN);
      char more[4096];
      const ssize_t bytes = ::read(fd_, more, sizeof more);
      if (bytes < 0 && again(errno)) continue;
      if (bytes < 0) fail_system(errno, "PMI: read from the launcher (descriptor {})", fd_);
      if (bytes == 0) fail(Code::peer_failed, "PMI: the launcher has closed the connection");
      buffer_.append(more, static_cast<size_t>(bytes));
    }
  }

  static std::string value(std::string_view line, std::string_view key) {
    while (!line.empty()) {
      const std::string_view word = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(line.size(), word.size() + 1));
      const size_t equals = word.find('=');
      if (equals != std::string_view::npos && word.substr(0, equals) == key)
        return std::string(word.substr(equals + 1));
    }
    return "";
  }

  const int fd_;
  const Deadline deadline_;
  std::string buffer_;
};

// PMIx: what we need of its ABI (version 2 of the library, stable since PMIx 3).
namespace pmix {

constexpr int kSuccess = 0;
constexpr uint16_t kInt = 6, kString = 3;  // PMIX_INT, PMIX_STRING
constexpr uint8_t kGlobal = 3;             // PMIX_GLOBAL

struct Proc {
  char nspace[256];
  uint32_t rank;
};

struct Value {
  uint16_t type;
  union {
    char* text;
    int number;
    uint64_t room[8];
  };
};

struct Info {
  char key[512];
  uint32_t flags;
  Value value;
};

using Init = int(Proc*, Info*, size_t);
using Put = int(uint8_t scope, const char* key, Value*);
using Commit = int();
using Fence = int(const Proc*, size_t, const Info*, size_t);
using Get = int(const Proc*, const char* key, const Info*, size_t, Value**);
using Finalize = int(const Info*, size_t);
using ErrorString = const char*(int);

const DynLib& library() {
  static const DynLib lib{"libpmix.so.2"};
  return lib;
}

void check(int status, const char* what) {
  if (status == kSuccess) return;
  const char* text = library().function<ErrorString>("PMIx_Error_string")(status);
  fail(Code::system, "{}: {} ({}); was this process started by mpirun or srun --mpi=pmix?", what,
       text != nullptr ? text : "error", status);
}

}  // namespace pmix

}  // namespace

std::string share_by_pmi1(int fd, uint32_t rank, std::string_view text, Deadline deadline) {
  Pmi1 pmi(fd, deadline);
  pmi.ask("init pmi_version=1 pmi_subversion=1", "response_to_init", "");
  const std::string room = pmi.ask("get_maxes", "maxes", "vallen_max");
  if (!room.empty() && std::strtoul(room.c_str(), nullptr, 10) <= text.size())
    fail(Code::unavailable, "PMI: values have room for {} characters, {} are needed", room,
         text.size());
  const std::string space = pmi.ask("get_my_kvsname", "my_kvsname", "kvsname");
  if (rank == 0)
    pmi.ask(fmt::format("put kvsname={} key={} value={}", space, kKey, text), "put_result", "");
  pmi.ask("barrier_in", "barrier_out", "");
  std::string shared(text);
  if (rank != 0)
    shared = pmi.ask(fmt::format("get kvsname={} key={}", space, kKey), "get_result", "value");
  // Now, not at the end: a launcher takes a process that ends without it for a failed one.
  pmi.ask("finalize", "finalize_ack", "");
  return shared;
}

std::string pmix_problem() {
  return pmix::library().loaded() ? "" : pmix::library().reason();
}

std::string share_by_pmix(uint32_t rank, std::string_view text, Deadline deadline) {
  const DynLib& lib = pmix::library();
  pmix::Info limit{};
  std::strcpy(limit.key, "pmix.timeout");
  limit.value.type = pmix::kInt;
  limit.value.number =
      static_cast<int>(std::min<int64_t>(deadline.left_ms() / 1000 + 1, 1'000'000));
  const size_t limits = deadline.endless() ? 0 : 1;

  pmix::Proc self{};
  pmix::check(lib.function<pmix::Init>("PMIx_Init")(&self, nullptr, 0), "PMIx_Init");
  std::string shared(text);
  if (rank == 0) {
    pmix::Value value{};
    value.type = pmix::kString;
    value.text = shared.data();
    pmix::check(lib.function<pmix::Put>("PMIx_Put")(pmix::kGlobal, kKey, &value), "PMIx_Put");
    pmix::check(lib.function<pmix::Commit>("PMIx_Commit")(), "PMIx_Commit");
  }
  pmix::Proc all = self;
  all.rank = UINT32_MAX - 1;  // PMIX_RANK_WILDCARD
  pmix::check(lib.function<pmix::Fence>("PMIx_Fence")(&all, 1, &limit, limits), "PMIx_Fence");
  if (rank != 0) {
    pmix::Proc root = self;
    root.rank = 0;
    pmix::Value* value = nullptr;
    pmix::check(lib.function<pmix::Get>("PMIx_Get")(&root, kKey, &limit, limits, &value),
                "PMIx_Get of rank 0's address");
    if (value->type != pmix::kString) fail(Code::system, "PMIx_Get: rank 0's address is no text");
    shared = value->text;
    ::free(value->text);
    ::free(value);
  }
  pmix::check(lib.function<pmix::Finalize>("PMIx_Finalize")(nullptr, 0), "PMIx_Finalize");
  return shared;
}

}  // namespace hcomm::comm
