// SPDX-License-Identifier: Apache-2.0
// What may be written to a stream: colour only where a terminal wants it (not in a pipe, not with
// NO_COLOR or TERM=dumb), and never a control byte that came from data. Used by every tool for all
// text that it prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hcomm::cli {

enum class ColorMode : uint8_t { automatic, always, never };
enum class Color : uint8_t { plain, red, green, yellow, bold, dim };

// The value of an environment variable of this process, "" when unset. The tools' own look at
// NO_COLOR, TERM and the variables of launchers; settings of the library are Config's.
std::string_view environment_value(std::string_view name);

class Painter {
 public:
  Painter() = default;  // never colours
  Painter(int fd, ColorMode mode);
  bool colours() const { return colours_; }
  std::string paint(Color color, std::string_view text) const;

 private:
  bool colours_ = false;
};

// `text` with every control byte (and DEL) as \xNN: safe on a terminal whatever the data holds.
std::string printable(std::string_view text);

}  // namespace hcomm::cli
