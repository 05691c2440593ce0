// SPDX-License-Identifier: Apache-2.0
// The rules of the house, each a pure function from a tree of sources to the places that break it:
// "path:line: what was seen (what is allowed)". Empty: the tree is tidy.
#pragma once

#include <map>
#include <set>
#include <string>

#include "tidy/sources.h"

namespace hcomm::tidy {

// Which folders of libcore a folder may include; its own is always allowed.
struct Layers {
  std::map<std::string, std::set<std::string>> direct;
  std::set<std::string> below(const std::string& folder) const;  // direct ones and theirs
};
// From the table "| `folder` | may include | ..." in libcore/README.md, whose second column holds
// folders in backquotes.
Layers read_layers(const Tree& tree);

// layers.cpp
Strings check_layers(const Tree& tree);       // #includes against the table, and tools' likewise
Strings check_layer_links(const Tree& tree);  // hcomm_layer(...) lines against the table
Strings check_includes(const Tree& tree);     // "folder/file.h" that exists
Strings check_environment(const Tree& tree);  // getenv in base/config.cpp only

// shape.cpp
Strings check_lines(const Tree& tree);    // columns, tabs, blanks at the end
Strings check_lengths(const Tree& tree);  // of files and functions
Strings check_folders(const Tree& tree);  // modules a folder
Strings check_heads(const Tree& tree);    // SPDX line, a header's opening paragraph
Strings check_lists(const Tree& tree);    // *.def sorted
Strings check_words(const Tree& tree);    // words of unfinished work

// files.cpp
Strings check_built(const Tree& tree, const std::set<std::string>& compiled);
Strings check_manuals(const Tree& tree);  // a page a tool, a tool a page
// Sources named in compile_commands.json, as paths from the root.
std::set<std::string> compiled_sources(std::string_view json, std::string_view root);

}  // namespace hcomm::tidy
