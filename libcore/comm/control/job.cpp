// SPDX-License-Identifier: Apache-2.0
#include "comm/control/job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>

#include "base/bytes.h"
#include "base/error.h"
#include "base/launcher.h"
#include "base/log.h"
#include "comm/control/pmi.h"

namespace hcomm::comm {

namespace {

using View = std::string_view;

class Environment {
 public:
  explicit Environment(std::span<const char* const> entries) : entries_(entries) {}

  std::optional<View> text(View name) const {
    const View value = value_of(entries_, name);
    return value.empty() ? std::nullopt : std::optional(value);  // an empty one counts as unset
  }
  std::optional<int> number(View name) const {
    const std::optional<View> value = text(name);
    if (!value) return std::nullopt;
    int result = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
    if (error != std::errc{} || end != value->data() + value->size() || result < 0)
      fail(Code::invalid_argument, "{}='{}' is no number from 0 up", name, *value);
    return result;
  }
  // The first of `names` that is set.
  std::optional<View> first(std::span<const View> names) const {
    for (const View name : names)
      if (text(name)) return name;
    return std::nullopt;
  }

 private:
  std::span<const char* const> entries_;
};

void read_ranks(const Environment& environment, const Launcher& names, Job& job) {
  const std::optional<int> rank = environment.number(names.rank);
  const std::optional<View> size_name = environment.first(names.size);
  if (!rank || !size_name)
    fail(Code::invalid_argument, "{} is set, {} is not: {} sets both; set or unset both",
         rank ? names.rank : *size_name, rank ? names.size.front() : names.rank, names.name);
  job.source = names.name;
  job.rank = *rank;
  job.size = *environment.number(*size_name);
  if (job.size == 0) fail(Code::invalid_argument, "{}=0: a job has at least one rank", *size_name);
  if (job.rank >= job.size)
    fail(Code::invalid_argument, "{}={} and {}={} do not fit: ranks count from 0 to {}", names.rank,
         job.rank, *size_name, job.size, job.size - 1);
  const std::optional<View> local_rank = environment.first(names.local_rank);
  const std::optional<View> local_size = environment.first(names.local_size);
  job.local_rank = local_rank ? *environment.number(*local_rank) : 0;
  job.local_size = local_size ? *environment.number(*local_size) : 0;  // 0: not known
  if (local_size && job.local_size > job.size)
    fail(Code::invalid_argument, "{}={} and {}={} do not fit: more ranks here than in the job",
         *local_size, job.local_size, *size_name, job.size);
  if (local_rank && local_size && job.local_rank >= job.local_size)
    fail(Code::invalid_argument, "{}={} and {}={} do not fit: local ranks count from 0 to {}",
         *local_rank, job.local_rank, *local_size, job.local_size, job.local_size - 1);
  if (const std::optional<View> id = environment.first(names.job_id))
    job.job_id = *environment.text(*id);
}

// The job's secret; HCOMM_SECRET_FILE must be ours alone.
std::string read_secret(const Config& config) {
  if (!config.secret.empty() || config.secret_file.empty()) return config.secret;
  const std::string& path = config.secret_file;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail_system(errno, "HCOMM_SECRET_FILE: open {}", path);
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && (status.st_mode & 077) != 0)
    fail(Code::invalid_argument,
         "HCOMM_SECRET_FILE: {} can be read or written by others (mode {:o}): chmod 600 it", path,
         status.st_mode & 0777);
  char text[4096];
  const ssize_t bytes = ::read(file.get(), text, sizeof text);
  if (bytes < 0) fail_system(errno, "HCOMM_SECRET_FILE: read {}", path);
  std::string secret(text, static_cast<size_t>(bytes));
  while (!secret.empty() && std::isspace(static_cast<unsigned char>(secret.back())))
    secret.pop_back();
  if (secret.size() < 16)
    fail(Code::invalid_argument, "HCOMM_SECRET_FILE: {} holds {} characters; 16 are the least",
         path, secret.size());
  return secret;
}

// A port that all ranks of a job find by themselves, below the ephemeral ones.
int port_of(View job_id) {
  return 10'000 + static_cast<int>(hash_bytes(job_id) % 20'000);
}

std::string loopback_at(int port) {
  return fmt::format("127.0.0.1:{}", port);
}

void meet_at(Job& job, std::string root) {
  job.way = Job::Way::root;
  job.root = std::move(root);
}

