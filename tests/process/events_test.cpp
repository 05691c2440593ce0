// SPDX-License-Identifier: Apache-2.0
// SIG-01 for events: those of the parent are refused in a forked child, and nobody waits for them.
#include <string>

#include "process/processes.h"

namespace hcomm::test {
namespace {

TEST(Fork, SIG_01_EventsOfTheParentAreRefusedInAChild) {
  EXPECT_EQ(run_processes(1, [](const Process& self) {
    hcommEvent_t event;
    hcommStream_t stream;
    self.check(hcommEventCreate(&event), "event");
    self.check(hcommStreamCreate(&stream, nullptr), "stream");
    self.check(hcommEventRecord(event, stream), "record");
    self.check(hcommStreamSynchronize(stream), "synchronize");
    const pid_t child = fork();
    if (child == 0) {
      const auto refused = [](hcommResult_t result) {
        return result == hcommInvalidUsage || result == hcommInvalidArgument;
      };
      if (!refused(hcommEventQuery(event))) _exit(1);
      if (!refused(hcommEventRecord(event, nullptr))) _exit(2);
      if (!refused(hcommStreamWaitEvent(nullptr, event))) _exit(3);
      if (!refused(hcommEventDestroy(event))) _exit(4);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) std::fprintf(stderr, "call %d was not refused\n", WEXITSTATUS(status));
    self.expect(status == 0, "that all calls are refused");
  }), std::vector<int>{0});
}

}  // namespace
}  // namespace hcomm::test
