// SPDX-License-Identifier: Apache-2.0
#include "device/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/bytes.h"
#include "base/error.h"
#include "device/memfd.h"

namespace hcomm {
namespace {

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    count++;
  return count;
}

std::byte* at(void* pointer) {
  return static_cast<std::byte*>(pointer);
}

TEST(SharedMemoryTest, IsZeroAlignedAndWritable) {
  SharedMemory memory(Switch::automatic);
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{4097}, 3 * kMiB + 1}) {
    std::byte* base = at(memory.allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(base) % 4096, 0u);
    EXPECT_TRUE(std::all_of(base, base + bytes, [](std::byte b) { return b == std::byte{}; }));
    std::fill(base, base + bytes, std::byte{7});
  }
}

TEST(SharedMemoryTest, FindsWhatLiesWhollyInside) {
  SharedMemory memory(Switch::off);
  int elsewhere = 0;
  EXPECT_FALSE(memory.find(&elsewhere, sizeof elsewhere));
  std::byte* first = at(memory.allocate(10'000));
  std::byte* second = at(memory.allocate(5'000));
  const auto a = memory.find(first, 10'000), b = memory.find(second + 100, 4'900);
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->id, b->id);
  EXPECT_EQ(a->offset, 0u);
  EXPECT_EQ(a->bytes, 10'000u);
  EXPECT_EQ(b->offset, 100u);
  EXPECT_EQ(memory.find(second + 100, 0)->id, b->id);
  EXPECT_FALSE(memory.find(first, 10'001)) << "ends outside";
  EXPECT_FALSE(memory.find(first + 10'001, 0)) << "begins outside";
  EXPECT_FALSE(memory.find(first - 1, 2)) << "begins before";
  EXPECT_FALSE(memory.find(first + 8, SIZE_MAX)) << "wraps around";
  EXPECT_FALSE(memory.find(&elsewhere, sizeof elsewhere));
  EXPECT_EQ(memory.address(b->id), second);
}

TEST(SharedMemoryTest, FreesWhatItGaveOutAndNothingElse) {
  const size_t before = open_descriptors();
  SharedMemory memory(Switch::off);
  std::byte* base = at(memory.allocate(8'192));
  const uint64_t id = memory.find(base, 1)->id;
  EXPECT_FALSE(memory.free(base + 1));
  EXPECT_FALSE(memory.free(nullptr));
  EXPECT_TRUE(memory.free(base));
  EXPECT_FALSE(memory.free(base)) << "twice";
  EXPECT_FALSE(memory.find(base, 1));
  EXPECT_EQ(memory.address(id), nullptr);
  EXPECT_EQ(memory.descriptor(id), -1);
  EXPECT_EQ(open_descriptors(), before);
  const uint64_t next = memory.find(memory.allocate(8'192), 1)->id;
  EXPECT_NE(next, id) << "never used again";
}

// A peer's mapping of it sees the same bytes, and costs no memory once it is freed.
TEST(SharedMemoryTest, IsSharedByDescriptor) {
  SharedMemory memory(Switch::off);
  std::byte* base = at(memory.allocate(10'000));
  base[9'999] = std::byte{42};
  const UniqueFd fd(memory.descriptor(memory.find(base, 1)->id));
  ASSERT_TRUE(fd);
  EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  const Mapping peer = map_shared_pages(fd.get(), Access::read);
  ASSERT_GE(peer.bytes(), 10'000u);
  EXPECT_EQ(peer.base()[9'999], std::byte{42});
  memory.free(base);
  EXPECT_EQ(peer.base()[9'999], std::byte{}) << "given back, and no fault";
}

TEST(SharedMemoryTest, SaysWhatWasWantedAndWhatThereIs) {
  SharedMemory memory(Switch::automatic);
  for (const size_t bytes : {available_bytes() + kGiB, SIZE_MAX, SIZE_MAX / 2}) {
    try {
      memory.allocate(bytes);
      ADD_FAILURE() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::system);
      EXPECT_NE(error.text().find("wanted"), std::string::npos) << error.text();
      EXPECT_NE(error.text().find("available"), std::string::npos) << error.text();
    }
  }
  EXPECT_THROW(memory.allocate(0), Error);
}

// ftruncate beyond the limit of file sizes is a signal, not an error.
TEST(SharedMemoryTest, AFileLimitIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{.rlim_cur = 1 * kMiB, .rlim_max = 1 * kMiB};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    SharedMemory memory(Switch::off);
    try {
      memory.allocate(2 * kMiB);
      ::_exit(2);
    } catch (const Error&) {
      ::_exit(0);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// [SHM-07]
TEST(SharedMemoryTest, DemandedHugePagesThatAreNotThereAreAnError) {
  std::ifstream file("/proc/sys/vm/nr_hugepages");
  int huge_pages = 0;
  if (!(file >> huge_pages) || huge_pages != 0) GTEST_SKIP() << huge_pages << " huge pages here";
  SharedMemory memory(Switch::on);
  try {
    memory.allocate(4 * kMiB);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.text().find("0 huge pages of"), std::string::npos) << error.text();
    EXPECT_NE(error.text().find("HCOMM_HUGEPAGES=auto"), std::string::npos) << error.text();
  }
}

TEST(SharedMemoryTest, MaySoundlyBeAskedFromManyThreads) {
  SharedMemory memory(Switch::off);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; i++) {
        std::byte* base = at(memory.allocate(4'096));
        const auto found = memory.find(base + 10, 100);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->offset, 10u);
        EXPECT_TRUE(memory.free(base));
      }
    });
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace hcomm
