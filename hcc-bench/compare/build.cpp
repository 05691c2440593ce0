// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/build.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/terminal.h"

namespace hcomm::compare {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kCompileMs = 300'000;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(Code::unavailable, "cannot read {}", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Which compiler a name leads to now: the alternatives of Debian move.
uint64_t hash_of_program(const std::string& path, uint64_t hash) {
  struct stat about {};
  const std::string real = fs::weakly_canonical(path).string();
  if (stat(path.c_str(), &about) != 0) return hash_bytes(real, hash);
  hash = hash_number(static_cast<uint64_t>(about.st_mtim.tv_sec), hash_bytes(real, hash));
  return hash_number(static_cast<uint64_t>(about.st_size), hash);
}

}  // namespace

std::string cache_folder() {
  const std::string cache(cli::environment_value("XDG_CACHE_HOME"));
  if (!cache.empty()) return cache + "/hcomm/peers";
  const std::string home(cli::environment_value("HOME"));
  return (home.empty() ? "/tmp" : home + "/.cache") + "/hcomm/peers";
}

std::string build_driver(const Subject& subject, const std::string& sources,
                         const std::string& cache) {
  if (subject.compiler.empty()) return {};
  const std::string source = sources + "/" + subject.source;
  uint64_t hash = hash_of_program(subject.compiler[0], kHashSeed);
  for (const std::string& file :
       {source, sources + "/harness.h", sources + "/measure.h", sources + "/data.h"})
    hash = hash_bytes(text_of(file), hash);
  Launch compile{subject.compiler, {}};
  const std::vector<std::string> common = {"-O2", "-D_GNU_SOURCE", "-I" + sources, source};
  compile.words.insert(compile.words.end(), common.begin(), common.end());
  compile.words.insert(compile.words.end(), subject.libraries.begin(), subject.libraries.end());
  for (const std::string& word : compile.words) hash = hash_bytes(word + '\0', hash);
  const std::string stem = fs::path(subject.source).stem().string();
  const std::string program = fmt::format("{}/{}-{:016x}", cache, stem, hash);
  if (access(program.c_str(), X_OK) == 0) return program;
  std::error_code ignored;
  fs::create_directories(cache, ignored);
  const std::string part = fmt::format("{}.{}", program, getpid());
  compile.words.insert(compile.words.end(), {"-o", part});
  const Ran ran = run(compile, kCompileMs);
  if (ran.code != 0 || rename(part.c_str(), program.c_str()) != 0) {
    unlink(part.c_str());
    fail(Code::unavailable, "its driver could not be built: {}", last_lines(ran.output, 5));
  }
  return program;
}

}  // namespace hcomm::compare
