// SPDX-License-Identifier: Apache-2.0
// One body over the registry: what the contract of transport.h promises, for every transport. A
// skip comes from probe() only.
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/fleet.h"

namespace hcomm::test {
namespace {

class TransportTest : public testing::TestWithParam<const Transport*> {
 protected:
  void SetUp() override {
    const std::string reason = transport().probe(Config{});
    if (!reason.empty()) GTEST_SKIP() << transport().name() << ": " << reason;
  }
  const Transport& transport() const { return *GetParam(); }
  bool alone() const { return transport().name() == "self"; }
  std::vector<uint32_t> rank_counts() const {
    return alone() ? std::vector<uint32_t>{1} : std::vector<uint32_t>{2, 3, 8};
  }
  uint32_t ranks() const { return alone() ? 1 : 2; }
};

std::vector<size_t> sizes(size_t ring) {
  std::vector<size_t> all = {0,    1,    7,    39,       40,   41,       63,       64,           65,
                             4095, 4096, 4097, ring - 1, ring, ring + 1, 2 * ring, 10 * kMiB + 3};
  return all;
}

// Every rank sends each size to every rank (itself only where alone) and receives the same.
void exchange_all(Rank& rank, std::span<const size_t> lengths) {
  const uint32_t n = rank.ranks();
  uint32_t sequence = 0;
  for (const size_t bytes : lengths) {
    for (uint32_t shift = n == 1 ? 0 : 1; shift < std::max(n, 1u); shift++) {
      const uint32_t to = (rank.rank() + shift) % n, from = (rank.rank() + n - shift) % n;
      const Label label{++sequence, 77};
      std::vector<std::byte> data = pattern(bytes, rank.rank() + 100 * bytes);
      std::vector<std::byte> got(bytes);
      Sending sending(label, data);
      Receiving receiving(label, got);
      ASSERT_EQ(exchange(rank.to(to), sending.message, rank.to(from), receiving), Status())
          << bytes << " bytes";
      ASSERT_TRUE(got == pattern(bytes, from + 100 * bytes)) << bytes << " bytes from " << from;
    }
  }
}

TEST_P(TransportTest, EverySizeArrives) {
  for (const uint32_t n : rank_counts()) {
    Fleet fleet(transport(), n);
    const std::vector<size_t> lengths = sizes(kMiB);
    fleet.run([&](Rank& rank) { exchange_all(rank, lengths); });
  }
}

std::string name_of(const testing::TestParamInfo<const Transport*>& info) {
  return std::string(info.param->name());
}
INSTANTIATE_TEST_SUITE_P(All, TransportTest, testing::ValuesIn(all().begin(), all().end()),
                         name_of);

}  // namespace
}  // namespace hcomm::test
