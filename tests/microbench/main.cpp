// SPDX-License-Identifier: Apache-2.0
// microbench_compare bundle OUT FILE... puts documents of Google Benchmark into one; compare BASE
// NOW BOUND% says what has changed: exit code 0, 1 (slower), 2 (usage), 5 (nothing to compare).
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "microbench/compare.h"

namespace {

using namespace hcomm;

int keep(const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  for (size_t i = 1; i < words.size(); i++) {
    std::ifstream file(words[i]);
    std::ostringstream text;
    text << file.rdbuf();
    texts.push_back(text.str());
  }
  std::ofstream out(words[0]);
  out << cli::json_pretty(microbench::bundle(texts)) << std::flush;
  if (!out) fail(Code::system, "cannot write {}", words[0]);
  return cli::kDone;
}

int hold_against(const std::string& base, const std::string& now, double bound) {
  const microbench::Comparison found =
      microbench::compare(microbench::read_times(base), microbench::read_times(now), bound);
  if (!cli::show(microbench::text_of(found, bound))) return cli::kCannotRun;
  if (found.compared == 0) return cli::kUndecided;
  return found.slower > 0 ? cli::kProblem : cli::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded("microbench_compare", [&] {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() >= 3 && words[0] == "bundle") return keep({words.begin() + 1, words.end()});
    if (words.size() == 4 && words[0] == "compare")
      return hold_against(words[1], words[2], cli::parse_percent(words[3]));
    fail(Code::invalid_argument, "bundle OUT FILE... or compare BASE NOW BOUND");
  });
}
