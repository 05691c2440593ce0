// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "transport/socket.h"

namespace hcomm::transport {

namespace {

struct Case {
  const char* text;
  const char* want;  // "" = invalid_argument
};

class AddressText : public testing::TestWithParam<Case> {};

TEST_P(AddressText, is_read_as_written) {
  const auto [text, want] = GetParam();
  if (*want == '\0') {
    try {
      resolve(text, 4711);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
      EXPECT_NE(error.text().find(fmt::format("'{}'", text)), std::string::npos) << error.what();
    }
    return;
  }
  const auto addresses = resolve(text, 4711);
  ASSERT_FALSE(addresses.empty());
  EXPECT_EQ(addresses[0].text(), want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, AddressText,
    testing::Values(Case{"10.0.0.2:80", "10.0.0.2:80"}, Case{"10.0.0.2", "10.0.0.2:4711"},
                    Case{"[::1]:80", "[::1]:80"}, Case{"[::1]", "[::1]:4711"},
                    Case{"::1", "[::1]:4711"}, Case{"fd00::2", "[fd00::2]:4711"},
                    Case{"[::ffff:10.1.2.3]:5", "10.1.2.3:5"}, Case{"127.0.0.1:0", "127.0.0.1:0"},
                    Case{"127.0.0.1:65535", "127.0.0.1:65535"}, Case{"127.0.0.1:65536", ""},
                    Case{"127.0.0.1:", ""}, Case{"127.0.0.1:8x", ""}, Case{"127.0.0.1:-1", ""},
                    Case{"", ""}, Case{":80", ""}, Case{"[]:80", ""}, Case{"[::1", ""},
                    Case{"[::1]80", ""}));

TEST(Address, unknown_name_is_unavailable_and_quoted) {
  try {
    resolve("no-such-host.invalid:80", 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_NE(error.text().find("no-such-host.invalid"), std::string::npos);
  }
}

TEST(Address, localhost_gives_every_address_once) {
  const auto addresses = resolve("localhost", 9);
  ASSERT_EQ(addresses.size(), 2U);
  EXPECT_EQ(addresses[0].text(), "127.0.0.1:9");
  EXPECT_EQ(addresses[1].text(), "[::1]:9");
  for (const auto& address : addresses) {
    EXPECT_TRUE(address.is_loopback()) << address.text();
    EXPECT_EQ(std::count(addresses.begin(), addresses.end(), address), 1);
  }
}

TEST(Address, packs_and_unpacks) {
  for (const char* text : {"10.0.0.2:80", "[fd00::2]:65535", "[fe80::1%lo]:4711", "[::1]:1"}) {
    const SocketAddress address = resolve(text, 0)[0];
    unsigned char packed[SocketAddress::kPacked];
    address.pack(packed);
    EXPECT_EQ(SocketAddress::unpack(packed).text(), text);
  }
  unsigned char nonsense[SocketAddress::kPacked];
  std::fill(std::begin(nonsense), std::end(nonsense), uint8_t{0xa5});
  EXPECT_EQ(SocketAddress::unpack(nonsense).family(), 0);
}

TEST(Address, kinds) {
  const auto at = [](const char* text) { return SocketAddress::numeric(text, 1); };
  EXPECT_TRUE(at("127.9.9.9").is_loopback());
  EXPECT_TRUE(at("::1").is_loopback());
  EXPECT_FALSE(at("128.0.0.1").is_loopback());
  EXPECT_TRUE(at("169.254.1.2").is_link_local());
  EXPECT_TRUE(at("fe80::1").is_link_local());
  EXPECT_FALSE(at("fd00::1").is_link_local());
  EXPECT_TRUE(SocketAddress::wildcard(0).is_wildcard());
  EXPECT_EQ(at("example").family(), 0);
  EXPECT_TRUE(names_loopback("localhost:1"));
  EXPECT_TRUE(names_loopback("127.0.0.1:1"));
  EXPECT_TRUE(names_loopback("[::1]:1"));
  EXPECT_FALSE(names_loopback("10.0.0.1:1"));
  EXPECT_FALSE(names_loopback("localhost.example:1"));
}

// ---- interfaces

Interface make(const char* name, const char* address) {
  Interface interface;
  interface.name = name;
  interface.address = SocketAddress::numeric(address, 0);
  interface.up = true;
  interface.loopback = interface.name == "lo";
  interface.bridge = interface.name.starts_with("docker");
  return interface;
}

std::string chosen(const char* filter, const char* family, std::vector<Interface> from) {
  Config config;
  config.interfaces = filter;
  config.family = family;
  std::string text;
  for (const SocketAddress& address : usable_addresses(config, from)) {
    const std::string one = address.text();
    text += fmt::format("{}{}", text.empty() ? "" : " ", one.substr(0, one.rfind(':')));
  }
  return text;
}

const std::vector<Interface> kHost = {
    make("lo", "127.0.0.1"),  make("docker0", "172.17.0.1"), make("eth0", "169.254.3.4"),
    make("eth1", "10.0.0.2"), make("ib0", "10.1.0.2"),       make("lo", "::1"),
    make("eth1", "fd00::2"),  make("eth1", "fe80::2"),
};

TEST(Interfaces, NET_01_loopback_comes_last_whatever_the_host_name_maps_to) {
  EXPECT_EQ(chosen("", "", kHost),
            "10.0.0.2 10.1.0.2 [fd00::2] 172.17.0.1 169.254.3.4 [fe80::2] 127.0.0.1 [::1]");
}

TEST(Interfaces, NET_03_an_exclusion_never_promotes_loopback) {
  EXPECT_EQ(chosen("^docker", "ipv4", kHost), "10.0.0.2 10.1.0.2 169.254.3.4 127.0.0.1");
  EXPECT_EQ(chosen("^docker0,=eth1,ib", "ipv4", kHost), "169.254.3.4 127.0.0.1");
  EXPECT_EQ(chosen("^lo", "ipv6", kHost), "[fd00::2] [fe80::2]");
}

TEST(Interfaces, names_select_in_the_order_written) {
  EXPECT_EQ(chosen("ib,eth", "ipv4", kHost), "10.1.0.2 10.0.0.2 169.254.3.4");
  EXPECT_EQ(chosen("=eth1", "", kHost), "10.0.0.2 [fd00::2] [fe80::2]");
  EXPECT_EQ(chosen("lo,eth1", "ipv4", kHost), "127.0.0.1 10.0.0.2");
  EXPECT_EQ(chosen("docker", "", kHost), "172.17.0.1");
  EXPECT_EQ(chosen("", "ipv6", kHost), "[fd00::2] [fe80::2] [::1]");
}

TEST(Interfaces, what_is_down_is_not_offered) {
  std::vector<Interface> host = kHost;
  for (Interface& interface : host) interface.up = interface.name != "eth1";
  EXPECT_EQ(chosen("^docker", "ipv4", host), "10.1.0.2 169.254.3.4 127.0.0.1");
}

TEST(Interfaces, nothing_left_names_the_filter_and_what_there_is) {
  try {
    chosen("wlan", "", kHost);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    for (const char* part : {"HCOMM_SOCKET_IFNAME='wlan'", "eth1 10.0.0.2", "docker0"})
      EXPECT_NE(error.text().find(part), std::string::npos) << error.what();
  }
}

TEST(Interfaces, this_host_has_loopback) {
  const auto here = interfaces();
  EXPECT_TRUE(std::any_of(here.begin(), here.end(), [](const Interface& i) { return i.loopback; }));
}

}  // namespace

}  // namespace hcomm::transport
