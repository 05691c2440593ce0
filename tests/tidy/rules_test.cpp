// SPDX-License-Identifier: Apache-2.0
// The rules on small made-up trees: each must find what is wrong, where it is, and nothing else.
#include "tidy/rules.h"

#include <gtest/gtest.h>

namespace hcomm::tidy {
namespace {

const std::string kHead = "// SPDX-License-Identifier: Apache-2.0\n";

Tree layered() {
  return {{"libcore/README.md",
           "| folder | may include | what |\n|---|---|---|\n"
           "| `base` | | errors |\n| `engine` | `base` | runs |\n| `comm` | `engine` | groups |\n"},
          {"libcore/base/CMakeLists.txt", "hcomm_layer(base)\n"},
          {"libcore/engine/CMakeLists.txt", "hcomm_layer(engine base)\n"},
          {"libcore/comm/CMakeLists.txt", "hcomm_layer(comm engine)\n"},
          {"libcore/base/error.h", kHead + "// Errors.\n"},
          {"libcore/comm/group.cpp", kHead + "#include \"base/error.h\"\n"}};
}

TEST(Rules, LayersByWayOfOthersAreAllowed) {
  EXPECT_TRUE(check_layers(layered()).empty());
  EXPECT_TRUE(check_layer_links(layered()).empty());
}

TEST(Rules, LayerAboveIsFound) {
  Tree tree = layered();
  tree["libcore/base/error.cpp"] = kHead + "\n#include \"comm/group.h\"\n";
  const Strings faults = check_layers(tree);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_TRUE(faults[0].starts_with("libcore/base/error.cpp:3: includes comm/group.h"))
      << faults[0];
}

TEST(Rules, LayerInASubfolderCounts) {
  Tree tree = layered();
  tree["libcore/engine/deep/x.cpp"] = "#include \"comm/group.h\"\n";
  EXPECT_EQ(check_layers(tree).size(), 1U);
}

TEST(Rules, FolderWithoutARowIsFound) {
  Tree tree = layered();
  tree["libcore/codec/x.cpp"] = kHead;
  EXPECT_EQ(check_layers(tree).size(), 1U);
}

TEST(Rules, ToolsUseThePublicApi) {
  Tree tree = layered();
  tree["hcc-bench/main.cpp"] =
      "#include \"base/error.h\"\n#include \"engine/drive.h\"\n#include \"comm/x.def\"\n";
  EXPECT_EQ(check_layers(tree).size(), 1U);
}

TEST(Rules, LinksThatTheTableDoesNotHaveAreFound) {
  Tree tree = layered();
  tree["libcore/engine/CMakeLists.txt"] = "hcomm_layer(engine base comm)\n";
  EXPECT_EQ(check_layer_links(tree).size(), 1U);
  EXPECT_EQ(check_layers({}).size(), 1U);
}

TEST(Rules, IncludesMustExistAndNameTheirFolder) {
  Tree tree = layered();
  EXPECT_TRUE(check_includes(tree).empty());
  tree["libcore/comm/group.cpp"] = "#include \"base/gone.h\"\n";
  EXPECT_EQ(check_includes(tree).size(), 1U);
  tree["libcore/comm/group.h"] = kHead;
  tree["libcore/comm/group.cpp"] = "#include \"group.h\"\n";
  EXPECT_EQ(check_includes(tree).size(), 1U);
}

TEST(Rules, Environment) {
  const Tree tree{{"libcore/base/config.cpp", "getenv(name);\n"},
                  {"libcore/comm/job.cpp", "// getenv(x)\nauto s = \"getenv(\";\n"},
                  {"libcore/comm/pmi.cpp", "x();\nstd::getenv(name);\n"}};
  const Strings faults = check_environment(tree);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_TRUE(faults[0].starts_with("libcore/comm/pmi.cpp:2:")) << faults[0];
}

TEST(Rules, Lines) {
  EXPECT_TRUE(check_lines({{"a/x.cpp", std::string(100, 'x') + "\n"}}).empty());
  EXPECT_EQ(check_lines({{"a/x.cpp", std::string(101, 'x') + "\n"}}).size(), 1U);
  EXPECT_TRUE(check_lines({{"a/x.cpp", std::string(99, 'x') + "\xc3\xa4\n"}}).empty());
  EXPECT_EQ(check_lines({{"a/x.sh", "a \nb\tc\nd"}}).size(), 3U);
  EXPECT_TRUE(check_lines({{"a/x.md", "a \nb\tc\nd"}}).empty());
}

std::string function_of(size_t lines) {
  std::string text = "namespace a {\nvoid f(int x) {\n";
  for (size_t i = 2; i < lines; i++) text += "  x++;\n";
  return text + "}\n}\n";
}

TEST(Rules, Lengths) {
  EXPECT_TRUE(check_lengths({{"a/x.cpp", function_of(70)}}).empty());
  const Strings faults = check_lengths({{"a/x.cpp", function_of(71)}});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0], "a/x.cpp:2: f has 71 lines (70)");
  EXPECT_TRUE(check_lengths({{"a/x.cpp", std::string(500, '\n')}}).empty());
  EXPECT_EQ(check_lengths({{"a/x.cpp", std::string(501, '\n')}}).size(), 1U);
}

