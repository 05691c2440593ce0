// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/plan.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/process.h"
#include "cli/text.h"
#include "hcc-launch/environment.h"
#include "hcc-launch/output/files.h"

namespace hcomm::launch {

namespace {

using View = std::string_view;
using Warn = std::function<void(std::string)>;

std::string random_hex(size_t bytes) {
  unsigned char raw[16];
  if (getrandom(raw, bytes, 0) != static_cast<ssize_t>(bytes))
    fail_system(errno, "get {} random bytes", bytes);
  return fmt::format("{:02x}", fmt::join(raw, raw + bytes, ""));
}

std::string in_folder(const std::string& folder, const std::string& path) {
  return folder.empty() || path.starts_with('/') ? path : fmt::format("{}/{}", folder, path);
}

// errno of executing the file: 0, ENOENT, EACCES, ...
int executable_error(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return errno;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

[[noreturn]] void cannot_execute(const std::string& program, int error, View where) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  throw PlanFailure{
      missing ? kExitMissing : kExitNoProgram,
      fmt::format("{}: {}{}", program, missing ? "no such program" : std::strerror(error), where)};
}

// The file that a shell in this environment and folder would run.
std::string find_program(const std::string& program, const std::string& folder, View search) {
  if (program.find('/') != program.npos) {
    const int error = executable_error(in_folder(folder, program));
    if (error != 0)
      cannot_execute(program, error, folder.empty() ? "" : fmt::format(" in --wdir {}", folder));
    return program;
  }
  if (program.empty()) cannot_execute("''", ENOENT, "; the program's name is empty");
  int worst = ENOENT;
  for (View rest = search.empty() ? "/usr/local/bin:/usr/bin:/bin" : search;;) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string place(rest.substr(0, end));
    const std::string path = fmt::format("{}/{}", place.empty() ? "." : place, program);
    const int error = executable_error(in_folder(folder, path));
    if (error == 0) return path;
    if (error == EACCES) worst = error;
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  cannot_execute(
      program, worst,
      worst == ENOENT ? fmt::format(" in PATH; for one in this folder write ./{}", program) : "");
}

void check_folder(const std::string& folder) {
  struct stat info {};
  if (folder.empty()) return;
  if (stat(folder.c_str(), &info) != 0)
    fail(Code::invalid_argument, "--wdir {}: {}", folder, strerror(errno));
  if (!S_ISDIR(info.st_mode)) fail(Code::invalid_argument, "--wdir {}: it is no folder", folder);
}

void add_ranks(Job& job, const Program& program, View search) {
  check_folder(program.folder);
  const std::string path = find_program(program.command[0], program.folder, search);
  for (uint32_t i = 0; i < program.ranks; i++) {
    RankPlan plan;
    plan.rank = plan.local_rank = job.size();
    plan.path = path;
    plan.argv = program.command;
    plan.folder = program.folder;
    plan.environment = job.environments.size() - 1;
    job.ranks.push_back(std::move(plan));
  }
}

void wrap(Job& job, const Wrap& wrap) {
  std::vector<uint32_t> ranks = wrap.ranks;
  if (ranks.empty())
    for (const RankPlan& plan : job.ranks) ranks.push_back(plan.rank);
  for (const uint32_t rank : ranks) {
    if (rank >= job.size())
      fail(Code::invalid_argument, "--wrap names rank {}; the job has ranks 0 to {}", rank,
           job.size() - 1);
    RankPlan& plan = job.ranks[rank];
    // The wrapper is given the file that was found, not a name to be searched for again.
    plan.argv[0] = plan.path;
    plan.argv.insert(plan.argv.begin(), wrap.command.begin(), wrap.command.end());
    plan.path = find_program(wrap.command[0], plan.folder,
                             value_of(job.environments[plan.environment], "PATH"));
  }
}

void use_list(Job& job, const std::vector<Cores>& list, const Cores& allowed) {
  if (list.size() < job.size())
    fail(Code::invalid_argument,
         "--bind-to list has {} sets of cores for {} ranks; give one for each rank, separated by ;",
         list.size(), job.size());
  for (RankPlan& plan : job.ranks) {
    plan.cores = list[plan.rank];
    for (const uint32_t core : plan.cores)
      if (!std::binary_search(allowed.begin(), allowed.end(), core))
        fail(Code::invalid_argument,
             "--bind-to list: core {} for rank {} is not among the cores {} that this process may "
             "use",
             core, plan.rank, numbers_text(allowed));
  }
}

void bind(Job& job, const Options& options, const Warn& warn) {
  if (options.bind == Bind::none) return;
  const Cores allowed = cores_of(0);
  if (options.bind == Bind::list) return use_list(job, options.bind_list, allowed);
  const Unit unit = options.bind == Bind::core ? Unit::core : Unit::numa;
  const auto units = units_of(unit, allowed);
  const auto shares = divide(units, job.size());
  for (RankPlan& plan : job.ranks) plan.cores = shares[plan.rank];
  if (unit == Unit::core && units.size() < job.size())
    warn(fmt::format("--bind-to core: {} ranks on {} cores ({}), so some ranks share a core",
                     job.size(), units.size(), numbers_text(allowed)));
}

// OpenMP threads that do not fit the cores of their rank slow it down silently.
void check_threads(const Job& job, const Warn& warn) {
  for (const RankPlan& plan : job.ranks) {
    const View threads = value_of(job.environments[plan.environment], "OMP_NUM_THREADS");
    const size_t count = std::strtoul(std::string(threads).c_str(), nullptr, 10);
    if (plan.cores.empty() || count <= plan.cores.size()) continue;
    warn(fmt::format("OMP_NUM_THREADS={} but rank {} is bound to {} cores ({})", threads, plan.rank,
                     plan.cores.size(), numbers_text(plan.cores)));
    return;
  }
}

void check_output(const Options& options) {
  if (options.tee && options.output_pattern.empty())
    fail(Code::invalid_argument, "--tee adds the output to files: give --output-pattern too");
}

}  // namespace

Job make_job(const Options& options, std::span<const char* const> environment, const Warn& warn) {
  check_output(options);
  Job job;
  job.id = random_hex(8);
  job.secret = random_hex(16);
  job.host = host_name();
  for (const Program& program : options.programs) {
    job.environments.push_back(environment_for(program, environment, warn));
    add_ranks(job, program, value_of(job.environments.back(), "PATH"));
  }
  for (const Wrap& each : options.wraps) wrap(job, each);
  job.stdin_to = options.stdin_to;
  job.stdin_rank = options.stdin_rank;
  if (job.stdin_to == StdinTo::one && job.stdin_rank >= job.size())
    fail(Code::invalid_argument, "--stdin {}: the job has ranks 0 to {}", job.stdin_rank,
         job.size() - 1);
  bind(job, options, warn);
  check_threads(job, warn);
  if (!options.output_pattern.empty()) output_paths(options.output_pattern, job);
  return job;
}

std::string describe(const Job& job) {
  std::string text = fmt::format("{} ranks on {}\n", job.size(), job.host);
  for (const RankPlan& plan : job.ranks) {
    std::string command;
    for (const std::string& word : plan.argv)
      command += fmt::format(" {}", cli::shell_quoted(word));
    text += fmt::format(
        "rank {}  cores {}{}  {}:{}\n", plan.rank,
        plan.cores.empty() ? numbers_text(cores_of(0)) + " (not bound)" : numbers_text(plan.cores),
        plan.folder.empty() ? "" : fmt::format("  in {}", cli::shell_quoted(plan.folder)),
        plan.path, command);
  }
  return text;
}

}  // namespace hcomm::launch
