// SPDX-License-Identifier: Apache-2.0
// Environment, arguments and what the launcher hands out.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "launch/launch_run.h"

namespace hcomm::launch_test {
namespace {

std::vector<std::string> split_zero(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool holds(const std::vector<std::string>& list, const std::string& entry) {
  return std::count(list.begin(), list.end(), entry) == 1;
}

std::string value_in(const std::vector<std::string>& list, const std::string& name) {
  std::string value = "(unset)";
  for (const std::string& entry : list)
    if (entry.starts_with(name + "=")) value = entry.substr(name.size() + 1);
  return value;
}

TEST(LaunchEnv, ENV_01_ValuesAreByteIdentical) {
  const std::vector<std::string> entries = {"T1=with  spaces ",
                                            "T2=\"quotes\" 'single'",
                                            "T3=$HOME `id` $(id)",
                                            "T4=*?[a]",
                                            "T5=line\nline",
                                            "T6=tab\there",
                                            "T7=\xc3\xa9\xff\xfe",
                                            "T8=",
                                            "T9=a=b=c",
                                            "T10=" + std::string(100 << 10, 'x'),
                                            "BASH_FUNC_greet%%=() {  echo hello\n}"};
  Launch run({"-n", "1", probe(), "env"});
  for (const std::string& entry : entries) run.set(entry);
  const auto seen = split_zero(run.finish().out);
  for (const std::string& entry : entries) EXPECT_TRUE(holds(seen, entry)) << entry.substr(0, 40);
}

TEST(LaunchEnv, ENV_03_ExportsWithEqualsUnsetAndTwice) {
  Launch run({"-n", "1", "-x", "OPTS=--a --b=c", "-x", "NOT_THERE", "-x", "TWICE=1", "-x",
              "TWICE=2", "-x", "HERE", "-x", "PAT_*", "-x", "NONE_*", probe(), "env"});
  run.set("HERE=x=y").set("PAT_A=1").set("PAT_B=2").unset("NOT_THERE");
  const Result result = run.finish();
  const auto seen = split_zero(result.out);
  EXPECT_TRUE(holds(seen, "OPTS=--a --b=c"));
  EXPECT_TRUE(holds(seen, "TWICE=2"));
  EXPECT_TRUE(holds(seen, "HERE=x=y"));
  EXPECT_TRUE(holds(seen, "PAT_A=1"));
  EXPECT_EQ(value_in(seen, "NOT_THERE"), "(unset)");
  EXPECT_NE(result.err.find("-x NOT_THERE: not set here"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("-x NONE_*: not set here"), std::string::npos) << result.err;
  EXPECT_EQ(launch({"-x", "HCOMM_RANK=3", "true"}).code, 2);
  EXPECT_EQ(launch({"-x", "=3", "true"}).code, 2);
}

TEST(LaunchEnv, EnvFileAndUnset) {
  const std::string path = temporary_folder() + "/env";
  std::ofstream(path) << "# comment\n\nFROM_FILE=a b # kept\n  TWICE=file\n";
  Launch run(
      {"-n", "1", "--env-file", path, "-x", "TWICE=option", "--unset", "GONE*", probe(), "env"});
  const auto seen = split_zero(run.set("GONE_1=x").set("GONE_2=x").finish().out);
  EXPECT_TRUE(holds(seen, "FROM_FILE=a b # kept"));
  EXPECT_TRUE(holds(seen, "TWICE=option"));
  EXPECT_EQ(value_in(seen, "GONE_1"), "(unset)");
  EXPECT_EQ(value_in(seen, "GONE_2"), "(unset)");
  EXPECT_EQ(launch({"--env-file", "/no/such", "true"}).code, 2);
  EXPECT_EQ(launch({"--env-file", "/", "true"}).code, 2);
  std::ofstream(path) << "=broken\n";
  const Result result = launch({"--env-file", path, "true"});
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find(path + ":1:"), std::string::npos) << result.err;
}

TEST(LaunchEnv, ENV_05_ArgumentsAreByteIdentical) {
  const std::vector<std::string> words = {"argv", "a b",   "",     "*",  "\"",     "it's", "$HOME",
                                          "--",   ";rm x", "a\nb", "-n", "--help", "\xff"};
  std::vector<std::string> arguments = {
      "-n", "2", "--label", "none", "--output-pattern", temporary_folder() + "/%R", probe()};
  const std::string folder = arguments[5].substr(0, arguments[5].size() - 3);
  arguments.insert(arguments.end(), words.begin(), words.end());
  EXPECT_EQ(launch(arguments).code, 0);
  for (const std::string rank : {"/0", "/1"}) {
    const auto seen = split_zero(read_file(folder + rank));
    ASSERT_EQ(seen.size(), words.size() + 1);
    EXPECT_EQ(seen[0], probe());
    EXPECT_TRUE(std::equal(words.begin(), words.end(), seen.begin() + 1));
  }
}

TEST(LaunchEnv, ENV_05_AfterTwoDashesEvenAColonIsAnArgument) {
  const auto seen = split_zero(launch({"--", probe(), "argv", ":", "-n", ":"}).out);
  EXPECT_EQ(seen, (std::vector<std::string>{probe(), "argv", ":", "-n", ":"}));
}

// Hosts are not served: a job that names some is refused, and never run here instead.
TEST(LaunchEnv, ENV_11_NoLocalFallbackForAHostfile) {
  const std::string folder = temporary_folder(), marker = folder + "/ran";
  std::ofstream(folder + "/empty").flush();
  std::ofstream(folder + "/secret") << "h1\n";
  chmod((folder + "/secret").c_str(), 0);
  for (const std::string& file : {std::string("/nosuch"), folder + "/empty", folder + "/secret"})
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--hostfile", file, "touch", marker},
          {"--hostfile=" + file, "touch", marker}}) {
      const Result result = launch(words);
      EXPECT_EQ(result.code, 2) << file;
      EXPECT_NE(result.err.find("unknown option --hostfile"), std::string::npos) << result.err;
      EXPECT_NE(access(marker.c_str(), F_OK), 0);
    }
}

// What other launchers left in the environment changes nothing.
TEST(LaunchEnv, ENV_13_IndependentOfOtherLaunchersVariables) {
  for (const std::string missing : {"SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_PROCID"}) {
    Launch run({"-n", "3", "sh", "-c", "echo $HCOMM_RANK/$HCOMM_SIZE"});
    for (const std::string entry : {"SLURM_NTASKS=7", "SLURM_NTASKS_PER_NODE=2", "SLURM_PROCID=5",
                                    "OMPI_COMM_WORLD_RANK=9", "HCOMM_RANK=8", "HCOMM_SIZE=99"})
      run.set(entry);
    run.unset(missing);
    const Result result = run.finish();
    EXPECT_EQ(result.code, 0);
    for (const std::string line : {"0/3\n", "1/3\n", "2/3\n"})
      EXPECT_EQ(count_of(result.out, line), 1) << result.out;
  }
}

TEST(LaunchEnv, RanksGetTheirPlaceInTheJob) {
  const Result result = launch({"-n", "1", probe(), "env", ":", "-n", "1", probe(), "env"});
  const auto seen = split_zero(result.out);
  for (const std::string entry : {"HCOMM_RANK=0", "HCOMM_RANK=1", "HCOMM_LOCAL_RANK=1"})
    EXPECT_TRUE(holds(seen, entry)) << entry;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "HCOMM_SIZE=2"), 2);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "HCOMM_LOCAL_SIZE=2"), 2);
  EXPECT_EQ(value_in(seen, "HCOMM_SECRET").size(), 32u);
  EXPECT_TRUE(value_in(seen, "HCOMM_ROOT").starts_with("127.0.0.1:"));
  EXPECT_EQ(count_of(result.out, "HCOMM_ROOT_FD="), 1);
}

