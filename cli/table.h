// SPDX-License-Identifier: Apache-2.0
// Text tables. A Table holds all of its rows and fits its columns to them; a stream of rows (a
// benchmark that runs for minutes) gives its widths beforehand and prints line by line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hcomm::cli {

enum class Align : uint8_t { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
  size_t width = 0;  // the least; a wider cell pushes what follows it to the right
};

// One line: cells padded to the columns' widths, two blanks between, no blanks at the end, with a
// newline.
std::string table_line(std::span<const Column> columns, std::span<const std::string> cells);
std::string title_line(std::span<const Column> columns);

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);  // one a column
  bool empty() const { return rows_.empty(); }
  std::string text() const;  // titles and rows

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hcomm::cli
