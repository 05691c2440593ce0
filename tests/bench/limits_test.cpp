// SPDX-License-Identifier: Apache-2.0
// The parts of hcc-bench limits: crews that end well, badly and not at all, and reports of limits
// that were never measured.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/process.h"
#include "base/thread.h"
#include "hcc-bench/limits/crew.h"
#include "hcc-bench/limits/report.h"
#include "support/shell.h"

namespace hcomm::bench::limits {
namespace {

using cli::Json;

// Any core of this process; crews of two then share it.
int some_core() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  int core = 0;
  while (!CPU_ISSET(core, &set)) core++;
  return core;
}

Crew crew(size_t members) {
  return {std::vector<int>(members, some_core()), 1e-4, 60};
}

Code thrown_by(const Crew& crew, const std::function<void(Member&)>& body) {
  try {
    run_crew(crew, body);
  } catch (const Error& error) {
    return error.code();
  }
  return Code::ok;
}

TEST(Crew, AllMembersRepeatAsOften) {
  const Mapping counts(4096, Sharing::shared);
  auto* const calls = counts.as<uint64_t>();
  const Timed timed = run_crew(crew(3), [&](Member& member) {
    member.time([&] { calls[member.rank()]++; });
    member.barrier();
    if (calls[member.rank()] != calls[0]) fail(Code::internal, "not as often as member 0");
  });
  EXPECT_GT(calls[0], 3u);
  EXPECT_GT(timed.best_us, 0);
  EXPECT_LE(timed.best_us, timed.p50_us);
  EXPECT_EQ(state(timed), "");  // they share a core
}

TEST(Crew, TheSlowestMemberCountsAndPartsDivide) {
  const Timed timed = run_crew(crew(2), [](Member& member) {
    member.time([&] { usleep(member.rank() == 1 ? 2000 : 0); }, 2);
  });
  EXPECT_GE(timed.best_us, 1000);
}

TEST(Crew, AnErrorOfAMemberIsThrown) {
  for (const Code code : {Code::unavailable, Code::internal})
    EXPECT_EQ(thrown_by(crew(2),
                        [&](Member& member) {
                          if (member.rank() == 1) fail(code, "no");
                          member.barrier();
                        }),
              code);
}

TEST(Crew, ADeadMemberEndsTheOthers) {
  EXPECT_EQ(thrown_by(crew(3),
                      [](Member& member) {
                        if (member.rank() == 2) raise(SIGKILL);
                        member.barrier();
                      }),
            Code::system);
  EXPECT_EQ(thrown_by(crew(2), [](Member& member) { _exit(member.rank() == 0 ? 3 : 0); }),
            Code::system);
}

TEST(Crew, OneThatNeverEndsIsEnded) {
  const Mapping pids(4096, Sharing::shared);
  Crew late = crew(2);
  late.limit_s = 0.2;
  EXPECT_EQ(thrown_by(late,
                      [&](Member& member) {
                        pids.as<pid_t>()[member.rank()] = getpid();
                        while (true) pause();
                      }),
            Code::timeout);
  for (int i = 0; i < 2; i++)
    if (const pid_t pid = pids.as<pid_t>()[i]; pid != 0) {
      EXPECT_FALSE(read_process(pid)) << "left behind";
    }
}

TEST(Limits, StatesOfCores) {
  EXPECT_EQ(state({1, 1, 30, 40}), "near");
  EXPECT_EQ(state({1, 1, 150, 160}), "far");
  EXPECT_EQ(state({1, 1, 30, 160}), "moved");
  EXPECT_EQ(state({1, 1, {}, {}}), "");
  EXPECT_EQ(distance_ns({1, 1, 30, 160}), 160);
}

std::vector<Limit> some_limits() {
  Limit copy{.section = "memory", .name = "copy", .bytes = 1000, .bounds = "a, \"b\""};
  copy.timed = Timed{2, 3, {}, {}};
  Limit direct{.section = "allreduce", .name = "direct", .bytes = 4, .processes = 2};
  direct.timed = Timed{0.1, 0.2, 30, 35};
  Limit absent{.section = "cores", .name = "line", .processes = 2, .absent = "needs two cores"};
  return {copy, direct, absent};
}

TEST(LimitsReport, JsonHasUnitsAndNulls) {
  const Machine machine{.cores = {4, 6}, .last_level_cache_bytes = 1 << 20, .kernels = "avx2"};
  const Json json = Json::parse(cli::json_pretty(document_json(machine, some_limits())));
  EXPECT_EQ(json["schema"], "hcc-bench-limits");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["distance"]["cores"], Json({4, 6}));
  EXPECT_EQ(json["distance"]["state"], "near");
  EXPECT_EQ(json["distance"]["most_ns"], 35.0);
  const Json &copy = json["limits"][0], &direct = json["limits"][1], &absent = json["limits"][2];
  EXPECT_EQ(copy["bytes_per_s"], 5e8);
  EXPECT_TRUE(copy["state"].is_null());
  EXPECT_EQ(direct["best_us"], 0.1);
  EXPECT_EQ(direct["distance_ns"], 35.0);
  for (const char* key : {"bytes", "best_us", "p50_us", "bytes_per_s", "distance_ns", "state"})
    EXPECT_TRUE(absent[key].is_null()) << key;
  EXPECT_EQ(absent["absent"], "needs two cores");
  EXPECT_TRUE(document_json(machine, {some_limits()[2]})["distance"].is_null());
}

std::string written(const std::string& format) {
  const test::TemporaryFolder folder;
  Options options;
  options.format = format;
  options.output = (folder.path() / "out").string();
  options.common.quiet = true;
  const std::vector<Limit> limits = some_limits();
  Sheet sheet(sheet_plan(options, {.cores = {0, 1}}, limits));
  for (const Limit& limit : limits) sheet.add(entry_of(limit, options));
  sheet.end("");
  return test::file_text(folder.path() / "out");
}

TEST(LimitsReport, TableCsvMarkdown) {
  const std::string table = written("table"), csv = written("csv"), md = written("md");
  EXPECT_NE(table.find("# allreduce\n  direct "), std::string::npos) << table;
  EXPECT_NE(table.find("absent: needs two cores"), std::string::npos) << table;
  EXPECT_NE(table.find("35 near"), std::string::npos) << table;
  EXPECT_NE(csv.find("section,name,bytes,processes,best_us"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",\"a, \"\"b\"\"\","), std::string::npos) << csv;
  EXPECT_NE(md.find("| direct |"), std::string::npos) << md;
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace hcomm::bench::limits