// Those that whoever started the tests left open pass through the launcher too.
int inherited_descriptors() {
  int count = 0;
  for (int fd = 3; fd < 1024; fd++) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) count++;
  }
  return count;
}

TEST(LaunchEnv, OnlyTheHandedOutDescriptorsAreInherited) {
  const int before = inherited_descriptors();
  const Result result = launch({"-n", "2", probe(), "descriptors"});
  for (const std::string rank : {"0:", "1:"}) {
    const size_t at = result.out.find(rank);
    ASSERT_NE(at, std::string::npos);
    const std::string line = result.out.substr(at, result.out.find('\n', at) - at);
    EXPECT_EQ(count_of(line, " "), before + (rank == "0:" ? 2 : 1)) << line;
  }
}

TEST(LaunchEnv, ProgramsFoldersAndWraps) {
  const std::string folder = temporary_folder();
  Result result =
      launch({"-n", "1", "--wdir", folder, "pwd", ":", "-n", "2", "--wdir", "/", "pwd"});
  EXPECT_EQ(count_of(result.out, folder + "\n"), 1) << result.out;
  EXPECT_EQ(count_of(result.out, "/\n"), 2) << result.out;
  EXPECT_EQ(launch({"--wdir", "/no/such", "true"}).code, 2);
  EXPECT_EQ(launch({"--wdir", "/dev/null", "true"}).code, 2);
  result = launch(
      {"-n", "2", "--label", "rank", "--wrap", "1=env 'A=b c'", "sh", "-c", "echo $A$HCOMM_RANK"});
  EXPECT_EQ(count_of(result.out, "[1] b c1\n"), 1) << result.out;
  EXPECT_EQ(count_of(result.out, "[0] 0\n"), 1) << result.out;
  EXPECT_EQ(launch({"-n", "2", "--wrap", "2=env", "true"}).code, 2);
}

TEST(LaunchEnv, DryRunRunsNothingAndHidesTheSecret) {
  const Result result = launch({"-n", "2", "--dry-run", "touch", "/no/such/folder/a b"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(count_of(result.out, "touch '/no/such/folder/a b'"), 2) << result.out;
  EXPECT_EQ(count_of(result.out, "SECRET"), 0);
}

// Jobs at once, while somebody takes and returns ports. Rounds: 2, or HCOMM_TEST_ROUNDS.
TEST(LaunchEnv, RDV_01_TheRootPortIsHeldFromChoiceToUse) {
  std::atomic<bool> over = false;
  std::thread grabber([&over] {
    while (!over) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
      listen(fd, 1);
      pause_ms(1);
      close(fd);
    }
  });
  for (int round = 0; round < rounds(2); round++) {
    std::vector<std::unique_ptr<Launch>> jobs;
    for (int i = 0; i < 8; i++) {
      jobs.push_back(
          std::make_unique<Launch>(std::vector<std::string>{"-n", "2", probe(), "meet"}));
      jobs.back()->start();
    }
    for (auto& job : jobs) {
      const Result result = job->finish();
      EXPECT_EQ(result.code, 0) << result.err;
    }
  }
  over = true;
  grabber.join();
}

}  // namespace
}  // namespace hcomm::launch_test
