// SPDX-License-Identifier: Apache-2.0
// The library that all tools share, without a process.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "base/error.h"
#include "cli/help.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/version.h"

namespace hcomm::cli {
namespace {

TEST(Text, Numbers) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(0.5), "0.5000");
  EXPECT_EQ(number_text(0.00012), "0.000120");
  EXPECT_EQ(number_text(1.23456), "1.235");
  EXPECT_EQ(number_text(12.3456), "12.35");
  EXPECT_EQ(number_text(123.456), "123.5");
  EXPECT_EQ(number_text(123456.7), "123457");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(number_text(std::optional<double>()), "-");
}

TEST(Text, LinesOfCsvAndMarkdown) {
  EXPECT_EQ(csv_line(std::vector<std::string>{"a", "b,c", "d\"e", "f\ng"}),
            "a,\"b,c\",\"d\"\"e\",\"f\ng\"\n");
  EXPECT_EQ(markdown_line(std::vector<std::string>{"a|b", "c\nd"}), "| a\\|b | c d |\n");
}

TEST(Text, WrapBreaksAtBlanks) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("averylongword x", 4), (std::vector<std::string>{"averylongword", "x"}));
  EXPECT_EQ(wrap("", 4), std::vector<std::string>{""});
}

TEST(Terminal, NoControlBytesAndNoColourInAPipe) {
  EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a\\x1b[31mb\\x0a\\x7f");
  EXPECT_EQ(printable("ü"), "ü");
  EXPECT_EQ(Painter(-1, ColorMode::automatic).paint(Color::red, "x"), "x");
  EXPECT_EQ(Painter(-1, ColorMode::never).paint(Color::red, "x"), "x");
  EXPECT_EQ(Painter(-1, ColorMode::always).paint(Color::red, "x"), "\x1b[31mx\x1b[0m");
}

TEST(Table, FitsAndIgnoresColourBytes) {
  Table table({{"name"}, {"n", Align::right}});
  table.add({"long name", "1"});
  table.add({Painter(-1, ColorMode::always).paint(Color::red, "é"), "10"});
  EXPECT_EQ(table.text(), "name        n\nlong name   1\n\x1b[31mé\x1b[0m          10\n");
}

TEST(Json, AlwaysValid) {
  Json json = document("s", 1);
  json["odd"] = "quote\" \n \x01 \xff";
  json["nan"] = std::numeric_limits<double>::quiet_NaN();
  const Json read = Json::parse(json_line(json));
  EXPECT_TRUE(read["nan"].is_null());
  EXPECT_EQ(json_line(document("s", 1)), "{\"schema\":\"s\",\"version\":1}");
}

TEST(Options, NumbersAndPercents) {
  EXPECT_EQ(parse_number("12", 0, 20), 12);
  for (const char* text : {"", "x", "1x", "21", "-1", "1.5", "99999999999999999999"})
    EXPECT_THROW(parse_number(text, 0, 20), Error) << text;
  EXPECT_DOUBLE_EQ(parse_percent("5%"), 0.05);
  EXPECT_DOUBLE_EQ(parse_percent("0.5 %"), 0.005);
  EXPECT_DOUBLE_EQ(parse_percent("2"), 0.02);
  for (const char* text : {"", "%", "x", "5%%", "-1", "nan"})
    EXPECT_THROW(parse_percent(text), Error) << text;
}

struct Parsed {
  std::string choice;
  bool flag = false;
  int64_t number = 0;
  std::optional<int> code;
};

Parsed parse_words(std::vector<const char*> words) {
  Parsed parsed;
  CLI::App app("", "tool");
  add_choice(app, {"--check", "first|all|off", "when"}, parsed.choice);
  add_switch(app, {"--flag", "", "a switch"}, parsed.flag);
  add_value(app, {"-n,--number", "N", "a number"},
            [&](const std::string& text) { parsed.number = parse_number(text, 0, 9); });
  words.insert(words.begin(), "tool");
  parsed.code = parse(app, static_cast<int>(words.size()), words.data(), Voice::silent);
  return parsed;
}

TEST(Options, ValuesAreRefusedNeverGuessed) {
  EXPECT_EQ(parse_words({"--check", "all", "-n", "3"}).choice, "all");
  EXPECT_EQ(parse_words({"-n3"}).number, 3);
  EXPECT_EQ(parse_words({"-n", "1", "-n", "2"}).number, 2);  // the last one counts
  for (const auto& words : std::vector<std::vector<const char*>>{{"--check", "al"},
                                                                 {"--check", ""},
                                                                 {"--chec", "all"},
                                                                 {"--number"},
                                                                 {"-n", "-1"},
                                                                 {"-n", "x"},
                                                                 {"--flag=maybe"},
                                                                 {"extra"},
                                                                 {"--nmber", "3"},
                                                                 {"-x"}})
    EXPECT_EQ(parse_words(words).code, kUsage) << words.front();
  EXPECT_FALSE(parse_words({}).code);
}

TEST(Options, ErrorsBecomeExitCodes) {
  EXPECT_EQ(guarded("t", [] { return 7; }), 7);
  EXPECT_EQ(guarded("t", []() -> int { fail(Code::invalid_argument, "x"); }), kUsage);
  EXPECT_EQ(guarded("t", []() -> int { fail(Code::timeout, "x"); }), kHang);
  EXPECT_EQ(guarded("t", []() -> int { fail(Code::peer_failed, "x"); }), kCannotRun);
  EXPECT_EQ(guarded("t", []() -> int { throw std::runtime_error("x"); }), kCannotRun);
}

TEST(Version, Codes) {
  EXPECT_EQ(version_code_text(10203), "1.2.3");
  EXPECT_TRUE(version_line("hcc").starts_with("hcc 0."));
}

}  // namespace
}  // namespace hcomm::cli
