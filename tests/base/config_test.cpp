// SPDX-License-Identifier: Apache-2.0
// Settings, and which launcher an environment speaks of.
#include "base/config.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/launcher.h"

namespace hcomm {
namespace {

using Entries = std::vector<const char*>;

TEST(Config, EmptyCountsAsUnset) {
  const Entries entries = {"HCOMM_TIMEOUT=", "HCOMM_WINDOW=3", "HCOMM_WINDOW_=9"};
  const Config config = Config::from_env(entries);
  EXPECT_EQ(config.timeout_ms, Config().timeout_ms);
  EXPECT_EQ(config.window, 3u);
}

TEST(Config, WhatCannotBeReadNamesItsVariable) {
  for (const char* entry : {"HCOMM_RANK=x", "HCOMM_SIZE=1.5", "HCOMM_TIMEOUT=1d", "HCOMM_LOG=loud"})
    try {
      Config::from_env(Entries{entry});
      ADD_FAILURE() << entry;
    } catch (const Error& error) {
      const std::string_view text = entry;
      EXPECT_TRUE(error.text().starts_with(text.substr(0, text.find('=')))) << error.text();
    }
}

TEST(Config, TheUsersCacheFolder) {
  const auto folder = [](const Entries& entries) {
    return Config::from_env(entries).cache_folder;
  };
  EXPECT_EQ(folder({"HOME=/home/ann", "XDG_CACHE_HOME=/var/cache/ann"}), "/var/cache/ann");
  EXPECT_EQ(folder({"HOME=/home/ann", "XDG_CACHE_HOME="}), "/home/ann/.cache");
  EXPECT_EQ(folder({"HOME=/home/ann", "XDG_CACHE_HOME=cache"}), "/home/ann/.cache");
  EXPECT_EQ(folder({"HOME=ann"}), "");
  EXPECT_EQ(folder({}), "");
}

TEST(Config, CalibrationIsKeptOrNot) {
  EXPECT_TRUE(Config::from_env(Entries{}).calibration_cached);
  EXPECT_TRUE(Config::from_env(Entries{"HCOMM_CALIBRATION=cache"}).calibration_cached);
  EXPECT_FALSE(Config::from_env(Entries{"HCOMM_CALIBRATION=measure"}).calibration_cached);
  EXPECT_THROW(Config::from_env(Entries{"HCOMM_CALIBRATION=no"}), Error);
}

// What hcc-launch sets for each rank: a person's is taken away, and none is shown in reports.
TEST(Config, TheLaunchersOwnVariables) {
  std::set<std::string_view> own, secret;
  for (const Setting& setting : settings()) {
    if (setting.kind != Setting::Kind::plain) own.insert(setting.name);
    if (setting.kind == Setting::Kind::secret) secret.insert(setting.name);
  }
  EXPECT_EQ(own, (std::set<std::string_view>{"HCOMM_JOB_ID", "HCOMM_LOCAL_RANK", "HCOMM_LOCAL_SIZE",
                                             "HCOMM_RANK", "HCOMM_RECORDER_FD", "HCOMM_ROOT",
                                             "HCOMM_ROOT_FD", "HCOMM_SECRET", "HCOMM_SIZE"}));
  EXPECT_EQ(secret, std::set<std::string_view>{"HCOMM_SECRET"});
}

TEST(Config, UnknownVariablesAreTold) {
  const Entries entries = {"PATH=/bin",       "HCOMM_TIMEOUT=1s", "HCOMM_TIMOUT=1s",
                           "HCOMM_DEBUG=1",   "HCOMM_NODES=2",    "HCOMM_COMPLETELY_DIFFERENT=1",
                           "HCOMM_TOPOLOGY=x"};
  const std::vector<std::string> lines = unknown_settings(entries);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "HCOMM_TIMOUT is unknown; did you mean HCOMM_TIMEOUT?");
  EXPECT_EQ(lines[1], "HCOMM_DEBUG is not in this version: it does nothing");
  EXPECT_TRUE(lines[2].starts_with("HCOMM_NODES is unknown; ")) << lines[2];
  EXPECT_EQ(lines[3], "HCOMM_COMPLETELY_DIFFERENT is unknown; hcc env lists all");
  EXPECT_EQ(lines[4], "HCOMM_TOPOLOGY is not in this version: it does nothing");
}

std::string_view launcher_name(const Entries& entries) {
  const Launcher* launcher = launcher_of(entries);
  return launcher == nullptr ? "none" : launcher->name;
}

TEST(Launcher, TheInnermostCounts) {
  EXPECT_EQ(launcher_name({}), "none");
  EXPECT_EQ(launcher_name({"HCOMM_RANK=", "PATH=/bin"}), "none");
  EXPECT_EQ(launcher_name({"PMI_RANK=0"}), "PMI");
  EXPECT_EQ(launcher_name({"WORLD_SIZE=2"}), "torchrun");
  // torchrun, one process a node, under srun: eight ranks of torchrun, not two tasks of Slurm.
  EXPECT_EQ(launcher_name({"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2",
                           "PMI_RANK=1", "PMI_SIZE=2", "RANK=5", "WORLD_SIZE=8"}),
            "torchrun");
  EXPECT_EQ(launcher_name({"RANK=5", "WORLD_SIZE=8", "HCOMM_RANK=0", "HCOMM_SIZE=2"}),
            "hcc-launch");
  EXPECT_EQ(launcher_name({"PMI_RANK=1", "OMPI_COMM_WORLD_RANK=1"}), "Open MPI");
}

TEST(Launcher, ABatchScriptOfSlurmIsNoStep) {
  EXPECT_EQ(launcher_name({"SLURM_PROCID=0", "SLURM_NTASKS=4"}), "none");
  EXPECT_EQ(launcher_name({"SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_STEP_ID=2"}), "Slurm");
}

}  // namespace
}  // namespace hcomm
