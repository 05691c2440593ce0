// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>

#include "base/error.h"
#include "cli/text.h"

namespace hcomm::cli {

std::string table_line(std::span<const Column> columns, std::span<const std::string> cells) {
  HCOMM_CHECK(columns.size() == cells.size(), "{} columns, {} cells", columns.size(), cells.size());
  std::string line;
  for (size_t i = 0; i < cells.size(); i++) {
    const size_t used = columns_of(cells[i]);
    const std::string pad(columns[i].width > used ? columns[i].width - used : 0, ' ');
    if (i > 0) line += "  ";
    line += columns[i].align == Align::right ? pad + cells[i] : cells[i] + pad;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string title_line(std::span<const Column> columns) {
  std::vector<std::string> titles;
  for (const Column& column : columns) titles.push_back(column.title);
  return table_line(columns, titles);
}

void Table::add(std::vector<std::string> cells) {
  HCOMM_CHECK(cells.size() == columns_.size(), "{} columns, {} cells", columns_.size(),
              cells.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<Column> fitted = columns_;
  for (size_t i = 0; i < fitted.size(); i++) {
    fitted[i].width = std::max(fitted[i].width, columns_of(fitted[i].title));
    for (const auto& row : rows_) fitted[i].width = std::max(fitted[i].width, columns_of(row[i]));
  }
  std::string text = title_line(fitted);
  for (const auto& row : rows_) text += table_line(fitted, row);
  return text;
}

}  // namespace hcomm::cli
