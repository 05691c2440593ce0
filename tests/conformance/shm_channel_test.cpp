// SPDX-License-Identifier: Apache-2.0
// A channel of shared memory against a peer that writes nonsense: whatever stands in the memory
// that it may write, we report an error and stay alive.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "conformance/fleet.h"
#include "transport/shm/channel.h"

namespace hcomm::test {
namespace {

class CorruptTest : public testing::Test {
 protected:
  CorruptTest()
      : memory_(NodeMemory::make({2, 64 * kKiB}, token_, Switch::off)),
        maps_([](uint32_t, uint64_t) { return ECONNREFUSED; }) {
    for (uint32_t i = 0; i < 2; i++) {
      peers_[i].member = 1 - i;
      peers_[i].head = &memory_->head(1 - i);
      channels_[i] =
          std::make_unique<ShmChannel>(ChannelPlace{memory_.get(), i, 0}, peers_[i], maps_);
    }
  }
  // Sends bytes from 0 to 1, lets `damage` at the line, and receives.
  Status receive(size_t bytes, const std::function<void(Line&, Fragment&)>& damage) {
    std::vector<std::byte> data = pattern(bytes, 1), got(bytes);
    Sending sending({1, 2}, data);
    EXPECT_TRUE(channels_[0]->send(sending.message).ok());
    Line& line = memory_->lines(0, 0, 1)[0];
    Fragment fragment;
    std::memcpy(&fragment, line.payload, sizeof fragment);
    damage(line, fragment);
    std::memcpy(line.payload, &fragment, sizeof fragment);
    Receiving receiving({1, 2}, got);
    return channels_[1]->receive(receiving.message, receiving.segments);
  }

  const uint64_t token_[2] = {1, 2};
  std::shared_ptr<NodeMemory> memory_;
  PeerMaps maps_;
  ShmPeer peers_[2];
  std::unique_ptr<ShmChannel> channels_[2];
};

struct Damage {
  const char* what;
  size_t bytes;
  void (*damage)(Line&, Fragment&);
  Code expected;
};

constexpr uint64_t kHuge = UINT64_MAX - 5;
constexpr Damage kDamages[] = {
    {"nothing", 1'000, [](Line&, Fragment&) {}, Code::ok},
    {"offset", 1'000, [](Line&, Fragment& f) { f.at = kHuge; }, Code::internal},
    {"OffsetAtTheEnd", 1'000, [](Line&, Fragment& f) { f.at = 64 * kKiB; }, Code::internal},
    {"length", 1'000, [](Line&, Fragment& f) { f.bytes = kHuge; }, Code::internal},
    {"LengthOverTheMessage", 1'000, [](Line&, Fragment& f) { f.bytes = 1'001; }, Code::internal},
    {"NoLength", 1'000, [](Line&, Fragment& f) { f.bytes = 0; }, Code::internal},
    {"way", 1'000, [](Line& l, Fragment&) { l.way = static_cast<Way>(77); }, Code::internal},
    {"LengthInTheLine", 20, [](Line& l, Fragment&) { l.in_line_bytes = 200; }, Code::internal},
    {"LessInTheLine", 20, [](Line& l, Fragment&) { l.in_line_bytes = 0; }, Code::internal},
    {"size", 20, [](Line& l, Fragment&) { l.bytes = kHuge; }, Code::invalid_usage},
    {"label", 20, [](Line& l, Fragment&) { l.label.signature = 0; }, Code::invalid_usage},
    {"NoSuchMemory", 1'000, [](Line& l, Fragment&) { l.way = Way::mapped; }, Code::ok},
    {"NoSuchProcess", 1'000,
     [](Line& l, Fragment& f) {
       l.way = Way::pulled;
       f.at = 8;
     },
     Code::ok},
};

class CorruptLineTest : public CorruptTest, public testing::WithParamInterface<Damage> {};

TEST_P(CorruptLineTest, IsSeen) {
  EXPECT_EQ(receive(GetParam().bytes, GetParam().damage), Status(GetParam().expected));
  const std::string& error = channels_[1]->error();
  EXPECT_EQ(error.starts_with("receive: "), GetParam().expected != Code::ok) << error;
}
INSTANTIATE_TEST_SUITE_P(All, CorruptLineTest, testing::ValuesIn(kDamages),
                         [](const auto& each) { return std::string(each.param.what); });

// The reader's counter: nonsense is as if nothing had come.
TEST_F(CorruptTest, ProgressIsChecked) {
  std::vector<std::byte> data = pattern(10'000, 1);
  Progress& progress = memory_->progress(1, 0, 0);
  for (const uint64_t consumed : {uint64_t{1'000}, kHuge}) {
    progress.consumed.store(consumed);
    for (uint32_t i = 0; i < 100; i++) {
      Sending sending({i, 1}, data);
      ASSERT_TRUE(channels_[0]->send(sending.message).ok());
    }
  }
  // The ring was full long ago, and what is in it is whole.
  std::vector<std::byte> got(data.size());
  Receiving receiving({0, 1}, got);
  ASSERT_TRUE(channels_[1]->receive(receiving.message, receiving.segments).ok());
  EXPECT_TRUE(receiving.message.complete());
  EXPECT_TRUE(got == data);
}

TEST_F(CorruptTest, RefusalsAreChecked) {
  std::vector<std::byte> data = pattern(10'000, 1);
  Sending sending({1, 1}, data, Exported{.id = 5, .offset = 0, .bytes = data.size()});
  ASSERT_TRUE(channels_[0]->send(sending.message).ok());
  Progress& progress = memory_->progress(1, 0, 0);
  progress.refused.store(1);
  progress.refused_at.store(kHuge);
  progress.consumed.store(1);
  EXPECT_EQ(channels_[0]->send(sending.message), Status(Code::internal));
  EXPECT_NE(channels_[0]->error().find("of 10000 bytes"), std::string::npos);
}

// Whatever came last lap stands in the line until the next one is whole.
TEST_F(CorruptTest, LapsAreToldApart) {
  for (uint32_t i = 0; i < 10 * kLines; i++) {
    std::vector<std::byte> data = pattern(i % 41, i), got(data.size());
    Sending sending({i, 1}, data);
    Receiving receiving({i, 1}, got), early({i + 1, 1}, got);
    ASSERT_TRUE(channels_[0]->send(sending.message).ok());
    ASSERT_TRUE(channels_[1]->receive(receiving.message, receiving.segments).ok());
    ASSERT_TRUE(receiving.message.complete());
    ASSERT_TRUE(got == data);
    ASSERT_TRUE(channels_[1]->receive(early.message, early.segments).ok());
    ASSERT_FALSE(early.message.begun);
  }
}

}  // namespace
}  // namespace hcomm::test
