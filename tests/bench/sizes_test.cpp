// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/sizes.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/error.h"
#include "hcc-bench/operation.h"

namespace hcomm::bench {
namespace {

using Sizes = std::vector<size_t>;

TEST(Sizes, Table) {
  const struct {
    const char* text;
    Sizes sizes;
  } kTable[] = {
      {"0", {0}},
      {"8,64K,1M", {8, 65536, 1 << 20}},
      {"1K:8K", {1024, 2048, 4096, 8192}},
      {"1K:9K", {1024, 2048, 4096, 8192}},
      {"1K:64K:x4", {1024, 4096, 16384, 65536}},
      {"1M:4M:+1M", {1 << 20, 2 << 20, 3 << 20, 4 << 20}},
      {"10:25:+10", {10, 20}},
      {"5:5", {5}},
      {"5:5:+1", {5}},
      {"0:3:+1", {0, 1, 2, 3}},
      {"0,1:4", {0, 1, 2, 4}},
      {"4,1:4,4", {4, 1, 2}},  // each once, in the order given
      {"1kB", {1000}},
      {"1KiB", {1024}},
      {"1.5K", {1536}},
  };
  for (const auto& row : kTable) EXPECT_EQ(parse_sizes(row.text), row.sizes) << row.text;
}

TEST(Sizes, TheWholeRange) {
  const Sizes sizes = parse_sizes("1K:1G");
  ASSERT_EQ(sizes.size(), 21u);
  EXPECT_EQ(sizes.front(), kKiB);
  EXPECT_EQ(sizes.back(), kGiB);
  // The last doubling before the end of the number's range ends, too.
  EXPECT_EQ(parse_sizes("1:8589934591G").back(), size_t{1} << 62);
}

// BEN-05: what cannot be swept is refused, never looped over.
TEST(Sizes, Ben05Refused) {
  for (const char* text :
       {"",          ",",       "1,",     "1,,2",   "K",      "-1",          "1X",    "8:4",
        "0:8",       "0:8:x2",  "1:8:x1", "1:8:x0", "1:8:+0", "1:8:2",       "1:8:x", "1:8:+",
        "1:8:x2:x2", "0:1G:+1", "nan",    "inf",    "1e400",  "99999999999G"})
    EXPECT_THROW(parse_sizes(text), Error) << text;
}

TEST(Operations, Names) {
  using enum Operation;
  EXPECT_EQ(parse_operations("allreduce"), std::vector{all_reduce});
  EXPECT_EQ(parse_operations("all_reduce,All-Gather,REDUCESCATTERV"),
            (std::vector{all_reduce, all_gather, reduce_scatter_v}));
  EXPECT_EQ(parse_operations("p2p"), (std::vector{send_recv, ping_pong}));
  EXPECT_EQ(parse_operations("barrier,barrier"), std::vector{barrier});
  EXPECT_EQ(parse_operations("all").size(), operations().size() - 1);  // without startup
  try {
    parse_operations("alreduce");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.text().find("did you mean allreduce"), std::string::npos) << error.text();
  }
  EXPECT_THROW(parse_operations(""), Error);
}

// BEN-07: what a rank passes and holds, where sizes do not divide.
TEST(Operations, Ben07Layouts) {
  using enum Operation;
  for (const int ranks : {1, 2, 3, 5, 6})
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{7}, size_t{1000}, size_t{100003}})
      for (const OperationInfo& each : operations()) {
        size_t sum = 0, blocks = 0;
        for (int rank = 0; rank < ranks; rank++) {
          const Layout l = layout(each.operation, bytes, 4, {rank, ranks, 0});
          SCOPED_TRACE(testing::Message() << each.name << " " << bytes << " of " << ranks);
          EXPECT_EQ(l.bytes, l.elements * 4);
          EXPECT_EQ(l.elements == 0,
                    bytes == 0 || each.operation == barrier || each.operation == startup);
          EXPECT_LE(l.send, l.elements);
          EXPECT_LE(l.recv, l.elements);
          EXPECT_LE(l.own + l.count, std::max(l.elements, l.count));
          if (each.operation == all_gather || each.operation == reduce_scatter) {
            EXPECT_EQ(l.elements, l.count * static_cast<size_t>(ranks));
          }
          sum += l.count;
          blocks = l.elements;
        }
        if (each.cut == Cut::uneven_blocks && each.operation != all_to_all_v) {
          EXPECT_EQ(sum, blocks) << each.name;
        }
      }
}

TEST(Operations, AllToAllVCountsAgreeInPairs) {
  for (const int ranks : {1, 2, 3, 5, 8})
    for (const size_t bytes : {size_t{4}, size_t{1000}, size_t{99999}})
      for (int i = 0; i < ranks; i++)
        for (int j = 0; j < ranks; j++) {
          const Layout a = layout(Operation::all_to_all_v, bytes, 4, {i, ranks, 0});
          const Layout b = layout(Operation::all_to_all_v, bytes, 4, {j, ranks, 0});
          EXPECT_EQ(a.counts[static_cast<size_t>(j)], b.counts[static_cast<size_t>(i)]);
          EXPECT_EQ(a.elements, b.elements);
        }
}

}  // namespace
}  // namespace hcomm::bench
