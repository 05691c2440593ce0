// SPDX-License-Identifier: Apache-2.0
// Numbers that outlive a job: found again, gone in time, and never taken from what is not ours or
// not whole.
#include "comm/calibration/cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "support/shell.h"

namespace hcomm::comm {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNow_s = 1'800'000'000;

class Kept : public testing::Test {
 protected:
  std::string parent() const { return folder_.path().string(); }
  fs::path file() const { return folder_.path() / "hcomm/calibration"; }
  Cache at(int64_t now_s) const { return Cache(parent(), now_s); }
  void keep(uint64_t key, Cache::Values values, int64_t now_s = kNow_s) const {
    Cache cache = at(now_s);
    cache.put(key, values);
    cache.save();
  }
  bool knows(uint64_t key, int64_t now_s = kNow_s) const { return at(now_s).find(key).has_value(); }
  void write_file(std::string_view text) const { folder_.write("hcomm/calibration", text); }
  // As the cache writes it, whatever the lines are.
  void write_lines(const std::string& lines, const std::string& format = "2") const {
    write_file(fmt::format("hcomm-calibration {} {:016x}\n{}", format, hash_bytes(lines), lines));
  }

  size_t lines() const {
    const std::string text = test::file_text(file());
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  test::TemporaryFolder folder_;
};

TEST_F(Kept, IsFoundAgainExactly) {
  keep(7, {0.1 + 0.2, 1e-300});
  keep(8, {3, 4});
  const Cache cache = at(kNow_s);
  ASSERT_TRUE(cache.find(7) && cache.find(8));
  EXPECT_EQ(cache.find(7)->first, 0.1 + 0.2);
  EXPECT_EQ(cache.find(7)->second, 1e-300);
  EXPECT_EQ(cache.find(8)->second, 4);
  EXPECT_FALSE(cache.find(9));
}

TEST_F(Kept, IsForTheUserAlone) {
  const mode_t before = umask(0);
  keep(7, {1, 2});
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(stat(file().parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(Kept, ExpiresAlsoWhenTheClockWasSetBack) {
  keep(7, {1, 2});
  EXPECT_TRUE(knows(7, kNow_s + Cache::kLife_s - 1));
  EXPECT_FALSE(knows(7, kNow_s + Cache::kLife_s));
  EXPECT_FALSE(knows(7, kNow_s - 1));
  keep(8, {1, 2}, kNow_s + Cache::kLife_s);
  EXPECT_EQ(lines(), 2u) << "what has expired is not written again";
}

TEST_F(Kept, TheOldestMakesRoom) {
  Cache cache = at(kNow_s);
  for (uint64_t key = 0; key < Cache::kMostEntries + 10; key++) cache.put(key, {1, 2});
  cache.put(20, {3, 4});
  cache.save();
  EXPECT_FALSE(knows(9));
  EXPECT_TRUE(knows(10));
  EXPECT_EQ(at(kNow_s).find(20)->first, 3);
  EXPECT_EQ(lines(), 1 + Cache::kMostEntries);
}

TEST_F(Kept, OfAFileThatIsNotWholeNothingIsTaken) {
  keep(7, {0.25, 2});
  const std::string whole = test::file_text(file());
  for (size_t bytes = 0; bytes < whole.size(); bytes++) {
    write_file(whole.substr(0, bytes));
    EXPECT_FALSE(knows(7)) << bytes;
  }
  for (size_t at = 0; at < whole.size(); at++) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write_file(changed);
    EXPECT_FALSE(knows(7)) << at;
  }
  keep(8, {1, 2});  // replaces it
  EXPECT_TRUE(knows(8));
  EXPECT_FALSE(knows(7));
}

TEST_F(Kept, HostileLinesAreNoEntries) {
  const std::string good = fmt::format("0000000000000007 {} 1 2 0\n", kNow_s);
  write_lines(good);
  EXPECT_TRUE(knows(7));
  write_lines(good, "1");
  EXPECT_FALSE(knows(7));
  for (const char* line :
       {"\n", "7\n", "7 1800000000\n", "7 1800000000 1 2\n", "x 1800000000 1 2 3\n",
        "7 1800000000 1 2 3 4\n", "7  1800000000 1 2 3\n", "7 99999999999999999999 1 2 3\n",
        "-7 1800000000 1 2 3\n", "7 1800000000 1 2 3", "7 1800000000 1e999 2 3\n"}) {
    write_lines(good + line);
    EXPECT_FALSE(knows(7)) << line;
  }
  write_file(std::string(1 << 20, '7'));
  EXPECT_FALSE(knows(7));
}

// Whether they may come from a measurement is for who asks.
TEST_F(Kept, NumbersAreAsWritten) {
  write_lines(fmt::format("7 {} nan -inf 0\n", kNow_s));
  ASSERT_TRUE(knows(7));
  EXPECT_TRUE(std::isnan(at(kNow_s).find(7)->first));
}

TEST_F(Kept, NothingIsTakenFromWhereOthersMayWrite) {
  keep(7, {1, 2});
  for (const mode_t mode : {0777, 0770, 0702}) {
    ASSERT_EQ(chmod(file().parent_path().c_str(), mode), 0);
    EXPECT_FALSE(knows(7)) << mode;
    EXPECT_FALSE(at(kNow_s).writable());
  }
  ASSERT_EQ(chmod(file().parent_path().c_str(), 0700), 0);
  EXPECT_TRUE(knows(7));
  ASSERT_EQ(chmod(file().c_str(), 0622), 0);
  EXPECT_FALSE(knows(7));
  keep(8, {1, 2});  // replaces it
  EXPECT_TRUE(knows(8));
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(file().parent_path().c_str(), 1, 1), 0);
  EXPECT_FALSE(knows(8));
}

TEST_F(Kept, LinksAreNotFollowed) {
  keep(7, {1, 2});
  fs::rename(file(), folder_.path() / "elsewhere");
  fs::create_symlink(folder_.path() / "elsewhere", file());
  EXPECT_FALSE(knows(7));
  keep(8, {1, 2});  // in place of the link
  EXPECT_FALSE(fs::is_symlink(file()));
  fs::rename(folder_.path() / "hcomm", folder_.path() / "other");
  fs::create_symlink(folder_.path() / "other", folder_.path() / "hcomm");
  EXPECT_FALSE(knows(8));
}

TEST_F(Kept, WhatIsNoFileIsNothing) {
  fs::create_directories(file());
  EXPECT_FALSE(knows(7));
  keep(7, {1, 2});  // cannot be done
  EXPECT_FALSE(knows(7));
  fs::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_FALSE(knows(7));  // and does not wait for a writer
}

TEST(NotKept, WithoutAFolder) {
  for (const char* parent : {"", "/proc/nothing", "/dev/null"}) {
    Cache cache(parent, kNow_s);
    EXPECT_FALSE(cache.writable()) << parent;
    cache.put(7, {1, 2});
    cache.save();
    EXPECT_FALSE(Cache(parent, kNow_s).find(7)) << parent;
  }
}

TEST_F(Kept, OfTwoJobsTheLaterOneWins) {
  Cache first = at(kNow_s), second = at(kNow_s);
  first.put(7, {1, 2});
  second.put(8, {3, 4});
  first.save();
  second.save();
  EXPECT_FALSE(knows(7));
  EXPECT_TRUE(knows(8));
}

TEST_F(Kept, JobsAtOnceFindAWholeFile) {
  keep(7, {1, 2});
  std::vector<std::thread> jobs;
  for (int i = 0; i < 4; i++)
    jobs.emplace_back([&] {
      for (int round = 0; round < 50; round++) {
        Cache cache = at(kNow_s);
        EXPECT_TRUE(cache.find(7));
        cache.put(7, {1, 2});
        cache.save();
      }
    });
  for (std::thread& job : jobs) job.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(file().parent_path()), {}), 1);
}

TEST_F(Kept, WhatADeadWriterLeftIsSweptUp) {
  folder_.write("hcomm/calibration.1", "");
  folder_.write("hcomm/calibration.2", "");
  folder_.write("hcomm/another", "");
  const auto old = fs::file_time_type::clock::now();
  const auto now_s = wall_ns() / 1'000'000'000;
  fs::last_write_time(folder_.path() / "hcomm/calibration.1", old - std::chrono::hours(2));
  fs::last_write_time(folder_.path() / "hcomm/another", old - std::chrono::hours(2));
  keep(7, {1, 2}, now_s);
  EXPECT_FALSE(fs::exists(folder_.path() / "hcomm/calibration.1"));
  EXPECT_TRUE(fs::exists(folder_.path() / "hcomm/calibration.2")) << "its writer may live";
  EXPECT_TRUE(fs::exists(folder_.path() / "hcomm/another"));
}

}  // namespace
}  // namespace hcomm::comm
