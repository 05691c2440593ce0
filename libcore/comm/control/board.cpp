// SPDX-License-Identifier: Apache-2.0
#include "comm/control/board.h"

#include <algorithm>
#include <numeric>

namespace hcomm::comm {

namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSettleNs = 50 * kMs;  // for the other members' signatures
constexpr size_t kMaxKept = 4096;        // communicators, failures, ended exchanges
constexpr size_t kMaxSignatures = 16;    // operations of a communicator
constexpr size_t kMaxGroups = 8;         // of ranks in the text of a mismatch

template <typename Map>
void trim(Map& map, size_t most = kMaxKept) {
  while (map.size() > most) map.erase(map.begin());
}

template <typename Map>
std::vector<uint32_t> missing(const Map& present, uint32_t size) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < size; i++)
    if (!present.contains(i)) indices.push_back(i);
  return indices;
}

}  // namespace

Encoder& Failure::write(Encoder& to) const {
  return to.u64(communicator)
      .u8(static_cast<uint8_t>(code))
      .u32(static_cast<uint32_t>(rank))
      .u32(static_cast<uint32_t>(peer))
      .text(host)
      .u64(sequence)
      .text(text);
}

Packet Failure::encode() const {
  Encoder frame(Kind::failure);
  return packet(write(frame));
}

int Failure::peer_in(std::span<const uint32_t> members) const {
  if (communicator != 0) return peer;  // counted so already
  const auto at = std::find(members.begin(), members.end(), static_cast<uint32_t>(peer));
  return peer < 0 || at == members.end() ? -1 : static_cast<int>(at - members.begin());
}

std::optional<Failure> Failure::decode(std::string_view body) {
  Decoder decoder(body);
  Failure failure;
  failure.communicator = decoder.u64();
  const uint8_t code = decoder.u8();
  failure.rank = static_cast<int>(decoder.u32());
  failure.peer = static_cast<int>(decoder.u32());
  failure.host = decoder.text();
  failure.sequence = decoder.u64();
  failure.text = decoder.text();
  if (!decoder.at_end() || code > static_cast<uint8_t>(Code::internal)) return std::nullopt;
  failure.code = static_cast<Code>(code);
  return failure;
}

Packet Post::encode(Kind kind) const {
  Encoder frame(kind);
  return packet(frame.u64(communicator)
                    .u64(round)
                    .u32(index)
                    .u32(size)
                    .u32(left_ms)
                    .text(what)
                    .text(text));
}

std::optional<Post> Post::decode(std::string_view body) {
  Decoder decoder(body);
  Post post;
  post.communicator = decoder.u64();
  post.round = decoder.u64();
  post.index = decoder.u32();
  post.size = decoder.u32();
  post.left_ms = decoder.u32();
  post.what = decoder.text();
  post.text = decoder.text();
  if (!decoder.at_end()) return std::nullopt;
  return post;
}

std::string rank_list(const std::vector<uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) last++;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += (last > i + 1 ? "-" : ", ") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

Packet Board::refusal(const Key& key, const Failure& why) {
  Encoder frame(Kind::not_gathered);
  return packet(why.write(frame.u64(key.first).u64(key.second)));
}

// Why a part cannot be taken, "" when it can.
std::string Board::unfit(const Exchange& exchange, const Post& post) const {
  const std::string what = post.what + ": ";
  if (post.size == 0 || post.size > ranks_ || post.index >= post.size)
    return what + fmt::format("index {} of {} members in a job of {} ranks", post.index, post.size,
                              ranks_);
  if (exchanges_.size() > kMaxKept) return what + "too many exchanges at once";
  if (exchange.parts.empty()) return "";
  if (exchange.size != post.size)
    return what + fmt::format("rank {} says that it has {} members, rank {} says {}",
                              exchange.parts.begin()->first, exchange.size, post.index, post.size);
  const auto twin = exchange.parts.find(post.index);
  if (twin != exchange.parts.end())
    return what + fmt::format("two ranks of the job say that they are its rank {}", post.index);
  size_t bytes = post.text.size();
  for (const auto& [index, part] : exchange.parts) bytes += part.text.size() + 4;
  if (bytes + 64 > kMaxFrameBytes)
    return what + fmt::format("the parts are over {} bytes together", kMaxFrameBytes);
  return "";
}

