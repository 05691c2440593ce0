// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/bytes.h"

namespace hcomm::compare {

namespace {

constexpr double kWidth = 260, kHeight = 190;  // of a panel with its margins
constexpr double kLeft = 52, kRight = 10, kTop = 24, kBottom = 30;
constexpr double kLegend = 34;
constexpr size_t kMostColumns = 4;

// Ours is the first: dark. The others are told apart by colour-blind people, too (Okabe, Ito).
constexpr const char* kColours[] = {"#000000", "#e69f00", "#56b4e9", "#009e73",
                                    "#d55e00", "#cc79a7", "#0072b2", "#999933"};

struct Spot {
  double bytes, us;
};
struct Panel {
  std::string title;
  std::map<std::string, std::vector<Spot>> lines;
};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return result;
}

std::optional<Figure> fullest(const Series& series, const Cell& cell) {
  size_t most = 0;
  State best = State::unknown;
  for (const State state : {State::near, State::far, State::unknown}) {
    size_t turns = 0;
    for (const Series& each : cell.series)
      if (const auto seen = figure(each, state)) turns += seen->turns;
    if (turns > most) best = state;
    most = std::max(most, turns);
  }
  return series.wrong() ? std::nullopt : figure(series, best);
}

std::vector<Panel> panels_of(std::span<const Cell> cells) {
  std::vector<Panel> panels;
  for (const Cell& cell : cells) {
    if (cell.bytes == 0) continue;
    const std::string title = fmt::format("{}, {} ranks, {}", bench::info(cell.operation).name,
                                          cell.ranks, cell.transport);
    auto at = std::find_if(panels.begin(), panels.end(),
                           [&](const Panel& panel) { return panel.title == title; });
    if (at == panels.end()) at = panels.insert(at, Panel{title, {}});
    for (const Series& series : cell.series)
      if (const auto seen = fullest(series, cell); seen && seen->min_us > 0)
        at->lines[series.subject].push_back({static_cast<double>(cell.bytes), seen->min_us});
  }
  for (Panel& panel : panels)
    for (auto& [name, spots] : panel.lines)
      std::sort(spots.begin(), spots.end(),
                [](const Spot& a, const Spot& b) { return a.bytes < b.bytes; });
  return panels;
}

// A logarithmic axis over whole powers of its base.
struct Axis {
  double base, low, high;  // exponents
  double from, to;         // pixels
  double at(double value) const {
    return from + (std::log(value) / std::log(base) - low) / (high - low) * (to - from);
  }
};

Axis axis_over(double least, double most, double base, double from, double to) {
  Axis axis{base, std::floor(std::log(least) / std::log(base) + 1e-9),
            std::ceil(std::log(most) / std::log(base) - 1e-9), from, to};
  if (axis.high <= axis.low) axis.high = axis.low + 1;
  return axis;
}

std::string time_text(double us) {
  if (us >= 1e6) return fmt::format("{:g} s", us / 1e6);
  if (us >= 1e3) return fmt::format("{:g} ms", us / 1e3);
  return us >= 1 ? fmt::format("{:g} us", us) : fmt::format("{:g} ns", us * 1e3);
}

std::string grid_of(const Axis& x, const Axis& y) {
  std::string text;
  for (double power = y.low; power <= y.high; power++) {
    const double value = std::pow(y.base, power), at = y.at(value);
    text += fmt::format(
        "<line class=\"g\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        x.from, at, x.to, at, x.from - 4, at + 3, time_text(value));
  }
  const double step = std::max(1.0, std::ceil((x.high - x.low) / 5));
  for (double power = x.low; power <= x.high; power += step) {
    const double value = std::pow(x.base, power), at = x.at(value);
    text += fmt::format(
        "<line class=\"g\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        at, y.from, at, y.to, at, y.from + 13, size_text(static_cast<size_t>(std::round(value))));
  }
  return text;
}

std::string panel_text(const Panel& panel, const std::vector<std::string>& subjects, double left,
                       double top) {
  std::string text = fmt::format("<text class=\"t\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                                 left + kLeft, top + 15, escaped(panel.title));
  double least = 1e300, most = 0, small = 1e300, large = 0;
  for (const auto& [name, spots] : panel.lines)
    for (const Spot& spot : spots) {
      least = std::min(least, spot.us);
      most = std::max(most, spot.us);
      small = std::min(small, spot.bytes);
      large = std::max(large, spot.bytes);
    }
  if (most == 0) return text;
  const Axis x = axis_over(small, large, 2, left + kLeft, left + kWidth - kRight);
  const Axis y = axis_over(least, most, 10, top + kHeight - kBottom, top + kTop);
  text += grid_of(x, y);
  for (size_t i = 0; i < subjects.size(); i++) {
    const auto line = panel.lines.find(subjects[i]);
    if (line == panel.lines.end()) continue;
    std::string points, dots;
    const char* colour = kColours[i % std::size(kColours)];
    for (const Spot& spot : line->second) {
      points += fmt::format("{:.1f},{:.1f} ", x.at(spot.bytes), y.at(spot.us));
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\"/>",
                          x.at(spot.bytes), y.at(spot.us), colour);
    }
    text += fmt::format("<polyline points=\"{}\" stroke=\"{}\"/>{}\n", points, colour, dots);
  }
  return text;
}

std::string legend_of(const std::vector<std::string>& subjects) {
  std::string text;
  double left = kLeft;
  for (size_t i = 0; i < subjects.size(); i++) {
    text += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"16\" x2=\"{:.1f}\" y2=\"16\" stroke=\"{}\" stroke-width=\"2\"/>"
        "<text x=\"{:.1f}\" y=\"20\">{}</text>\n",
        left, left + 18, kColours[i % std::size(kColours)], left + 22, escaped(subjects[i]));
    left += 40 + 7 * static_cast<double>(subjects[i].size());
  }
  return text;
}

}  // namespace

std::string plot(std::span<const Cell> cells) {
  const std::vector<Panel> panels = panels_of(cells);
  std::vector<std::string> subjects;  // in the order of the contest, so ours is the first
  for (const Cell& cell : cells)
    for (const Series& series : cell.series)
      if (std::find(subjects.begin(), subjects.end(), series.subject) == subjects.end())
        subjects.push_back(series.subject);
  const size_t columns = std::clamp<size_t>(panels.size(), 1, kMostColumns);
  const size_t lines = divide_up(panels.size(), columns);
  const double width = kWidth * static_cast<double>(columns) + 20;
  const double height = kLegend + kHeight * static_cast<double>(lines) + 10;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"9\">\n"
      "<title>hcc-bench compare: least time of the slowest rank over size</title>\n"
      "<style>.g{{stroke:#ddd}}.t{{font-size:11px;font-weight:bold}}"
      "polyline{{fill:none;stroke-width:1.5}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  text += legend_of(subjects);
  for (size_t i = 0; i < panels.size(); i++)
    text += panel_text(panels[i], subjects, kWidth * static_cast<double>(i % columns),
                       kLegend + kHeight * static_cast<double>(i / columns));
  return text + "</svg>\n";
}

}  // namespace hcomm::compare
