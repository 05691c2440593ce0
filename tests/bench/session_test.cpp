// SPDX-License-Identifier: Apache-2.0
// hcc-bench compare against drivers that misbehave; the harness with ranks of its own; drivers that
// are built.
#include "hcc-bench/compare/session.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "hcc-bench/compare/build.h"
#include "hcc-bench/compare/contest.h"
#include "hcc-bench/peers/harness.h"
#include "support/shell.h"

namespace hcomm::compare {
namespace {

namespace fs = std::filesystem;

const std::atomic<int> kGoOn{0};

Subject fake(const std::string& how) {
  Subject subject{.name = how, .transports = {"shm"}};
  subject.launch = [how](const std::string&, const std::string&, int) {
    return Launch{{FAKE_PEER, how}, {}};
  };
  return subject;
}

struct Fake {
  explicit Fake(const std::string& how, double start_s = 30)
      : session({{FAKE_PEER, how}, {}}, Job{2, {0}, "plain", start_s}, kGoOn) {}
  std::optional<Measurement> ask(double limit_s = 30) {
    return session.measure({"allreduce", 4, 0.01, limit_s});
  }
  Session session;
};

// Runs it and returns the code and text of the Error that it throws.
template <typename Body>
std::pair<Code, std::string> failure(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.code(), error.text()};
  }
  return {Code::ok, ""};
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Session, AsksAndIsAnswered) {
  Fake fake("good");
  EXPECT_EQ(fake.session.version(), "fake 1.0\\x07");
  for (int i = 0; i < 3; i++) {
    const auto measured = fake.ask();
    ASSERT_TRUE(measured);
    EXPECT_EQ(measured->median_us, 2);
    EXPECT_EQ(measured->batches, 10);
    EXPECT_EQ(measured->after_ns, 31.5);
    EXPECT_EQ(measured->state(), State::near);
  }
  EXPECT_FALSE(Fake("unsupported").ask());
}

TEST(Session, ACrashIsToldWithTheLastWords) {
  Fake fake("crash");
  const auto [code, text] = failure([&] { fake.ask(); });
  EXPECT_EQ(code, Code::peer_failed);
  EXPECT_TRUE(holds(text, "signal 11")) << text;
  EXPECT_TRUE(holds(text, "about to crash\\x1b")) << text;
}

TEST(Session, WhoLeavesOrTalksNonsenseIsTold) {
  for (const auto& [how, part] : {std::pair{"leave", "exit code 7"},
                                  {"garbage", "banana"},
                                  {"endless", "without an end"},
                                  {"nan", "nan"}}) {
    Fake fake(how);
    const auto [code, text] = failure([&] { fake.ask(); });
    EXPECT_EQ(code, Code::peer_failed) << how;
    EXPECT_TRUE(holds(text, part)) << text;
  }
  EXPECT_TRUE(holds(failure([] { Fake("stillborn"); }).second, "no library here"));
  EXPECT_EQ(failure([] {
              Session({{"/nonexistent/driver"}, {}}, Job{}, kGoOn);
            }).first,
            Code::peer_failed);
}

TEST(Session, AHangEndsAtTheLimit) {
  Fake fake("hang");
  EXPECT_EQ(failure([&] { fake.ask(0.2); }).first, Code::timeout);
  EXPECT_EQ(failure([] { Fake("silent", 0.2); }).first, Code::timeout);
}

TEST(Session, AStopEndsTheWait) {
  std::atomic<int> stop{0};
  std::thread later([&] {
    poll(nullptr, 0, 200);
    stop.store(SIGINT);
  });
  const auto [code, text] = failure([&] {
    Session session({{FAKE_PEER, "hang"}, {}}, Job{2, {0}, "plain", 30}, stop);
    session.measure({"allreduce", 4, 0.01, 30});
  });
  later.join();
  EXPECT_EQ(code, Code::aborted);
}

// A process leaves nothing behind, also where it has made others.
TEST(Child, EndsWhatItStarted) {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "pid").string();
  {
    Child child({{"sh", "-c", "sleep 1000 & echo $! > " + file + "; wait"}, {}});
    while (!fs::exists(file) || fs::file_size(file) == 0) poll(nullptr, 0, 10);
  }
  const pid_t pid = std::stoi(test::file_text(file));
  for (int i = 0; i < 500 && kill(pid, 0) == 0; i++) poll(nullptr, 0, 10);
  EXPECT_FALSE(fs::exists("/proc/" + std::to_string(pid) + "/exe"));
}

TEST(Contest, GoesOnWithoutWhoFails) {
  std::vector<Contender> contenders;
  for (const char* how : {"good", "crash", "wrong", "unsupported", "stillborn", "mixed"})
    contenders.push_back({fake(how), ""});
  Options options;
  options.rounds = 3;
  options.budget_s = 0.01;
  Contest contest(contenders, "shm", 2, options, kGoOn);
  const Cell first = contest.measure(bench::Operation::all_reduce, 64);
  ASSERT_EQ(first.series.size(), 6U);
  EXPECT_EQ(first.series[0].turns.size(), 3U);
  EXPECT_TRUE(first.series[0].error.empty());
  EXPECT_TRUE(holds(first.series[1].error, "signal 11")) << first.series[1].error;
  EXPECT_TRUE(first.series[2].wrong());
  EXPECT_EQ(first.series[3].error, kUnsupported);
  EXPECT_TRUE(holds(first.series[4].error, "no library here"));
  EXPECT_EQ(first.series[5].turns.size(), 3U);  // repeated, then kept and told apart
  EXPECT_EQ(first.series[5].turns[0].measured.state(), State::mixed);
  const Cell second = contest.measure(bench::Operation::barrier, 0);
  EXPECT_EQ(second.series[0].turns.size(), 3U);
  EXPECT_TRUE(holds(second.series[1].error, "signal 11"));
  EXPECT_EQ(second.series[2].turns.size(), 3U);
}

TEST(Contest, LeavesOutWhoDoesNotKnowTheTransport) {
  const std::vector<Contender> contenders = {{fake("good"), ""}};
  Contest contest(contenders, "tcp", 2, Options{}, kGoOn);
  EXPECT_TRUE(contest.measure(bench::Operation::barrier, 0).series.empty());
}

TEST(Build, KeepsWhatIsBuiltAndSaysWhatIsNot) {
  const test::TemporaryFolder folder;
  const std::string sources = (folder.path() / "sources").string();
  const std::string cache = (folder.path() / "cache/deep").string();
  fs::create_directories(sources);
  for (const char* name : {"harness.h", "measure.h", "data.h"})
    std::ofstream(sources + "/" + name) << "\n";
  std::ofstream(sources + "/driver.c") << "int main(void) { return ANSWER; }\n";
  Subject subject{.name = "x", .source = "driver.c", .compiler = {find_program("gcc")}};
  const auto [code, text] = failure([&] { build_driver(subject, sources, cache); });
  EXPECT_EQ(code, Code::unavailable);
  EXPECT_TRUE(holds(text, "ANSWER")) << text;
  EXPECT_TRUE(fs::is_empty(cache));
  subject.compiler.push_back("-DANSWER=5");
  const std::string program = build_driver(subject, sources, cache);
  EXPECT_EQ(run({{program}, {}}, 10'000).code, 5);
  const auto made = fs::last_write_time(program);
  EXPECT_EQ(build_driver(subject, sources, cache), program);
  EXPECT_EQ(fs::last_write_time(program), made);
  std::ofstream(sources + "/harness.h") << "/* changed */\n";
  EXPECT_NE(build_driver(subject, sources, cache), program);
}

}  // namespace
}  // namespace hcomm::compare