// MASTER_ADDR's host at the port after MASTER_PORT, or loopback where all ranks are here.
void meet_at_master(const Environment& environment, Job& job) {
  const std::optional<View> address = environment.text("MASTER_ADDR");
  const std::optional<int> master_port = environment.number("MASTER_PORT");
  if (!address || !master_port)
    fail(Code::invalid_argument,
         "RANK and WORLD_SIZE are set, {} is not: torchrun sets MASTER_ADDR and MASTER_PORT; or "
         "set HCOMM_ROOT",
         address ? "MASTER_PORT" : "MASTER_ADDR");
  if (*master_port > 65'535 || *master_port == 0)
    fail(Code::invalid_argument, "MASTER_PORT={} is no port", *master_port);
  const int port = *master_port == 65'535 ? 65'534 : *master_port + 1;
  if (job.local_size == job.size) return meet_at(job, loopback_at(port));
  const bool ipv6 = address->find(':') != View::npos && !address->starts_with('[');
  meet_at(job, fmt::format("{}{}{}:{}", ipv6 ? "[" : "", *address, ipv6 ? "]" : "", port));
}

// No PMI: a port made from the job's id, on the first node or on loopback.
void meet_without_help(const Environment& environment, Job& job, const std::string& why) {
  const std::optional<View> step = environment.text("SLURM_STEP_ID");
  if (job.source == "Slurm") job.job_id = fmt::format("{}.{}", job.job_id, step.value_or("0"));
  if (environment.number("SLURM_STEP_NUM_NODES") == 1) job.local_size = job.size;
  const int port = port_of(job.job_id);
  if (job.local_size == job.size && !job.job_id.empty()) return meet_at(job, loopback_at(port));
  constexpr View kLists[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"};
  const std::optional<View> list = environment.first(kLists);
  if (job.source == "Slurm" && list)
    return meet_at(job, fmt::format("{}:{}", first_node(*environment.text(*list)), port));
  fail(Code::unavailable,
       "the ranks that {} started have no way to meet{}: set HCOMM_ROOT and HCOMM_SECRET_FILE",
       job.source, why.empty() ? "" : " (" + why + ")");
}

void choose_way(const Config& config, const Environment& environment, Job& job) {
  if (job.size == 1) return;
  if (!config.root.empty()) return meet_at(job, config.root);
  if (job.source == "hcc-launch")
    fail(Code::invalid_argument,
         "HCOMM_RANK and HCOMM_SIZE are set, HCOMM_ROOT is not: hcc-launch sets all three; set "
         "HCOMM_ROOT to an address and port of rank 0's host");
  if (job.source == "torchrun") return meet_at_master(environment, job);
  if (const std::optional<int> fd = environment.number("PMI_FD"); fd && job.source != "Open MPI") {
    job.way = Job::Way::pmi1;
    job.pmi_fd = *fd;
    return;
  }
  std::string why;
  if (environment.text("PMIX_NAMESPACE")) {
    why = pmix_problem();
    if (why.empty()) {
      job.way = Job::Way::pmix;
      return;
    }
    log(LogLevel::info, "PMIx is there, its library is not: {}", why);
  }
  meet_without_help(environment, job, why);
}

}  // namespace

std::string first_node(View list) {
  // "a[07-12]b,c": up to the first comma outside brackets, each bracket replaced by its first
  // entry.
  std::string node;
  for (size_t i = 0; i < list.size() && list[i] != ','; i++) {
    if (list[i] != '[') {
      node += list[i];
      continue;
    }
    const size_t end = std::min(list.find(']', i), list.size());
    const View inside = list.substr(i + 1, end - i - 1);
    node += inside.substr(0, inside.find_first_of(",-"));
    i = end;
  }
  return node;
}

Job find_job(const Config& config, std::span<const char* const> entries) {
  const Environment environment(entries);
  Job job;
  if (const Launcher* launcher = launcher_of(entries)) {
    read_ranks(environment, *launcher, job);
    choose_way(config, environment, job);
  }
  if (job.local_size == 0) job.local_size = std::max(job.local_rank + 1, job.size == 1 ? 1 : 0);
  job.root_fd = job.rank == 0 ? config.root_fd : -1;
  if (job.way == Job::Way::root) job.secret = read_secret(config);
  if (!config.job_id.empty()) job.job_id = config.job_id;
  return job;
}

namespace {

Root root_of(const Job& job) {
  Root root;
  root.state = job.root_fd >= 0 ? Root::State::listens : Root::State::may_be_late;
  root.addresses = transport::resolve(job.root, 0);
  for (const transport::SocketAddress& address : root.addresses) {
    if (address.port() == 0)
      fail(Code::invalid_argument, "the root {} has no port: HCOMM_ROOT is ADDRESS:PORT", job.root);
    if (job.secret.empty() && !address.is_loopback())
      fail(Code::invalid_argument,
           "the root {} ({}) can be reached from other hosts and the job has no secret: set "
           "HCOMM_SECRET_FILE to a file that all ranks have, or use a loopback address",
           job.root, address.text());
  }
  const std::string secret =
      job.secret.empty() ? fmt::format("loopback, user {}", geteuid()) : job.secret;
  root.nonce = derive_nonce(secret, job.job_id);
  return root;
}

}  // namespace

const Root& meet(Service& service, const Config& config, const Job& job, Meeting& meeting,
                 Deadline deadline) {
  if (meeting.root) return *meeting.root;
  const bool first = job.rank == 0;
  const auto rank = static_cast<uint32_t>(job.rank);
  if (job.way == Job::Way::root) {
    Root root = root_of(job);
    if (first) {
      meeting.hub = Hub::listen_at(service, root, UniqueFd(job.root_fd), Hub::Worlds::many);
      root = meeting.hub->root();
    }
    meeting.root = std::move(root);
    return *meeting.root;
  }
  if (job.way == Job::Way::alone) {
    const Root here{.addresses = {transport::SocketAddress::loopback(0)}, .nonce = random_nonce()};
    meeting.hub = Hub::listen_at(service, here, {}, Hub::Worlds::many);
    meeting.root = meeting.hub->root();
    return *meeting.root;
  }
  if (first) meeting.hub = Hub::listen(service, config, Hub::Worlds::many);
  std::string text = first ? id_hex(meeting.hub->id()) : "";
  if (job.way == Job::Way::pmi1) text = share_by_pmi1(job.pmi_fd, rank, text, deadline);
  if (job.way == Job::Way::pmix) text = share_by_pmix(rank, text, deadline);
  meeting.root = decode_id(id_from_hex(text));
  return *meeting.root;
}

}  // namespace hcomm::comm
