// SPDX-License-Identifier: Apache-2.0
// Source text as the tidy test looks at it: a tree of files, lines, code without comments and
// strings. Pure but for read_tree.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hcomm::tidy {

using Tree = std::map<std::string, std::string>;  // path from the root -> text
using Strings = std::vector<std::string>;

// What people wrote: build folders, hidden folders and golden files are left out.
Tree read_tree(const std::filesystem::path& root);

Strings split(std::string_view text, char separator);
inline Strings lines_of(std::string_view text) {
  return split(text, '\n');
}
Strings words_of(std::string_view text);
// "a/b/c.cpp" -> "a/b", "c.cpp", "cpp" ("" where there is none).
std::string folder_of(const std::string& path);
std::string name_of(const std::string& path);
std::string extension_of(const std::string& path);
bool under(const std::string& path, std::string_view folder);
// A project of its own, and the drivers that hcc-bench compare builds with the peers' compilers.
bool built_elsewhere(const std::string& path);

// The same text with comments, strings and characters turned into blanks; newlines stay.
std::string code_of(std::string_view text);

struct Include {
  size_t line;
  std::string path;  // of #include "path"
};
std::vector<Include> includes_of(std::string_view text);

struct Function {
  std::string name;  // as far as can be told
  size_t line = 0, lines = 0;
};
// Function bodies of C++ code, by counting braces; those inside of others are part of them.
std::vector<Function> functions_of(std::string_view text);

}  // namespace hcomm::tidy
