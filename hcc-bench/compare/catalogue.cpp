// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/catalogue.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <filesystem>

#include "base/error.h"
#include "base/thread.h"

namespace hcomm::compare {

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int64_t kAskMs = 60'000;  // importing torch from a cold disk takes its time

const Words kBoth = {"shm", "tcp"}, kTcp = {"tcp"};

Finding missing(std::string reason) {
  return {.reason = std::move(reason)};
}

std::string named(std::string_view name, const std::string& prefix) {
  return prefix.empty() ? std::string(name) : fmt::format("{}@{}", name, prefix);
}

// Programs of Debian end in the library's name, since there may be two.
std::string program_of(const std::string& name, const std::string& suffix,
                       const std::string& prefix) {
  return prefix.empty() ? find_program(name + suffix)
                        : find_program(fmt::format("{}/bin/{}", prefix, name));
}

void run_path(Subject& subject, const std::string& prefix) {
  if (prefix.empty()) return;
  for (const char* folder : {"lib", "lib64"}) {
    subject.libraries.push_back(fmt::format("-L{}/{}", prefix, folder));
    subject.libraries.push_back(fmt::format("-Wl,-rpath,{}/{}", prefix, folder));
  }
}

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// 4 from "mpirun (Open MPI) 4.1.4"; what cannot be read is taken for a new one.
int open_mpi_major(const std::string& mpirun) {
  const std::string text = run({{mpirun, "--version"}, {}}, kAskMs).output;
  const size_t at = text.find(") ");
  return at == std::string::npos ? 5 : std::atoi(text.c_str() + at + 2);
}

Launch open_mpi_launch(const std::string& mpirun, int major, const std::string& driver,
                       const std::string& transport, int ranks) {
  const bool old = major < 5;
  Launch launch;
  launch.words = {mpirun, "-np", std::to_string(ranks), "--bind-to", "none"};
  append(launch.words, old ? Words{"--oversubscribe"} : Words{"--map-by", ":OVERSUBSCRIBE"});
  const auto set = [&](const std::string& name, const std::string& value) {
    append(launch.words, {"--mca", name, value});
  };
  if (static_cast<uint32_t>(ranks) > usable_cores()) set("mpi_yield_when_idle", "1");
  set("pml", "ob1");
  if (old) set("oob_tcp_if_include", "lo");
  set("btl", transport == "tcp" ? "tcp,self" : old ? "vader,self" : "sm,self");
  if (transport == "tcp") set("btl_tcp_if_include", "lo");
  launch.words.push_back(driver);
  for (const char* prefix : {"OMPI", "PRTE"})
    for (const char* suffix : {"", "_CONFIRM"})
      launch.environment.push_back(fmt::format("{}_ALLOW_RUN_AS_ROOT{}=1", prefix, suffix));
  return launch;
}

Subject mpi_subject(std::string_view name, const std::string& prefix, const std::string& compiler) {
  Subject subject;
  subject.name = named(name, prefix);
  subject.transports = kBoth;
  subject.source = "mpi.c";
  subject.compiler = {compiler};
  run_path(subject, prefix);
  return subject;
}

Finding find_open_mpi(const std::string& prefix) {
  if (!prefix.empty() && find_program(prefix + "/bin/ompi_info").empty())
    return missing("no bin/ompi_info");
  const std::string compiler = program_of("mpicc", ".openmpi", prefix);
  const std::string mpirun = program_of("mpirun", ".openmpi", prefix);
  if (compiler.empty() || mpirun.empty())
    return missing(
        "mpicc.openmpi or mpirun.openmpi not found; apt install openmpi-bin "
        "libopenmpi-dev");
  Subject subject = mpi_subject("openmpi", prefix, compiler);
  subject.launch = [mpirun, major = open_mpi_major(mpirun)](
                       const std::string& driver, const std::string& transport, int ranks) {
    return open_mpi_launch(mpirun, major, driver, transport, ranks);
  };
  return {{subject}, ""};
}

Finding find_mpich(const std::string& prefix) {
  if (!prefix.empty() && find_program(prefix + "/bin/mpichversion").empty())
    return missing("no bin/mpichversion");
  const std::string compiler = program_of("mpicc", ".mpich", prefix);
  const std::string mpirun = program_of("mpirun", ".mpich", prefix);
  if (compiler.empty() || mpirun.empty())
    return missing("mpicc.mpich or mpirun.mpich not found; apt install mpich libmpich-dev");
  Subject subject = mpi_subject("mpich", prefix, compiler);
  subject.launch = [mpirun](const std::string& driver, const std::string& transport, int ranks) {
    Launch launch{{mpirun, "-np", std::to_string(ranks), driver}, {"HYDRA_IFACE=lo"}};
    if (transport == "tcp")  // its way between hosts, by UCX or libfabric, over loopback
      append(launch.environment, {"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo",
                                  "FI_PROVIDER=tcp", "FI_TCP_IFACE=lo"});
    return launch;
  };
  return {{subject}, ""};
}

// A library that is compiled into a driver which makes its own ranks.
Finding find_linked(Subject subject, const std::string& prefix, const Words& compiler,
                    const std::string& header, const std::string& advice) {
  const std::string found = find_program(compiler[0]);
  if (found.empty()) return missing(fmt::format("{} not found; apt install g++", compiler[0]));
  const std::string include = (prefix.empty() ? "/usr" : prefix) + "/include";
  if (!fs::exists(fs::path(include) / header))
    return missing(fmt::format("{}/{} not found{}", include, header, advice));
  subject.name = named(subject.name, prefix);
  subject.compiler = {found};
  subject.compiler.insert(subject.compiler.end(), compiler.begin() + 1, compiler.end());
  if (!prefix.empty()) subject.compiler.push_back("-I" + include);
  Words libraries = std::move(subject.libraries);
  subject.libraries.clear();
  run_path(subject, prefix);
  append(subject.libraries, libraries);
  return {{subject}, ""};
}

Finding find_gloo(const std::string& prefix) {
  Subject subject{.name = "gloo", .transports = kTcp, .source = "gloo.cpp"};
  subject.libraries = {"-lgloo", "-lpthread"};
  subject.launch = [](const std::string& driver, const std::string&, int) {
    return Launch{{driver}, {}};
  };
  return find_linked(subject, prefix, {"g++", "-std=c++17"}, "gloo/allreduce.h",
                     "; apt install libgloo-dev");
}

Finding find_ucc(const std::string& prefix) {
  Subject subject{.name = "ucc", .transports = kBoth, .source = "ucc.c"};
  subject.libraries = {"-lucc"};
  subject.launch = [](const std::string& driver, const std::string& transport, int) {
    return transport == "tcp" ? Launch{{driver}, {"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"}}
                              : Launch{{driver}, {"UCX_TLS=posix,sysv,cma,self"}};
  };
  return find_linked(subject, prefix, {"gcc"}, "ucc/api/ucc.h",
                     "; build github.com/openucx/ucc and name it by --peer-prefix");
}

// A Python that has torch: of the prefix, or the first one in PATH, or Debian's own.
std::string find_python(const std::string& prefix) {
  for (const std::string& python :
       prefix.empty() ? Words{find_program("python3"), find_program("/usr/bin/python3")}
                      : Words{find_program(prefix + "/bin/python3")}) {
    if (python.empty()) continue;
    const Launch ask{{python, "-c", "import torch.distributed as d; assert d.is_available()"}, {}};
    if (run(ask, kAskMs).code == 0) return python;
  }
  return {};
}

// What is built for torch is the harness, as a library that Python loads.
Finding find_torch(const std::string& prefix) {
  const std::string python = find_python(prefix);
  if (python.empty())
    return missing(prefix.empty() ? "no python3 with torch.distributed; apt install python3-torch"
                                  : "no bin/python3 with torch.distributed");
  const std::string compiler = find_program("gcc");
  if (compiler.empty()) return missing("gcc not found; apt install gcc");
  Subject subject{.name = named("torch", prefix), .transports = kTcp, .source = "torch.c"};
  subject.compiler = {compiler, "-shared", "-fPIC"};
  subject.launch = [python](const std::string& driver, const std::string&, int) {
    return Launch{{python, driver_folder() + "/torch_ranks.py", driver}, {"GLOO_SOCKET_IFNAME=lo"}};
  };
  return {{subject}, ""};
}

struct Entry {
  std::string_view name;
  Finding (*find)(const std::string& prefix);
};
constexpr Entry kEntries[] = {{"openmpi", find_open_mpi},
                              {"mpich", find_mpich},
                              {"gloo", find_gloo},
                              {"torch", find_torch},
                              {"ucc", find_ucc}};

}  // namespace

std::vector<std::string> peer_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

Finding find_peer(std::string_view name, const std::string& prefix) {
  for (const Entry& entry : kEntries)
    if (entry.name == name) return entry.find(prefix);
  fail(Code::invalid_argument, "unknown peer '{}'", name);
}

std::string program_folder() {
  return fs::read_symlink("/proc/self/exe").parent_path().string();
}

std::string driver_folder() {
  return (fs::path(program_folder()).parent_path() / HCOMM_DATA_FOLDER / "hcomm/peers").string();
}

Subject hcomm_subject() {
  Subject subject{.name = "hcomm", .transports = kBoth};
  subject.launch = [](const std::string&, const std::string& transport, int ranks) {
    const std::string folder = program_folder();
    return Launch{{folder + "/hcc-launch", "-n", std::to_string(ranks), "--label", "none",
                   folder + "/hcc-bench", "serve"},
                  {"HCOMM_TRANSPORT=" + transport}};
  };
  return subject;
}

}  // namespace hcomm::compare