Board::Letters Board::post(uint32_t from, Post post, int64_t now_ns) {
  const Key key{post.communicator, post.round};
  if (const auto failed = failures_.find(post.communicator); failed != failures_.end())
    return {{from, refusal(key, failed->second)}};
  if (const auto ended = ended_.find(key); ended != ended_.end())
    return {{from, refusal(key, ended->second)}};
  const auto found = exchanges_.try_emplace(key).first;
  Exchange& exchange = found->second;
  const std::string problem = unfit(exchange, post);
  if (!problem.empty()) {
    const Failure why{.communicator = post.communicator,
                      .code = Code::invalid_usage,
                      .peer = static_cast<int>(post.index),
                      .text = problem};
    Letters letters{{from, refusal(key, why)}};
    end(found, why, letters);
    return letters;
  }
  exchange.size = post.size;
  exchange.what = post.what;
  if (post.left_ms != 0) {
    const int64_t deadline_ns = now_ns + post.left_ms * kMs;
    if (exchange.deadline_ns == 0 || deadline_ns < exchange.deadline_ns)
      exchange.deadline_ns = deadline_ns;
  }
  exchange.parts.emplace(post.index, Part{from, std::move(post.text)});
  if (exchange.parts.size() == exchange.size) return gather(found);
  for (const auto& [rank, loss] : gone_) {
    if (!needs(*found, rank, Loss::left)) continue;
    Letters letters;
    end(found, loss.second, letters);
    return letters;
  }
  return {};
}

Board::Letters Board::gather(Exchanges::iterator found) {
  const auto& [key, exchange] = *found;
  Encoder frame(Kind::gathered);
  frame.u64(key.first).u64(key.second).u32(exchange.size);
  std::vector<uint32_t> members;
  for (const auto& [index, part] : exchange.parts) {
    frame.text(part.text);
    members.push_back(part.rank);
  }
  const Packet whole = packet(frame);
  Letters letters;
  for (const uint32_t rank : members) letters.push_back({rank, whole});
  members_[key.first] = std::move(members);
  trim(members_);
  exchanges_.erase(found);
  return letters;
}

Board::Exchanges::iterator Board::end(Exchanges::iterator found, const Failure& why,
                                      Letters& letters) {
  const Packet frame = refusal(found->first, why);
  for (const auto& [index, part] : found->second.parts) letters.push_back({part.rank, frame});
  ended_.emplace(found->first, why);
  trim(ended_);
  return exchanges_.erase(found);
}

bool Board::note(const Failure& failure, Letters& letters) {
  if (failure.communicator == 0) return true;  // each death is its own; the hub sees it once
  if (!failures_.emplace(failure.communicator, failure).second) return false;
  trim(failures_);
  for (auto each = exchanges_.begin(); each != exchanges_.end();)
    each =
        each->first.first == failure.communicator ? end(each, failure, letters) : std::next(each);
  return true;
}

bool Board::needs(const Exchanges::value_type& entry, uint32_t rank, Loss loss) const {
  const auto& [key, exchange] = entry;
  const bool posted = std::any_of(exchange.parts.begin(), exchange.parts.end(),
                                  [&](const auto& part) { return part.second.rank == rank; });
  if (posted) return loss == Loss::death;  // its part is here, its peers may still need it
  if (exchange.size == ranks_) return true;
  const auto known = members_.find(key.first);
  if (known == members_.end()) return false;  // its members know themselves
  return std::find(known->second.begin(), known->second.end(), rank) != known->second.end();
}

Board::Letters Board::lose(uint32_t rank, Loss loss, const Failure& why) {
  gone_.emplace(rank, std::pair(loss, why));
  Letters letters;
  for (auto each = exchanges_.begin(); each != exchanges_.end();)
    each = needs(*each, rank, loss) ? end(each, why, letters) : std::next(each);
  return letters;
}

