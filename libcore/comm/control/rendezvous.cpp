// SPDX-License-Identifier: Apache-2.0
#include "comm/control/rendezvous.h"

#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "base/process.h"

namespace hcomm::comm {

using transport::SocketAddress;

namespace {

// Layout of a UniqueId: magic, version, count (u32 each), checksum (u32), nonce, addresses.
constexpr uint32_t kIdMagic = 0x31444948;  // "HID1"
constexpr uint32_t kIdVersion = 1;
constexpr size_t kNonceAt = 16, kAddressesAt = 32;

uint32_t load_u32(const char* from) {
  uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store_u32(char* to, uint32_t value) {
  std::memcpy(to, &value, sizeof value);
}

uint32_t checksum(const UniqueId& id) {
  const uint64_t head = hash_bytes({id.bytes.data(), 12});
  return static_cast<uint32_t>(
      hash_bytes({id.bytes.data() + kNonceAt, id.bytes.size() - kNonceAt}, head));
}

uint64_t load_u64(const unsigned char* from) {
  uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

struct SipState {
  uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (int i = 0; i < count; i++) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  }
  void absorb(uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
};

Nonce nonce_of(std::string_view text) {
  return mac(mac(Nonce{'h', 'c', 'o', 'm', 'm', ' ', 'j', 'o', 'b'}, text), text);
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

std::string_view view(const Mac& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Nonce random_nonce() {
  Nonce nonce;
  fill_random(std::as_writable_bytes(std::span(nonce)));
  return nonce;
}

Mac mac(const Nonce& key, std::string_view message) {
  const uint64_t k0 = load_u64(key.data()), k1 = load_u64(key.data() + 8);
  SipState state{k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du ^ 0xee,
                 k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
  size_t at = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  for (; at + 8 <= message.size(); at += 8) state.absorb(load_u64(bytes + at));
  uint64_t last = static_cast<uint64_t>(message.size() & 0xff) << 56;
  for (size_t i = 0; at + i < message.size(); i++)
    last |= static_cast<uint64_t>(bytes[at + i]) << 8 * i;
  state.absorb(last);
  Mac result;
  const auto squeeze = [&](size_t to) {
    state.rounds(4);
    const uint64_t word = state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
    std::memcpy(result.data() + to, &word, sizeof word);
  };
  state.v2 ^= 0xee;
  squeeze(0);
  state.v1 ^= 0xdd;
  squeeze(8);
  return result;
}

Nonce derive_nonce(std::string_view secret, std::string_view job_id) {
  return mac(nonce_of(secret), job_id);
}

std::string fingerprint(const Nonce& nonce) {
  return hex(view(mac(nonce, "fingerprint"))).substr(0, 8);
}

std::string Root::text() const {
  std::string text;
  for (const SocketAddress& address : addresses)
    text += (text.empty() ? "" : ", ") + address.text();
  return text;
}

UniqueId encode_id(const Root& root) {
  if (root.addresses.empty())
    fail(Code::invalid_argument, "make a unique id: this host has no address to listen on");
  UniqueId id;
  std::vector<SocketAddress> addresses = root.addresses;
  if (addresses.size() > UniqueId::kMaxAddresses)
    addresses.erase(addresses.begin() + UniqueId::kMaxAddresses - 1, addresses.end() - 1);
  store_u32(id.bytes.data(), kIdMagic);
  store_u32(id.bytes.data() + 4, kIdVersion);
  store_u32(id.bytes.data() + 8, static_cast<uint32_t>(addresses.size()));
  std::memcpy(id.bytes.data() + kNonceAt, root.nonce.data(), root.nonce.size());
  auto* to = reinterpret_cast<unsigned char*>(id.bytes.data() + kAddressesAt);
  for (size_t i = 0; i < addresses.size(); i++) addresses[i].pack(to + i * SocketAddress::kPacked);
  store_u32(id.bytes.data() + 12, checksum(id));
  return id;
}

Root decode_id(const UniqueId& id) {
  if (load_u32(id.bytes.data()) != kIdMagic)
    fail(Code::invalid_argument,
         "these {} bytes are no unique id of HCOMM; pass what hcommGetUniqueId made, unchanged",
         UniqueId::kBytes);
  const uint32_t version = load_u32(id.bytes.data() + 4);
  if (version != kIdVersion)
    fail(Code::invalid_argument,
         "the unique id has format {}, this library reads format {}; use one version of HCOMM",
         version, kIdVersion);
  const uint32_t count = load_u32(id.bytes.data() + 8);
  if (load_u32(id.bytes.data() + 12) != checksum(id) || count == 0 ||
      count > UniqueId::kMaxAddresses)
    fail(Code::invalid_argument,
         "the unique id is damaged (its checksum does not fit); pass all {} bytes unchanged",
         UniqueId::kBytes);
  Root root;
  std::memcpy(root.nonce.data(), id.bytes.data() + kNonceAt, root.nonce.size());
  const auto* from = reinterpret_cast<const unsigned char*>(id.bytes.data() + kAddressesAt);
  for (size_t i = 0; i < count; i++) {
    root.addresses.push_back(SocketAddress::unpack(from + i * SocketAddress::kPacked));
    if (root.addresses.back().family() == 0)
      fail(Code::invalid_argument, "the unique id holds a malformed address");
  }
  return root;
}

std::string id_hex(const UniqueId& id) {
  return hex({id.bytes.data(), id.bytes.size()});
}

UniqueId id_from_hex(std::string_view text) {
  const auto digit = [&](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    fail(Code::invalid_argument, "'{}' is no hex digit of a unique id", c);
  };
  if (text.size() != 2 * UniqueId::kBytes)
    fail(Code::invalid_argument, "a unique id has {} hex digits, this text has {}",
         2 * UniqueId::kBytes, text.size());
  UniqueId id;
  for (size_t i = 0; i < id.bytes.size(); i++)
    id.bytes[i] = static_cast<char>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return id;
}

Packet Hello::encode(const Nonce& nonce) const {
  Encoder signed_part(Kind::hello);
  const auto fill = [&](Encoder& to) -> Encoder& {
    return to.u32(kMagic)
        .u32(protocol)
        .u32(library)
        .text(job)
        .u32(rank)
        .u32(ranks)
        .u32(pid)
        .u32(left_ms)
        .u64(attempt)
        .text(challenge)
        .text(host)
        .text(settings);
  };
  const std::string whole = fill(signed_part).take();
  Encoder frame(Kind::hello);
  const Mac proof = mac(nonce, std::string_view(whole).substr(5));  // without length and kind
  return packet(fill(frame).raw(view(proof)));
}

bool Hello::decode(std::string_view body, const Nonce& nonce, Hello& hello, bool& mac_ok) {
  Decoder decoder(body);
  if (decoder.u32() != kMagic) return false;
  hello.protocol = decoder.u32();
  mac_ok = false;
  if (!decoder.fine() || hello.protocol != kProtocol) return decoder.fine();
  hello.library = decoder.u32();
  hello.job = decoder.text();
  hello.rank = decoder.u32();
  hello.ranks = decoder.u32();
  hello.pid = decoder.u32();
  hello.left_ms = decoder.u32();
  hello.attempt = decoder.u64();
  hello.challenge = decoder.text();
  hello.host = decoder.text();
  hello.settings = decoder.text();
  const std::string_view proof = decoder.raw(sizeof(Mac));
  if (!decoder.at_end()) return false;
  const Mac expected = mac(nonce, body.substr(0, body.size() - sizeof(Mac)));
  unsigned char difference = 0;  // no early end: time tells nothing
  for (size_t i = 0; i < expected.size(); i++)
    difference |= static_cast<unsigned char>(expected[i] ^ static_cast<unsigned char>(proof[i]));
  mac_ok = difference == 0;
  return true;
}

Mac Hello::answer(const Nonce& nonce) const {
  return mac(nonce, "welcome " + challenge);
}

Packet Refusal::encode() const {
  Encoder frame(Kind::refused);
  return packet(frame.u8(code).u8(other_job).text(text));
}

Refusal Refusal::decode(std::string_view body) {
  Decoder decoder(body);
  Refusal refusal;
  refusal.code = decoder.u8();
  refusal.other_job = decoder.u8() != 0;
  refusal.text = decoder.text();
  return refusal;
}

}  // namespace hcomm::comm
