// SPDX-License-Identifier: Apache-2.0
#include "schedule/dump.h"

#include <gtest/gtest.h>

#include "schedule/samples.h"

namespace hcomm::schedule {
namespace {

using samples::build_all;
using samples::named;

TEST(Dump, RingOfThree) {
  EXPECT_EQ(dump(build_all(named("ring_all_reduce"), 3)[1]),
            R"(all_reduce ring_all_reduce rank 1 of 3, parts 3
  tmp[0] as out[0]
  tmp[1] as out[2]
  0 send    in[1] to 2
  1 recv    tmp[0] from 0
  2 reduce  out[0] = tmp[0] + in[0]      after 1
  3 send    out[0] to 2                  after 2
  4 recv    tmp[1] from 0
  5 reduce  out[2] = tmp[1] + in[2]      after 4
  6 send    out[2] to 2                  after 5
  7 recv    out[1] from 0
  8 send    out[1] to 2                  after 7
  9 recv    out[0] from 0                after 2,3
)");
}

TEST(Dump, MulticastAndRankOrder) {
  const Shape shape{.in_place = true, .ranks = 3};
  EXPECT_EQ(dump(build_all(named("direct_all_reduce"), shape)[0]),
            R"(all_reduce direct_all_reduce rank 0 of 3, parts 1, rank order, in place
  tmp[0] as in[0]
  tmp[1] as in[0]
  tmp[2] as out[0]
  0 send    in[0] to 1,2
  1 recv    tmp[0] from 1
  2 recv    tmp[1] from 2
  3 reduce  tmp[2] = in[0] + tmp[0]      after 1
  4 reduce  out[0] = tmp[2] + tmp[1]     after 0,2,3
)");
}

TEST(Dump, RootAndVaried) {
  const Shape shape{.varied = true, .ranks = 2, .root = 1};
  EXPECT_EQ(dump(build_all(named("linear_gather"), shape)[1]),
            R"(gather linear_gather rank 1 of 2 root 1, parts 1, varied
  0 copy    out[1] = in[0]
  1 recv    out[0] from 0
)");
}

TEST(Dump, Tokens) {
  EXPECT_EQ(dump(build_all(named("dissemination_barrier"), 2)[0]),
            R"(barrier dissemination_barrier rank 0 of 2, parts 1
  tmp[0..2] empty
  0 send    tmp[0] to 1
  1 recv    tmp[1] from 1
  2 reduce  tmp[2] = tmp[0] + tmp[1]     after 1
)");
}

TEST(Dump, Dot) {
  EXPECT_EQ(dump_dot(build_all(named("chain_broadcast"), 3)),
            R"(digraph schedule {
  rankdir=TB;
  node [shape=box, fontname=monospace];
  subgraph cluster_0 {
    label="rank 0";
    r0s0 [label="0 send in[0] to 1"];
    r0s1 [label="1 copy out[0] = in[0]"];
  }
  subgraph cluster_1 {
    label="rank 1";
    r1s0 [label="0 recv out[0] from 0"];
    r1s1 [label="1 send out[0] to 2"];
    r1s0 -> r1s1;
  }
  subgraph cluster_2 {
    label="rank 2";
    r2s0 [label="0 recv out[0] from 1"];
  }
  r0s0 -> r1s0 [style=dashed, constraint=false];
  r1s1 -> r2s0 [style=dashed, constraint=false];
}
)");
}

TEST(Dump, OddSchedulesPrintToo) {
  std::vector<Schedule> all = build_all(named("chain_broadcast"), 2);
  all[0].steps[0].a = {};
  all[1].steps[0].to = {7, 3, 0};
  EXPECT_NE(dump(all[0]).find("send    nothing to 1"), std::string::npos) << dump(all[0]);
  EXPECT_NE(dump(all[1]).find("recv    ? from 0"), std::string::npos) << dump(all[1]);
}

}  // namespace
}  // namespace hcomm::schedule
