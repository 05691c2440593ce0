// SPDX-License-Identifier: Apache-2.0
// RDV-07: more ranks on a host than fit a full mesh of connections.
#include <sys/resource.h>

#include <string>

#include "process/processes.h"
#include "support/held_port.h"

namespace hcomm::test {
namespace {

TEST(Join, RDV_07_TwoHundredRanksWithFewDescriptors) {
  for (const rlim_t most : {256u, 1024u}) {
    const HeldPort root;
    EXPECT_EQ(run_processes(200, [&](const Process& self) {
      const rlimit limit{most, most};
      self.expect(setrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit of descriptors");
      alarm(280);
      setenv("HCOMM_RANK", std::to_string(self.rank()).c_str(), 1);
      setenv("HCOMM_SIZE", "200", 1);
      setenv("HCOMM_ROOT", root.address().c_str(), 1);
      setenv("HCOMM_INIT_TIMEOUT", "250s", 1);
      hcommComm_t comm = nullptr;
      self.check(hcommCommInitWorld(&comm, nullptr), "init");
      self.check(hcommBarrier(comm, nullptr), "barrier", comm);
      self.shared().arrived.fetch_add(1);  // rank 0 serves the others until they are through
      while (self.shared().arrived.load() < 200) sched_yield();
      self.check(hcommCommDestroy(comm), "destroy");
    }), std::vector<int>(200, 0)) << most;
  }
}

}  // namespace
}  // namespace hcomm::test
