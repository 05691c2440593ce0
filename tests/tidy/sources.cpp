// SPDX-License-Identifier: Apache-2.0
#include "tidy/sources.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace hcomm::tidy {

namespace fs = std::filesystem;

Tree read_tree(const fs::path& root) {
  Tree tree;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string path = fs::relative(it->path(), root).string(), name = name_of(path);
    if (it->is_directory()) {
      const bool hidden = name.starts_with('.') && name != ".ci";
      if (hidden || path == "build" || name == "golden") it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file() || name.starts_with('.')) continue;
    std::ifstream file(it->path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    tree[path] = text.str();
  }
  return tree;
}

Strings split(std::string_view text, char separator) {
  Strings parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Strings words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  Strings words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}
std::string name_of(const std::string& path) {
  return fs::path(path).filename().string();
}
std::string extension_of(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  return extension.empty() ? extension : extension.substr(1);
}
bool under(const std::string& path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}
bool built_elsewhere(const std::string& path) {
  return under(path, "tests/consumer") || under(path, "hcc-bench/peers") ||
         path == "examples/train/team_mpi.cpp";
}

namespace {

bool word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Where the comment, string or character constant that begins at `at` ends; `at`: none begins
// there.
size_t end_of_blank(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  const auto past = [&](std::string_view mark, size_t from) {
    const size_t found = text.find(mark, from);
    return found == std::string_view::npos ? text.size() : found + mark.size();
  };
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) return past("*/", at + 2);
  if (rest.starts_with("R\"") && (at == 0 || !word_character(text[at - 1]))) {
    const size_t open = text.find('(', at);
    if (open == std::string_view::npos) return text.size();
    std::string close = ")";
    close += text.substr(at + 2, open - at - 2);
    close += '"';
    return past(close, open);
  }
  const char quote = text[at];
  const bool digits =
      quote == '\'' && at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1]));  // 1'000
  if ((quote != '"' && quote != '\'') || digits) return at;
  size_t end = at + 1;
  while (end < text.size() && text[end] != quote && text[end] != '\n')
    end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

// Directives, so that a macro's braces and an #include do not belong to the next statement.
void blank_directives(std::string& code) {
  bool continued = false;
  for (size_t at = 0; at < code.size();) {
    const size_t end = std::min(code.find('\n', at), code.size());
    const size_t first = std::min(code.find_first_not_of(" \t", at), end);
    const bool directive = continued || (first < end && code[first] == '#');
    continued = directive && end > at && code[end - 1] == '\\';
    if (directive)
      std::fill(code.begin() + static_cast<std::ptrdiff_t>(at),
                code.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    at = end + 1;
  }
}

size_t line_of(std::string_view text, size_t at) {
  return 1 + static_cast<size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

// What a statement is that ends in '{'.
enum class Opens { scope, function, other };
Opens opens(std::string_view statement) {
  const Strings words = words_of(statement);
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const bool call = statement.find('(') != std::string_view::npos;
  for (const char* scope : {"struct", "class", "union"})  // struct alignas(64) Foo
    if (!words.empty() && words[0] == scope) return Opens::scope;
  if (has("namespace") || has("extern") || (words.empty() && !call)) return Opens::scope;
  if (!call && (has("class") || has("struct") || has("union"))) return Opens::scope;
  const size_t equals = statement.find('=');
  const bool value = equals != std::string_view::npos && equals < statement.find('(') &&
                     statement.find("operator") == std::string_view::npos;
  return call && !value && !has("enum") ? Opens::function : Opens::other;
}

std::string name_before_call(std::string_view statement) {
  size_t end = std::min(statement.find('('), statement.size());
  while (end > 0 && statement[end - 1] == ' ') end--;
  size_t begin = end;
  while (begin > 0 && (word_character(statement[begin - 1]) || statement[begin - 1] == ':' ||
                       statement[begin - 1] == '~'))
    begin--;
  return std::string(statement.substr(begin, end - begin));
}

// The ':' of "private:" and its like.
bool ends_label(std::string_view code, size_t at) {
  if (code[at] != ':') return false;
  const std::string_view before = code.substr(0, at);
  return before.ends_with("public") || before.ends_with("private") || before.ends_with("protected");
}

size_t closing_brace(std::string_view code, size_t open) {
  size_t depth = 0;
  for (size_t at = open; at < code.size(); at++) {
    if (code[at] == '{') depth++;
    if (code[at] == '}' && --depth == 0) return at;
  }
  return code.size();
}

}  // namespace

std::string code_of(std::string_view text) {
  std::string code(text);
  for (size_t at = 0; at < text.size();) {
    const size_t end = end_of_blank(text, at);
    for (size_t i = at; i < end; i++)
      if (code[i] != '\n') code[i] = ' ';
    at = std::max(end, at + 1);
  }
  return code;
}

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> includes;
  size_t number = 0;
  for (const std::string& line : lines_of(text)) {
    number++;
    const Strings parts = split(line, '"');
    if (parts.size() >= 2 && words_of(parts[0]) == Strings{"#include"})
      includes.push_back({number, parts[1]});
  }
  return includes;
}

std::vector<Function> functions_of(std::string_view text) {
  std::string code = code_of(text);
  blank_directives(code);
  std::vector<Function> functions;
  size_t statement = 0;  // where the current one begins
  for (size_t at = 0; at < code.size(); at++) {
    if (code[at] == ';' || code[at] == '}' || ends_label(code, at)) statement = at + 1;
    if (code[at] != '{') continue;
    const size_t begin = std::min(code.find_first_not_of(" \n\t", statement), at);
    const std::string_view head = std::string_view(code).substr(begin, at - begin);
    const Opens kind = opens(head);
    if (kind != Opens::scope) {
      const size_t close = closing_brace(code, at);
      const size_t first = line_of(code, begin), last = line_of(code, std::min(close, code.size()));
      if (kind == Opens::function)
        functions.push_back({name_before_call(head), first, last - first + 1});
      at = std::min(close, code.size() - 1);
    }
    statement = at + 1;
  }
  return functions;
}

}  // namespace hcomm::tidy
