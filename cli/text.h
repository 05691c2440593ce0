// SPDX-License-Identifier: Apache-2.0
// Numbers as the tools print them: four significant digits, never an exponent, "-" for what is not
// known. Sizes are base/bytes.h's. Also the lines of CSV (RFC 4180) and Markdown.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hcomm::cli {

// 0.1234 12.34 123.4 12345: at least four significant digits without an exponent.
std::string number_text(double value);
std::string number_text(std::optional<double> value);  // "-" for nothing, nan and infinity

std::string csv_line(std::span<const std::string> cells);       // ends in a newline
std::string markdown_line(std::span<const std::string> cells);  // ends in a newline

// A word as every shell reads it back: within single quotes where it needs them.
std::string shell_quoted(std::string_view word);

// Lines of at most `width` columns, broken at blanks; a longer word stays whole.
std::vector<std::string> wrap(std::string_view text, size_t width);
// Columns on a terminal: code points, without the bytes of colour sequences.
size_t columns_of(std::string_view text);

}  // namespace hcomm::cli
