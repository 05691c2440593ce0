// SPDX-License-Identifier: Apache-2.0
// The hub once all ranks have joined: the middle of the star.
#include <algorithm>

#include "base/log.h"
#include "comm/control/hub.h"

namespace hcomm::comm {

std::string Hub::rank_text(uint32_t rank) const {
  const Hello& hello = seats_[rank].hello;
  return fmt::format("rank {} (host {}, pid {})", rank, hello.host, hello.pid);
}

void Hub::hear(uint32_t rank) {
  Seat& seat = seats_[rank];
  const bool open = seat.link->receive();
  while (seat.link) {
    const std::optional<Frame> frame = seat.link->next();
    if (!frame) break;
    handle(rank, *frame);
  }
  if (!seat.link) return;  // gone by what it said
  if (seat.link->reader().broken()) return lost(rank, "sent what is no control message");
  if (!open) lost(rank, seat.link->ended());
}

void Hub::handle(uint32_t rank, const Frame& frame) {
  if (frame.kind == Kind::goodbye) return left(rank);
  if (phase_ != Phase::ready) return;
  if (frame.kind == Kind::failure) {
    if (const std::optional<Failure> failure = Failure::decode(frame.body)) fail(*failure);
    return;
  }
  std::optional<Post> post = Post::decode(frame.body);
  if (!post) return lost(rank, "sent a malformed control message");
  switch (frame.kind) {
    case Kind::post:
      deliver(board_->post(rank, std::move(*post), now_ns()));
      break;
    case Kind::signature:
      board_->sign(*post, now_ns());
      look_for_mismatches();
      break;
    case Kind::question: {
      const std::vector<uint32_t> indices = board_->unsigned_of(*post);
      Encoder answer(Kind::answer);
      answer.u32(post->index);  // the number of the question
      answer.u32(static_cast<uint32_t>(indices.size()));
      for (const uint32_t index : indices) answer.u32(index);
      deliver({{rank, packet(answer)}});
      break;
    }
    default:
      break;  // of a later version
  }
  if (board_->waiting()) need_tick(kTickMs);
}

void Hub::look_for_mismatches() {
  for (const Failure& failure : board_->mismatches(now_ns())) fail(failure);
}

void Hub::lost(uint32_t rank, std::string how) {
  if (phase_ == Phase::joining)
    return fail_join(Code::peer_failed,
                     fmt::format("{} ended while ranks were joining ({}); look at its output",
                                 rank_text(rank), joined_text()));
  Seat& seat = seats_[rank];
  seat.state = Seat::State::dead;
  seat.link.reset();
  const Failure failure{
      .code = Code::peer_failed,
      .rank = 0,
      .peer = static_cast<int>(rank),
      .host = seat.hello.host,
      .text = fmt::format("{} died: {}; look at its output", rank_text(rank), how)};
  deliver(board_->lose(rank, Board::Loss::death, failure));
  fail(failure);
  count_leavers();
}

void Hub::left(uint32_t rank) {
  if (phase_ == Phase::joining) return lost(rank, "");
  Seat& seat = seats_[rank];
  seat.state = Seat::State::left;
  seat.link.reset();
  const Failure why{.code = Code::peer_failed,
                    .rank = 0,
                    .peer = static_cast<int>(rank),
                    .host = seat.hello.host,
                    .text = rank_text(rank) + " has destroyed its communicators"};
  deliver(board_->lose(rank, Board::Loss::left, why));
  count_leavers();
}

void Hub::fail(const Failure& failure) {
  Board::Letters letters;
  if (!board_->note(failure, letters)) return;
  deliver(letters);
  const Packet frame = failure.encode();
  for (const Seat& seat : seats_)
    if (seat.link) seat.link->send(frame);
}

void Hub::deliver(const Board::Letters& letters) {
  for (const auto& [to, frame] : letters)
    if (seats_[to].link) seats_[to].link->send(frame);
}

void Hub::count_leavers() {
  const bool all = std::none_of(seats_.begin(), seats_.end(),
                                [](const Seat& seat) { return seat.state == Seat::State::joined; });
  if (!all) return;
  if (worlds_ == Worlds::many) need_tick(0);  // not now: the caller still uses its seat
  const std::lock_guard lock(mutex_);
  all_left_ = true;
  over_ = worlds_ == Worlds::one;
  changed_.notify_all();
}

}  // namespace hcomm::comm