TEST(Rules, FunctionsAreTold) {
  const auto functions = functions_of(
      "#define OPEN {\nstruct alignas(64) A : B {\n public:\n  A() : a_{1}, b_(2) {\n    if (x) {\n"
      "    }\n  }\n  bool operator==(const A&) const { return \"{\"[0] == '{'; }\n};\n"
      "const int kTable[] = {\n 1,\n};\nstatic auto kCall = make([] {\n return R\"(})\";\n});\n"
      "template <typename T>\nvoid g(T) {\n}\n");
  Strings names;
  for (const Function& function : functions) names.push_back(function.name);
  EXPECT_EQ(names.back(), "g");
  EXPECT_EQ(functions.back().line, 16U);
  EXPECT_EQ(functions.back().lines, 3U);
  for (const Function& function : functions) EXPECT_LE(function.lines, 4U) << function.name;
}

TEST(Rules, Folders) {
  Tree tree;
  for (char c = 'a'; c < 'a' + 12; c++) {
    tree["cli/" + std::string(1, c) + ".cpp"] = kHead;
    tree["cli/" + std::string(1, c) + ".h"] = kHead;
  }
  EXPECT_TRUE(check_folders(tree).empty());
  tree["cli/more.cpp"] = kHead;
  EXPECT_EQ(check_folders(tree), Strings{"cli: 13 modules (12)"});
}

TEST(Rules, Heads) {
  EXPECT_TRUE(check_heads({{"a/x.h", kHead + "// What.\n"}, {"a/x.cpp", kHead}}).empty());
  EXPECT_EQ(check_heads({{"a/x.h", kHead + "#pragma once\n"}}).size(), 1U);
  EXPECT_EQ(check_heads({{"a/x.cpp", "#include <map>\n"}}).size(), 1U);
}

TEST(Rules, Lists) {
  EXPECT_TRUE(check_lists({{"a/x.def", "// z\nA(a)\nA(b)\n"}}).empty());
  EXPECT_EQ(check_lists({{"a/x.def", "A(b)\nA(a)\n"}}).size(), 1U);
  EXPECT_EQ(check_lists({{"a/x.def", "A(a)\nA(a)\n"}}).size(), 1U);
}

TEST(Rules, Words) {
  const std::string word = std::string("TO") + "DO";
  EXPECT_EQ(check_words({{"a/x.cpp", "// " + word + ": later\n"}}).size(), 1U);
  EXPECT_TRUE(check_words({{"a/x.cpp", "int " + word + "S;\n"}}).empty());
}

TEST(Rules, Built) {
  const auto compiled =
      compiled_sources(R"([{"file": "/s/a/x.cpp"}, {"file": "/t/a/y.cpp"}])", "/s");
  EXPECT_EQ(compiled, std::set<std::string>{"a/x.cpp"});
  EXPECT_EQ(check_built({{"a/x.cpp", ""}, {"a/y.cpp", ""}, {"a/y.h", ""}}, compiled),
            Strings{"a/y.cpp: belongs to no target"});
}

TEST(Rules, Manuals) {
  Tree tree{{"hcc-top/CMakeLists.txt", "add_executable(hcc-top main.cpp)\n"},
            {"man/hcc-top.1", ""}};
  EXPECT_TRUE(check_manuals(tree).empty());
  tree["man/hcc-gone.1"] = "";
  EXPECT_EQ(check_manuals(tree).size(), 1U);
  tree.erase("man/hcc-top.1");
  EXPECT_EQ(check_manuals(tree).size(), 2U);
}

}  // namespace
}  // namespace hcomm::tidy
