// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "support/stop.h"

namespace hcomm {
namespace {

TEST(Process, TheHostHasAName) {
  EXPECT_FALSE(host_name().empty());
}

TEST(Process, StateAndParentWhateverTheName) {
  name_thread("odd ) Z 1 (x");  // of the main thread: the name in its stat
  const auto own = read_process(getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->letter, 'R');
  EXPECT_EQ(own->parent, getppid());
}

TEST(Process, StoppedEndedGone) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    test::stop_self();
    _exit(0);
  }
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOWAIT), 0);
  EXPECT_EQ(read_process(child)->letter, 'T');
  kill(child, SIGCONT);
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(read_process(child)->letter, 'Z');
  EXPECT_EQ(read_process(child)->parent, getpid());
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(read_process(child));
}

TEST(Process, AChildIsAnotherGeneration) {
  const uint32_t own = process_generation();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(process_generation() == own ? 1 : 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(process_generation(), own);
}

}  // namespace
}  // namespace hcomm
