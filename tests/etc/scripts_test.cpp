// SPDX-License-Identifier: Apache-2.0
// The scripts of etc as a fresh machine meets them. The real runs are CI's; here the tools
// that they call are small scripts that log their arguments and do what they are told to.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "policy/rules.h"
#include "support/shell.h"

namespace hcomm {
namespace {

namespace fs = std::filesystem;
using test::Ran;

// A tree with the scripts and a PATH with the tools. What is installed stands in the file
// `installed`, a name a line; what was called, in `log`.
class Machine {
 public:
  explicit Machine(const std::string& installed) {
    fs::create_directories(folder_.path() / "tree/etc");
    for (const char* name :
         {"microbench.sh", "quickstart.sh", "test.sh", "packages.sh", "compare-peers.sh"})
      fs::copy_file(fs::path(SOURCE_DIRECTORY) / "etc" / name, folder_.path() / "tree/etc" / name);
    folder_.write("installed", installed);
    folder_.write("log", "");
    add_tool("dpkg-query",
             "for last; do :; done\n"
             "grep -qx \"$last\" \"$ROOT/installed\" && echo installed");
    add_tool("apt-get", "for word; do echo \"$word\"; done >> \"$ROOT/installed\"");
    add_tool("sudo", "\"$@\"");
    for (const char* name : {"cmake", "ctest"}) add_tool(name, "true");
    folder_.write_program("tree/build/release/bin/hcc-launch", tool("hcc-launch", "true"));
    folder_.write_program("tree/build/release/bin/hcc-bench", tool("hcc-bench", "true"));
  }

  void add_tool(const std::string& name, const std::string& body) {
    folder_.write_program("tools/" + name, tool(name, body));
  }
  void add_program(const std::string& name, const std::string& body) const {
    folder_.write_program(name, "#!/bin/sh\n" + body + "\n");
  }
  void write(const std::string& name) { folder_.write(name, ""); }
  std::string text(const std::string& name) const { return test::file_text(folder_.path() / name); }
  void break_launcher() {
    folder_.write_program("tree/build/release/bin/hcc-launch", tool("hcc-launch", "exit 3"));
  }
  void use_real_programs() {
    folder_.write_program("tree/build/release/bin/hcc-launch",
                          "#!/bin/sh\nexec " HCC_LAUNCH " \"$@\"\n");
    folder_.write_program("tree/build/release/bin/hcc-bench",
                          "#!/bin/sh\nexec " HCC_BENCH " \"$@\"\n");
  }
  Ran run(const std::string& script) const {
    return test::shell(fmt::format(
        "unset CTEST_PARALLEL_LEVEL; export ROOT={0}; PATH={0}/tools:$PATH {0}/tree/etc/{1}",
        folder_.path().string(), script));
  }
  std::string log() const { return test::file_text(folder_.path() / "log"); }
  size_t count(const std::string& text) const {
    size_t found = 0;
    const std::string all = log();
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) found++;
    return found;
  }

 private:
  static std::string tool(const std::string& name, const std::string& body) {
    return fmt::format("#!/bin/sh\necho \"{} ${{HCOMM_TRANSPORT-}} $*\" >> \"$ROOT/log\"\n{}\n",
                       name, body);
  }
  test::TemporaryFolder folder_;
};

std::string everything() {
  const Ran list = test::shell(
      fmt::format("script=list; . {}/etc/packages.sh; printf '%s\\n' $packages $optional_packages",
                  SOURCE_DIRECTORY));
  EXPECT_EQ(list.code, 0);
  return list.output;
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Quickstart, InstallsBuildsAndRunsBothJobs) {
  Machine machine("");
  const Ran ran = machine.run("quickstart.sh");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(machine.count("apt-get  update"), 1U) << machine.log();
  EXPECT_EQ(machine.count("apt-get  install"), 1U) << machine.log();
  EXPECT_EQ(machine.count("hcc-launch shm -n 8"), 1U) << machine.log();
  EXPECT_EQ(machine.count("--sizes 1K:1G"), 2U) << machine.log();
  EXPECT_EQ(machine.count("hcc-launch tcp -n 8"), 1U) << machine.log();

  const Ran again = machine.run("quickstart.sh --ranks 2 --sizes 1K:2K");
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(machine.count("apt-get"), 2U) << "nothing is installed twice\n" << machine.log();
  EXPECT_EQ(machine.count("--sizes 1K:2K"), 2U) << machine.log();
}

TEST(Quickstart, TheProgramsTakeTheJobsOptions) {
  Machine machine(everything());
  machine.use_real_programs();
  const Ran ran = machine.run("quickstart.sh --ranks 2 --sizes 1K:4K");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(ran.says("1.0 KiB") || ran.says("1 KiB") || ran.says("1024")) << ran.output;
  EXPECT_TRUE(ran.says("quickstart: done")) << ran.output;
}

TEST(Quickstart, NoInstallNamesWhatIsMissing) {
  std::string most = everything();
  most.erase(most.find("libfmt-dev\n"), std::string("libfmt-dev\n").size());
  Machine machine(most);
  const Ran ran = machine.run("quickstart.sh --no-install");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.output, "quickstart: missing packages: libfmt-dev\n");
  EXPECT_EQ(machine.count("apt-get"), 0U);
  EXPECT_EQ(machine.count("cmake  --"), 0U) << machine.log();
}

