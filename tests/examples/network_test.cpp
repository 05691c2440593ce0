// SPDX-License-Identifier: Apache-2.0
// etc/network.sh: the training example on hosts of its own reaches what it reaches on one, and
// nothing is left of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include "examples/train_run.h"

namespace hcomm::test {
namespace {

Ran network(const std::string& arguments) {
  return shell(SOURCE_DIRECTORY "/etc/network.sh " + arguments);
}

bool makes_hosts() {
  return geteuid() == 0 && shell("command -v ip && command -v tc").code == 0 &&
         shell("unshare --net --mount --pid --fork --mount-proc ip link add type bridge").code == 0;
}

TEST(Network, HostsReachTheSameWeights) {
  if (!makes_hosts()) GTEST_SKIP() << "no network namespaces, or no iproute2";
  const std::string options = "--epochs 1 --limit 300 --hidden 32 --bucket 8K --deterministic";
  const Ran apart = network(fmt::format("--hosts 3 -- '{}' {}", TRAIN, options));
  ASSERT_EQ(apart.code, 0) << apart.output;
  EXPECT_TRUE(apart.says("3 ranks over HCOMM")) << apart.output;
  EXPECT_EQ(last_word(apart.output, "weights "), last_word(train(3, options).output, "weights "));
}

TEST(Network, TellsHowTheCommandEnded) {
  if (!makes_hosts()) GTEST_SKIP() << "no network namespaces, or no iproute2";
  const Ran ran = network("--hosts 2 --rate 10mbit -- sh -c 'exit $((HCOMM_RANK * 7))'");
  EXPECT_EQ(ran.code, 7) << ran.output;
  EXPECT_TRUE(network("--rate bogus -- true").says("network: tc refuses the rate bogus"));
}

TEST(Network, EndsWithItsSignal) {
  if (!makes_hosts()) GTEST_SKIP() << "no network namespaces, or no iproute2";
  const TemporaryFolder folder;
  const std::string up = (folder.path() / "up").string();
  for (const auto& [signal, code] : {std::pair{"TERM", 143}, {"KILL", 137}}) {
    const Ran ran = shell(fmt::format(
        SOURCE_DIRECTORY
        "/etc/network.sh --hosts 1 -- sh -c 'echo $$ > {0}; exec sleep $((700+77))' & "
        "while [ ! -s {0} ]; do sleep 0.01; done; kill -{1} $!; wait $!; code=$?; rm {0}; "
        "for i in $(seq 99); do pgrep -f 'sleep 77[7]' > {0}.left || exit $code; sleep 0.01; done; "
        "echo left; exit 1",
        up, signal));
    EXPECT_EQ(ran.code, code) << ran.output;
  }
}

TEST(Network, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(network("--bogus").code, 2);
  EXPECT_EQ(network("--hosts 0 -- true").code, 2);
  EXPECT_EQ(network("--hosts 201 -- true").code, 2);
  EXPECT_EQ(network("--hosts").code, 2);
  EXPECT_TRUE(network("--hosts 2").says("network: there is no command"));
  EXPECT_EQ(network("--help").code, 0);
}

}  // namespace
}  // namespace hcomm::test
