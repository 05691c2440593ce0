// SPDX-License-Identifier: Apache-2.0
// Frames from bytes that nobody trusts, and what a hub keeps of what ranks post.
#include "comm/control/wire.h"

#include <gtest/gtest.h>

#include <random>

#include "comm/control/board.h"
#include "comm/control/rendezvous.h"

namespace hcomm::comm {
namespace {

std::string frame_of(Kind kind, std::string_view body) {
  Encoder encoder(kind);
  return encoder.raw(body).take();
}

TEST(Frames, ComeWholeHoweverTheBytesAreCut) {
  std::mt19937 random(3);
  std::string stream;
  std::vector<std::string> bodies;
  for (int i = 0; i < 200; i++) {
    bodies.emplace_back(random() % (i % 20 == 0 ? 100'000 : 300), static_cast<char>(i));
    stream += frame_of(Kind::post, bodies.back());
  }
  FrameReader reader;
  size_t next = 0;
  for (size_t at = 0; at < stream.size();) {
    const size_t bytes = std::min<size_t>(1 + random() % 5000, stream.size() - at);
    reader.append(std::string_view(stream).substr(at, bytes));
    at += bytes;
    while (const auto frame = reader.next()) {
      ASSERT_LT(next, bodies.size());
      EXPECT_EQ(frame->kind, Kind::post);
      EXPECT_EQ(frame->body, bodies[next++]);
    }
  }
  EXPECT_EQ(next, bodies.size());
  EXPECT_FALSE(reader.broken());
}

TEST(Frames, LengthsOfZeroAndOverTheLimitBreakTheStream) {
  for (const std::string& head : {std::string(4, '\0'), std::string("\xff\xff\xff\xff"),
                                  std::string("\x01\x10\x00\x00", 4)}) {
    FrameReader reader(kMaxHelloBytes);
    reader.append(head);
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.broken());
    reader.append(frame_of(Kind::hello, "x"));
    EXPECT_FALSE(reader.next());
  }
  FrameReader reader(kMaxHelloBytes);
  reader.append(frame_of(Kind::hello, std::string(kMaxHelloBytes - 1, 'x')));
  EXPECT_TRUE(reader.next());
  EXPECT_EQ(reader.room_bytes(), kMaxHelloBytes + 4u);
  EXPECT_THROW((void)frame_of(Kind::post, std::string(kMaxFrameBytes, 'x')), Error);
}

// Whatever comes, nothing is read past its end; a sanitizer looks on.
TEST(Frames, RandomBytes) {
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(seed);
  const Nonce nonce = random_nonce();
  for (int round = 0; round < 20'000; round++) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (round % 2 == 0 ? 256 : 3));
    FrameReader reader(kMaxHelloBytes);
    reader.append(bytes);
    while (reader.next()) {
    }
    Hello hello;
    bool mac_ok = false;
    EXPECT_FALSE(Hello::decode(bytes, nonce, hello, mac_ok) && mac_ok);
    (void)Failure::decode(bytes);
    (void)Post::decode(bytes);
    (void)Refusal::decode(bytes);
  }
}

// A hello that was changed anywhere has no valid proof; one that was cut is none.
TEST(Frames, HelloIsWholeOrNothing) {
  const Nonce nonce = random_nonce();
  const Hello hello{.library = 100,
                    .job = "12345678",
                    .rank = 3,
                    .ranks = 8,
                    .pid = 77,
                    .left_ms = 5,
                    .attempt = 9,
                    .challenge = std::string(16, 'c'),
                    .host = "h",
                    .settings = "HCOMM_TILE=1"};
  const std::string frame = *hello.encode(nonce);
  const std::string body = frame.substr(5);
  Hello read;
  bool mac_ok = false;
  ASSERT_TRUE(Hello::decode(body, nonce, read, mac_ok));
  EXPECT_TRUE(mac_ok);
  EXPECT_EQ(read.rank, 3u);
  EXPECT_EQ(read.settings, "HCOMM_TILE=1");
  EXPECT_EQ(read.answer(nonce), hello.answer(nonce));
  EXPECT_NE(read.answer(random_nonce()), hello.answer(nonce));
  for (size_t i = 0; i < body.size(); i++) {
    std::string changed = body;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(Hello::decode(changed, nonce, read, mac_ok) && mac_ok) << i;
    EXPECT_FALSE(Hello::decode(body.substr(0, i), nonce, read, mac_ok) && mac_ok) << i;
  }
  EXPECT_TRUE(Hello::decode(body, random_nonce(), read, mac_ok));
  EXPECT_FALSE(mac_ok);
}

// The paper's test vector of SipHash-2-4 with 128 bits: key 00..0f, message 00..3e.
TEST(Mac, IsSipHash128) {
  Nonce key;
  for (size_t i = 0; i < key.size(); i++) key[i] = static_cast<unsigned char>(i);
  const Mac empty{0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6,
                  0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93};
  EXPECT_EQ(mac(key, ""), empty);
  const Mac one{0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44,
                0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45};
  EXPECT_EQ(mac(key, std::string(1, '\0')), one);
}

TEST(UniqueId, GoesThereAndBack) {
  Root root{.nonce = random_nonce()};
  for (uint16_t port = 1; port < 12; port++)
    root.addresses.push_back(transport::SocketAddress::loopback(port));
  const UniqueId id = encode_id(root);
  const Root read = decode_id(id_from_hex(id_hex(id)));
  EXPECT_EQ(read.nonce, root.nonce);
  ASSERT_EQ(read.addresses.size(), UniqueId::kMaxAddresses);
  EXPECT_EQ(read.addresses[0], root.addresses[0]);
  EXPECT_EQ(read.addresses.back(), root.addresses.back());  // loopback, the last, stays
  EXPECT_EQ(read.state, Root::State::listens);
  EXPECT_THROW((void)encode_id(Root{}), Error);
}

TEST(UniqueId, DamageIsSeen) {
  const UniqueId id =
      encode_id({.addresses = {transport::SocketAddress::loopback(5)}, .nonce = random_nonce()});
  for (size_t i = 0; i < UniqueId::kBytes; i++) {
    UniqueId damaged = id;
    damaged.bytes[i] = static_cast<char>(damaged.bytes[i] ^ 0x10);
    EXPECT_THROW((void)decode_id(damaged), Error) << i;
  }
  EXPECT_THROW((void)decode_id(UniqueId{}), Error);
  EXPECT_THROW((void)id_from_hex("12"), Error);
  EXPECT_THROW((void)id_from_hex(std::string(512, 'g')), Error);
}

TEST(Board, RankLists) {
  EXPECT_EQ(rank_list({0}), "rank 0");
  EXPECT_EQ(rank_list({1, 2}), "ranks 1, 2");
  EXPECT_EQ(rank_list({1, 2, 3, 7}), "ranks 1-3, 7");
  EXPECT_EQ(rank_list({0, 2, 3, 4, 8, 9}), "ranks 0, 2-4, 8, 9");
}

Post part(uint64_t communicator, uint32_t index, uint32_t size, uint32_t left_ms = 0) {
  return {.communicator = communicator,
          .round = 1,
          .index = index,
          .size = size,
          .left_ms = left_ms,
          .text = "x"};
}

TEST(Board, ADeathEndsTheExchangesThatNeedIt) {
  Board board(4);
  const Failure death{.code = Code::peer_failed, .peer = 2, .text = "rank 2 died"};
  // Communicator 5 is known to be ranks 0 and 1.
  EXPECT_TRUE(board.post(0, part(5, 0, 2), 0).empty());
  EXPECT_EQ(board.post(1, part(5, 1, 2), 0).size(), 2u);
  Post again = part(5, 0, 2);
  again.round = 2;
  EXPECT_TRUE(board.post(0, again, 0).empty());
  EXPECT_TRUE(board.post(0, part(6, 0, 2), 0).empty());  // of unknown members: they know
  EXPECT_TRUE(board.post(3, part(7, 3, 4), 0).empty());  // of all
  const Board::Letters letters = board.lose(2, Board::Loss::death, death);
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].to, 3u);
  again.index = 1;
  EXPECT_EQ(board.post(1, again, 0).size(), 2u);  // goes on without rank 2
  Post all = part(8, 1, 4);
  EXPECT_EQ(board.post(1, all, 0).size(), 1u);  // told at once
}

TEST(Board, WhoLeavesDoesNotEndWhatItHadNoPartIn) {
  Board board(4);
  EXPECT_TRUE(board.post(0, part(6, 0, 2), 0).empty());
  EXPECT_TRUE(board.post(2, part(7, 2, 4), 0).empty());
  EXPECT_TRUE(board.post(0, part(7, 0, 4), 0).empty());
  EXPECT_TRUE(board.lose(2, Board::Loss::left, {}).empty());  // its part of 7 is there
  EXPECT_EQ(board.lose(3, Board::Loss::left, {}).size(), 2u);
  EXPECT_EQ(board.post(1, part(6, 1, 2), 0).size(), 2u);
}

TEST(Board, TheEarliestDeadlineCounts) {
  Board board(3);
  EXPECT_FALSE(board.waiting());
  EXPECT_TRUE(board.post(0, part(6, 0, 3, 500), 0).empty());
  EXPECT_TRUE(board.post(2, part(6, 2, 3, 100), 0).empty());
  EXPECT_TRUE(board.waiting());
  EXPECT_TRUE(board.expire(99'000'000).empty());
  EXPECT_EQ(board.expire(100'000'000).size(), 2u);
  EXPECT_FALSE(board.waiting());
}

TEST(Board, MismatchesWaitForTheOthersALittle) {
  Board board(8);
  const auto sign = [&](uint32_t index, const char* text, int64_t now) {
    Post post = part(9, index, 8);
    post.text = text;
    board.sign(post, now);
  };
  sign(0, "broadcast a", 0);
  EXPECT_FALSE(board.waiting());
  sign(4, "barrier", 10);
  EXPECT_TRUE(board.waiting());
  EXPECT_TRUE(board.mismatches(20).empty());
  sign(5, "barrier", 30);
  const auto found = board.mismatches(60'000'000);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text,
            "operation #1 differs between ranks: rank 0: broadcast a; ranks 4, 5: barrier; all "
            "ranks must make the same call");
  EXPECT_EQ(found[0].peer, 0);
  EXPECT_FALSE(board.waiting());
}

// Many operations and strange posts cost bounded memory and do no harm.
TEST(Board, Bounds) {
  Board board(4);
  for (uint64_t i = 0; i < 20'000; i++) {
    Post post = part(i % 10'000, static_cast<uint32_t>(i % 9), static_cast<uint32_t>(i % 7));
    post.round = i;
    board.sign(post, static_cast<int64_t>(i));
    (void)board.post(static_cast<uint32_t>(i % 4), post, 0);
    Board::Letters letters;
    if (i % 3 == 0) (void)board.note({.communicator = i}, letters);
  }
  (void)board.mismatches(INT64_MAX / 2);
  EXPECT_EQ(board.unsigned_of(part(UINT64_MAX, 0, 3)).size(), 3u);
}

}  // namespace
}  // namespace hcomm::comm