TEST(Quickstart, NoInstallGoesOnWhenNothingIsMissing) {
  Machine machine(everything());
  EXPECT_EQ(machine.run("quickstart.sh --no-install").code, 0);
}

TEST(Quickstart, FailsWithOneLine) {
  Machine broken_apt("");
  broken_apt.add_tool("apt-get", "exit 100");
  Ran ran = broken_apt.run("quickstart.sh");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.says("quickstart: apt-get update failed")) << ran.output;

  Machine broken_build(everything());
  broken_build.add_tool("cmake", "echo 'x.cpp:1: error'; exit 1");
  ran = broken_build.run("quickstart.sh");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.says("x.cpp:1: error")) << ran.output;
  EXPECT_TRUE(ran.says("quickstart: the build failed")) << ran.output;

  Machine broken_job(everything());
  broken_job.break_launcher();
  ran = broken_job.run("quickstart.sh");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.says("the job over shm failed (exit code 3)")) << ran.output;
}

TEST(Scripts, RefuseWhatTheyDoNotKnow) {
  Machine machine(everything());
  for (const char* script : {"microbench.sh", "quickstart.sh", "test.sh"}) {
    EXPECT_EQ(machine.run(std::string(script) + " --bogus").code, 2) << script;
    EXPECT_EQ(machine.run(std::string(script) + " --help").code, 0) << script;
  }
  EXPECT_EQ(machine.run("test.sh --preset").code, 2);
  EXPECT_EQ(machine.run("test.sh --preset bogus").code, 2);
  EXPECT_EQ(machine.run("microbench.sh --compare /nonexistent").code, 1);
  EXPECT_EQ(machine.run("microbench.sh --compare /dev/null --repetitions 6").code, 2);
  EXPECT_EQ(machine.count("apt-get"), 0U);
}

TEST(ComparePeers, InstallsThePeersAndPassesOptionsOn) {
  Machine machine(everything());
  Ran ran = machine.run("compare-peers.sh --ranks 2 --csv");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(machine.count("libgloo-dev python3-torch\n"), 1U) << machine.log();
  EXPECT_EQ(machine.count("hcc-bench  compare --ranks 2 --csv\n"), 1U) << machine.log();

  Machine without(everything());
  ran = without.run("compare-peers.sh --no-install -- --json");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(ran.says("missing packages of peers: ")) << ran.output;
  EXPECT_EQ(without.count("apt-get"), 0U) << without.log();
  EXPECT_EQ(without.count("hcc-bench  compare --json\n"), 1U) << without.log();
  EXPECT_EQ(without.run("compare-peers.sh --help").code, 0);

  Machine empty("");
  ran = empty.run("compare-peers.sh --no-install");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(empty.count("hcc-bench"), 0U) << empty.log();
}

TEST(TestScript, BuildsAndRunsThePreset) {
  Machine machine(everything());
  EXPECT_EQ(machine.run("test.sh --preset asan").code, 0);
  EXPECT_EQ(machine.count("cmake  --preset asan -B build/asan"), 1U) << machine.log();
  EXPECT_EQ(machine.count("--build build/asan --target all"), 1U) << machine.log();
  EXPECT_EQ(machine.count("ctest  --test-dir build/asan "), 1U) << machine.log();
  EXPECT_EQ(machine.count("--label-exclude ^long$"), 1U) << machine.log();
  EXPECT_EQ(machine.run("test.sh --long").code, 0);
  EXPECT_EQ(machine.count("ctest  --test-dir build/release "), 1U) << machine.log();
  EXPECT_EQ(machine.count("--label-exclude ^long$"), 1U) << machine.log();
}