void Board::sign(const Post& post, int64_t now_ns) {
  if (post.size == 0 || post.size > ranks_ || post.index >= post.size) return;
  Signatures& all = signatures_[{post.communicator, post.round}];
  all.size = std::max(all.size, post.size);
  all.texts[post.index] = post.text;
  const bool differ = std::any_of(all.texts.begin(), all.texts.end(),
                                  [&](const auto& each) { return each.second != post.text; });
  if (differ && all.differ_ns == 0) all.differ_ns = now_ns;
  const auto first = signatures_.lower_bound({post.communicator, 0});
  const auto last = signatures_.upper_bound({post.communicator, UINT64_MAX});
  if (static_cast<size_t>(std::distance(first, last)) > kMaxSignatures) signatures_.erase(first);
  trim(signatures_);
}

std::vector<uint32_t> Board::unsigned_of(const Post& question) const {
  const auto found = signatures_.find({question.communicator, question.round});
  const uint32_t size = std::min(question.size, ranks_);
  return missing(found == signatures_.end() ? decltype(Signatures::texts){} : found->second.texts,
                 size);
}

Board::Letters Board::expire(int64_t now_ns) {
  Letters letters;
  for (auto each = exchanges_.begin(); each != exchanges_.end();) {
    const auto& [key, exchange] = *each;
    if (exchange.deadline_ns == 0 || now_ns < exchange.deadline_ns) {
      each++;
      continue;
    }
    const std::vector<uint32_t> absent = missing(exchange.parts, exchange.size);
    const Failure why{
        .communicator = key.first,
        .code = Code::timeout,
        .peer = static_cast<int>(absent.front()),
        .text = fmt::format("{} timed out: {} of {} ranks came, missing: {}; look at what the "
                            "missing ranks do",
                            exchange.what, exchange.parts.size(), exchange.size,
                            rank_list(absent))};
    each = end(each, why, letters);
  }
  return letters;
}

std::vector<Failure> Board::mismatches(int64_t now_ns) {
  std::vector<Failure> found;
  for (auto each = signatures_.begin(); each != signatures_.end();) {
    const auto& [key, all] = *each;
    const bool complete = all.texts.size() == all.size;
    if (all.differ_ns == 0 || (!complete && now_ns - all.differ_ns < kSettleNs)) {
      each++;
      continue;
    }
    std::map<std::string, std::vector<uint32_t>> ranks_of;  // by text
    for (const auto& [index, text] : all.texts) ranks_of[text].push_back(index);
    std::vector<std::pair<std::vector<uint32_t>, std::string>> groups;
    bool one_name = true;
    const auto name_of = [](const std::string& text) { return text.substr(0, text.find(' ')); };
    for (const auto& [text, ranks] : ranks_of) {
      groups.emplace_back(ranks, text);
      one_name = one_name && name_of(text) == name_of(ranks_of.begin()->first);
    }
    std::sort(groups.begin(), groups.end());
    std::string text = fmt::format("{} #{} differs between ranks: ",
                                   one_name ? name_of(groups[0].second) : "operation", key.second);
    for (size_t i = 0; i < groups.size() && i < kMaxGroups; i++)
      text += fmt::format("{}: {}; ", rank_list(groups[i].first), groups[i].second);
    if (groups.size() > kMaxGroups) text += "and others; ";
    const auto smaller = [](const auto& a, const auto& b) {
      return a.first.size() < b.first.size();
    };
    // Who is alone with its call is blamed, where one side is smaller than the other.
    const auto [least, most] = std::minmax_element(groups.begin(), groups.end(), smaller);
    const bool odd_one = least->first.size() < most->first.size();
    found.push_back({.communicator = key.first,
                     .code = Code::invalid_usage,
                     .peer = odd_one ? static_cast<int>(least->first[0]) : -1,
                     .sequence = key.second,
                     .text = text + "all ranks must make the same call"});
    each = signatures_.erase(each);
  }
  return found;
}

bool Board::waiting() const {
  return std::any_of(exchanges_.begin(), exchanges_.end(),
                     [](const auto& each) { return each.second.deadline_ns != 0; }) ||
         std::any_of(signatures_.begin(), signatures_.end(),
                     [](const auto& each) { return each.second.differ_ns != 0; });
}

}  // namespace hcomm::comm
