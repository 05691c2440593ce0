// SPDX-License-Identifier: Apache-2.0
// Which launcher started us, from its variables alone; and PMI-1 with a small launcher of our own.
#include "comm/control/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <mutex>

#include "base/dynlib.h"
#include "comm/job_threads.h"
#include "comm/control/pmi.h"

namespace hcomm::comm {
namespace {

Job find(const std::vector<const char*>& environment) {
  return find_job(Config::from_env(environment), environment);
}

Error problem(const std::vector<const char*>& environment) {
  return error_of([&] { (void)find(environment); });
}

void expect_names(const Error& error, std::initializer_list<const char*> names) {
  EXPECT_NE(error.code(), Code::ok);
  for (const char* name : names)
    EXPECT_NE(error.text().find(name), std::string::npos) << name << " in: " << error.text();
}

TEST(Job, NoLauncherIsOneRank) {
  const Job job = find({"PATH=/bin", "RANKS=3", "HCOMM_RANK="});
  EXPECT_EQ(job.size, 1);
  EXPECT_EQ(job.rank, 0);
  EXPECT_EQ(job.local_size, 1);
  EXPECT_EQ(job.way, Job::Way::alone);
  EXPECT_EQ(job.source, "none");
}

TEST(Job, HccLaunch) {
  const Job job = find({"HCOMM_RANK=0", "HCOMM_SIZE=4", "HCOMM_LOCAL_RANK=0", "HCOMM_LOCAL_SIZE=4",
                        "HCOMM_ROOT=127.0.0.1:4711", "HCOMM_ROOT_FD=9", "HCOMM_SECRET=00ff",
                        "HCOMM_JOB_ID=j1", "RANK=7", "WORLD_SIZE=8"});
  EXPECT_EQ(job.source, "hcc-launch");
  EXPECT_EQ(job.size, 4);
  EXPECT_EQ(job.way, Job::Way::root);
  EXPECT_EQ(job.root, "127.0.0.1:4711");
  EXPECT_EQ(job.root_fd, 9);
  EXPECT_EQ(job.secret, "00ff");
  EXPECT_EQ(job.job_id, "j1");
  const Job other =
      find({"HCOMM_RANK=1", "HCOMM_SIZE=4", "HCOMM_ROOT=127.0.0.1:4711", "HCOMM_ROOT_FD=9"});
  EXPECT_EQ(other.root_fd, -1);  // rank 0's alone
  expect_names(problem({"HCOMM_RANK=1", "HCOMM_SIZE=4"}), {"HCOMM_ROOT", "HCOMM_SIZE"});
}

TEST(Job, Torchrun) {
  const Job job = find({"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=8",
                        "MASTER_ADDR=node7", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=r"});
  EXPECT_EQ(job.source, "torchrun");
  EXPECT_EQ(job.rank, 3);
  EXPECT_EQ(job.root, "127.0.0.1:29501");  // its store has 29500; all ranks are on this host
  const Job wide = find({"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=4",
                         "MASTER_ADDR=node7", "MASTER_PORT=65535"});
  EXPECT_EQ(wide.root, "node7:65534");
  const Job v6 = find({"RANK=0", "WORLD_SIZE=8", "MASTER_ADDR=fd00::1", "MASTER_PORT=1"});
  EXPECT_EQ(v6.root, "[fd00::1]:2");
  expect_names(problem({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a"}), {"MASTER_PORT"});
  expect_names(problem({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=70000"}),
               {"MASTER_PORT=70000"});
}

TEST(Job, OpenMpi) {
  std::vector<const char*> environment = {
      "OMPI_COMM_WORLD_RANK=1",       "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
      "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=job.1",   "PMIX_RANK=1"};
  if (pmix_problem().empty()) {
    EXPECT_EQ(find(environment).way, Job::Way::pmix);
  } else {
    expect_names(problem(environment), {"HCOMM_ROOT", "HCOMM_SECRET_FILE", "libpmix"});
  }
  environment.push_back("HCOMM_ROOT=127.0.0.1:5");
  EXPECT_EQ(find(environment).way, Job::Way::root);
  EXPECT_EQ(find(environment).source, "Open MPI");
}

TEST(Job, Pmi) {
  const Job job =
      find({"PMI_RANK=2", "PMI_SIZE=3", "PMI_FD=7", "MPI_LOCALRANKID=2", "MPI_LOCALNRANKS=3"});
  EXPECT_EQ(job.way, Job::Way::pmi1);
  EXPECT_EQ(job.pmi_fd, 7);
  EXPECT_EQ(job.local_size, 3);
}

TEST(Job, Slurm) {
  const std::vector<const char*> step = {"SLURM_PROCID=5",
                                         "SLURM_STEP_NUM_TASKS=8",
                                         "SLURM_NTASKS=16",
                                         "SLURM_LOCALID=1",
                                         "SLURM_JOB_ID=77",
                                         "SLURM_STEP_ID=3",
                                         "SLURM_STEP_NODELIST=node[07-12,20],b"};
  const Job job = find(step);
  EXPECT_EQ(job.source, "Slurm");
  EXPECT_EQ(job.size, 8);
  EXPECT_EQ(job.root.substr(0, 7), "node07:");
  EXPECT_EQ(find(step).root, job.root);
  std::vector<const char*> next = step;
  next[5] = "SLURM_STEP_ID=4";
  EXPECT_NE(find(next).root, job.root);
  std::vector<const char*> one_node = step;
  one_node.push_back("SLURM_STEP_NUM_NODES=1");
  EXPECT_EQ(find(one_node).root.substr(0, 10), "127.0.0.1:");
  // ENV-13: what exists only with an option of sbatch is not needed, in turn.
  for (const size_t without : {1u, 2u, 3u}) {
    std::vector<const char*> fewer = step;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(without));
    EXPECT_EQ(find(fewer).rank, 5);
    EXPECT_EQ(find(fewer).size, without == 1 ? 16 : 8);
  }
  // A batch script is one process, whatever it has allocated.
  EXPECT_EQ(find({"SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_JOB_ID=77"}).size, 1);
}

TEST(Job, FirstNode) {
  EXPECT_EQ(first_node("a"), "a");
  EXPECT_EQ(first_node("a,b"), "a");
  EXPECT_EQ(first_node("n[1-3]"), "n1");
  EXPECT_EQ(first_node("n[007,9],z"), "n007");
  EXPECT_EQ(first_node("r[2-3]n[04-05]x,b"), "r2n04x");
  EXPECT_EQ(first_node("n[1"), "n1");
  EXPECT_EQ(first_node(""), "");
}

// ENV-13: what does not fit together is named, both sides of it.
TEST(Job, Conflicts) {
  expect_names(problem({"RANK=4", "WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=5"}),
               {"RANK=4", "WORLD_SIZE=4"});
  expect_names(problem({"RANK=4"}), {"RANK", "WORLD_SIZE"});
  expect_names(problem({"WORLD_SIZE=4"}), {"RANK", "WORLD_SIZE"});
  expect_names(problem({"HCOMM_SIZE=4"}), {"HCOMM_RANK", "HCOMM_SIZE"});
  expect_names(problem({"HCOMM_RANK=5", "HCOMM_SIZE=4"}), {"HCOMM_RANK=5", "HCOMM_SIZE=4"});
  expect_names(problem({"PMI_RANK=1", "PMI_SIZE=0", "PMI_FD=3"}), {"PMI_SIZE=0"});
  expect_names(problem({"PMI_RANK=-1", "PMI_SIZE=2"}), {"PMI_RANK", "-1"});
  expect_names(problem({"PMI_RANK=1x", "PMI_SIZE=2"}), {"PMI_RANK", "1x"});
  expect_names(problem({"OMPI_COMM_WORLD_RANK=99999999999", "OMPI_COMM_WORLD_SIZE=2"}),
               {"OMPI_COMM_WORLD_RANK"});
  expect_names(problem({"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"}),
               {"LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"});
  expect_names(problem({"RANK=0", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=5"}),
               {"LOCAL_WORLD_SIZE=5", "WORLD_SIZE=4"});
}

struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string& text, mode_t mode) {
    char name[] = "/tmp/hcomm-test-XXXXXX";
    const UniqueFd fd(mkstemp(name));
    path = name;
    std::ofstream(path) << text;
    chmod(name, mode);
  }
  ~TemporaryFile() { unlink(path.c_str()); }
};

TEST(Job, SecretFile) {
  const TemporaryFile good("0123456789abcdef0123\n", 0600);
  std::string name = "HCOMM_SECRET_FILE=" + good.path;
  EXPECT_EQ(find({"HCOMM_RANK=0", "HCOMM_SIZE=2", "HCOMM_ROOT=127.0.0.1:9", name.c_str()}).secret,
            "0123456789abcdef0123");
  const TemporaryFile open("0123456789abcdef0123\n", 0644);
  name = "HCOMM_SECRET_FILE=" + open.path;
  expect_names(problem({"HCOMM_RANK=0", "HCOMM_SIZE=2", "HCOMM_ROOT=127.0.0.1:9", name.c_str()}),
               {"chmod 600", open.path.c_str()});
  const TemporaryFile shorter("abc\n", 0600);
  name = "HCOMM_SECRET_FILE=" + shorter.path;
  expect_names(problem({"HCOMM_RANK=0", "HCOMM_SIZE=2", "HCOMM_ROOT=127.0.0.1:9", name.c_str()}),
               {"3 characters"});
}

TEST(Meet, WithoutASecretTheRootMustBeLoopback) {
  Service service;
  Meeting meeting;
  Job job{.rank = 1, .size = 2, .way = Job::Way::root, .root = "192.0.2.1:4711"};
  const Error error =
      error_of([&] { (void)meet(service, Config(), job, meeting, Deadline::after_ms(1000)); });
  expect_names(error, {"192.0.2.1:4711", "HCOMM_SECRET_FILE"});
  job.secret = "0123456789abcdef";
  EXPECT_EQ(meet(service, Config(), job, meeting, Deadline::after_ms(1000)).text(),
            "192.0.2.1:4711");
}

TEST(Meet, AnInheritedDescriptorThatIsNoListener) {
  Service service;
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const int fd : {file.get(), 999'999}) {
    Meeting meeting;
    const Job job{.size = 2, .way = Job::Way::root, .root = "127.0.0.1:4711", .root_fd = fd};
    const Error error =
        error_of([&] { (void)meet(service, Config(), job, meeting, Deadline::after_ms(1000)); });
    expect_names(error, {"HCOMM_ROOT_FD", std::to_string(fd).c_str()});
  }
}

// The launcher's socket, as hcc-launch makes it; and one world after the other at one hub.
TEST(Meet, ManyWorldsAtOneRoot) {
  constexpr int kRanks = 6;
  Service service;
  UniqueFd listener = transport::listen_on(transport::SocketAddress::loopback(0), "");
  const std::string root = fmt::format("127.0.0.1:{}", transport::port_of(listener.get()));
  std::vector<Meeting> meetings(kRanks);
  std::vector<Job> jobs(kRanks, Job{.size = kRanks,
                                    .way = Job::Way::root,
                                    .root = root,
                                    .secret = "0123456789abcdef",
                                    .job_id = "job"});
  for (int rank = 0; rank < kRanks; rank++) jobs[static_cast<size_t>(rank)].rank = rank;
  jobs[0].root_fd = listener.release();
  in_threads(kRanks, [&](uint32_t rank) {
    for (uint32_t world = 0; world < 100; world++) {
      const Root& found =
          meet(service, Config(), jobs[rank], meetings[rank], Deadline::after_ms(20'000));
      const auto control = Control::join(service, join_of(found, rank, kRanks));
      ASSERT_EQ(control->world(), world);
      const auto all =
          exchange(*control, 1, rank, kRanks, std::to_string(world), Deadline::after_ms(20'000));
      for (const std::string& each : all) ASSERT_EQ(each, std::to_string(world));
    }
  });
}

TEST(Meet, AloneNeedsNobody) {
  Service service;
  Meeting meeting;
  const Root& root = meet(service, Config(), Job(), meeting, Deadline::after_ms(10'000));
  EXPECT_TRUE(root.addresses.at(0).is_loopback());
  EXPECT_EQ(Control::join(service, join_of(root, 0, 1))->members().size(), 1u);
}

// A launcher that speaks PMI-1 to its ranks, each over a socket.
class Launcher {
 public:
  explicit Launcher(uint32_t ranks) : ranks_(ranks) {
    for (uint32_t rank = 0; rank < ranks; rank++) {
      int pair[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
      ours.emplace_back(pair[0]);
      theirs.emplace_back(pair[1]);
    }
  }
  void serve() {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < ranks_; rank++)
      threads.emplace_back([this, rank] { serve_one(ours[rank].get()); });
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<UniqueFd> ours, theirs;
  std::string get_code = "0";

 private:
  void serve_one(int fd) {
    std::string line;
    char c = 0;
    while (read(fd, &c, 1) == 1) {
      if (c != '\n') {
        line += c;
        continue;
      }
      const std::string reply = answer(line);
      for (const char each : reply)  // byte by byte: answers come in pieces
        if (write(fd, &each, 1) != 1) return;
      if (line.find("finalize") != std::string::npos) return;
      line.clear();
    }
  }
  std::string answer(const std::string& line) {
    std::unique_lock lock(mutex_);
    if (line.starts_with("cmd=init"))
      return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    if (line.starts_with("cmd=get_maxes"))
      return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
    if (line.starts_with("cmd=get_my_kvsname")) return "cmd=my_kvsname kvsname=kvs_1\n";
    if (line.starts_with("cmd=put")) {
      value_ = line.substr(line.find("value=") + 6);
      return "cmd=put_result rc=0 msg=success\n";
    }
    if (line.starts_with("cmd=barrier_in")) {
      arrived_++;
      changed_.notify_all();
      changed_.wait(lock, [&] { return arrived_ == ranks_; });
      return "cmd=barrier_out\n";
    }
    if (line.starts_with("cmd=get "))
      return fmt::format("cmd=get_result rc={} msg=success value={}\n", get_code, value_);
    return "cmd=finalize_ack\n";
  }

  const uint32_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t arrived_ = 0;
  std::string value_;
};

TEST(Pmi1, RankZerosTextReachesAll) {
  constexpr uint32_t kRanks = 5;
  Launcher launcher(kRanks);
  std::thread server([&] { launcher.serve(); });
  in_threads(kRanks, [&](uint32_t rank) {
    const std::string mine = rank == 0 ? std::string(512, 'a') : "";
    EXPECT_EQ(share_by_pmi1(launcher.theirs[rank].get(), rank, mine, Deadline::after_ms(20'000)),
              std::string(512, 'a'));
  });
  server.join();
}

TEST(Pmi1, TheLaunchersRefusalTimeoutAndEndAreErrors) {
  Launcher launcher(2);
  launcher.get_code = "-1";
  std::thread server([&] { launcher.serve(); });
  in_threads(2, [&](uint32_t rank) {
    const Error error = error_of([&] {
      (void)share_by_pmi1(launcher.theirs[rank].get(), rank, rank == 0 ? "x" : "",
                          Deadline::after_ms(20'000));
    });
    EXPECT_EQ(error.code(), rank == 0 ? Code::ok : Code::system) << error.text();
    launcher.theirs[rank].reset();
  });
  server.join();
  Launcher silent(1);
  EXPECT_EQ(error_of([&] {
              (void)share_by_pmi1(silent.theirs[0].get(), 0, "x", Deadline::after_ms(50));
            }).code(),
            Code::timeout);
  silent.ours[0].reset();
  const Error gone = error_of(
      [&] { (void)share_by_pmi1(silent.theirs[0].get(), 0, "x", Deadline::after_ms(5000)); });
  EXPECT_NE(gone.code(), Code::ok);
  EXPECT_NE(gone.code(), Code::timeout) << gone.text();
}

TEST(DynLib, SaysWhyNot) {
  const DynLib none{"libhcomm-nosuch.so.1", "libhcomm-nosuch.so"};
  EXPECT_FALSE(none.loaded());
  EXPECT_NE(none.reason().find("libhcomm-nosuch.so.1"), std::string::npos) << none.reason();
  const DynLib c{"libhcomm-nosuch.so.1", "libc.so.6"};
  ASSERT_TRUE(c.loaded());
  EXPECT_EQ(c.function<int(int)>("abs")(-3), 3);
  expect_names(error_of([&] { (void)c.function<void()>("hcomm_no_such"); }),
               {"libc.so.6", "hcomm_no_such"});
}

}  // namespace
}  // namespace hcomm::comm