TEST(TestScript, EndsWithWhatCtestSays) {
  Machine failing(everything());
  failing.add_tool("ctest", "echo '50% tests passed'; exit 8");
  const Ran ran = failing.run("test.sh");
  EXPECT_EQ(ran.code, 8);
  EXPECT_TRUE(ran.output.ends_with("50% tests passed\n")) << ran.output;
}

TEST(TestScript, FoldersAreBuiltAndRunAlone) {
  Machine machine(everything());
  machine.write("tree/tests/comm/CMakeLists.txt");
  machine.write("tree/tests/engine/CMakeLists.txt");
  EXPECT_EQ(machine.run("test.sh --preset tsan --folder comm --folder engine").code, 0);
  EXPECT_EQ(machine.count("--target tests/comm/all"), 1U) << machine.log();
  EXPECT_EQ(machine.count("--target tests/engine/all"), 1U) << machine.log();
  EXPECT_EQ(machine.count("--test-dir build/tsan/tests/comm "), 1U) << machine.log();
  EXPECT_EQ(machine.count("ctest"), 2U) << machine.log();
  EXPECT_EQ(machine.run("test.sh --folder gone").code, 2);
}

TEST(TestScript, SaysWhichOptionalPackagesAreAbsent) {
  std::string most = everything();
  most.erase(most.find("mpich\n"), std::string("mpich\n").size());
  Machine machine(most);
  const Ran ran = machine.run("test.sh");
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.says("say so: mpich")) << ran.output;
  EXPECT_EQ(machine.count("apt-get"), 0U);
  EXPECT_LT(lines_of(ran.output), 8U) << ran.output;
}

// A build with two programs, of which one has no case that the filter names; what compares ends
// with `code`.
void add_microbenchmarks(const Machine& machine, const std::string& build, int code) {
  const std::string listing = "case $2 in *list_tests*) echo $1; exit ;; esac\n";
  const std::string body =
      "for word; do case $word in --benchmark_out=*) echo {} > \"${word#*=}\" ;; esac; done\n";
  machine.add_program(
      build + "/bin/a_bench",
      "echo a_bench $* >> \"$ROOT/log\"\nset -- a/b \"$2\" \"$@\"\n" + listing + body);
  machine.add_program(build + "/bin/b_bench", "exit 0");
  machine.add_program(build + "/bin/microbench_compare",
                      fmt::format("echo \"$*\" >> \"$ROOT/log\"\n"
                                  "case $1 in bundle) echo all > \"$2\" ;; *) exit {} ;; esac",
                                  code));
}

TEST(Microbench, RunsWhatTheFilterNamesAndSaves) {
  Machine machine(everything());
  add_microbenchmarks(machine, "mine", 0);
  const Ran ran =
      machine.run("microbench.sh --build \"$ROOT/mine\" --filter ^a/ --save \"$ROOT/base\"");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(ran.says("running a_bench")) << ran.output;
  EXPECT_FALSE(ran.says("running b_bench")) << ran.output;
  EXPECT_EQ(machine.count("--benchmark_repetitions=7"), 1U) << machine.log();
  EXPECT_EQ(machine.text("base"), "all\n");
  EXPECT_EQ(machine.count("cmake"), 0U) << machine.log();
  EXPECT_EQ(machine.run("microbench.sh --build /nonexistent").code, 1);
}

TEST(Microbench, WhatIsSlowerIsTheExitCodeAndNoBase) {
  Machine machine(everything());
  machine.write("base");
  const std::string options = "microbench.sh --compare \"$ROOT/base\" --save \"$ROOT/base\"";
  for (const int code : {1, 5, 0}) {
    add_microbenchmarks(machine, "tree/build/release", code);
    EXPECT_EQ(machine.run(options).code, code);
    EXPECT_EQ(machine.text("base"), code == 0 ? "all\n" : "") << code;
  }
  EXPECT_EQ(machine.count("--build build/release --target microbench"), 3U) << machine.log();
}

TEST(PolicyExample, IsRead) {
  const policy::Rules rules =
      policy::load_rules(std::string(SOURCE_DIRECTORY) + "/etc/policy.conf");
  EXPECT_EQ(rules.rules.size(), 2U);
}

}  // namespace
}  // namespace hcomm
