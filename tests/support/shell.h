// SPDX-License-Identifier: Apache-2.0
// Commands as a person types them, for tests of scripts, pages and programs: run by sh, standard
// error joined to standard output. Absent: limits of time (ctest has them).
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace hcomm::test {

struct Ran {
  int code = -1;  // exit code, 128 + signal
  std::string output;
  bool says(std::string_view text) const { return output.find(text) != std::string::npos; }
};

inline Ran shell(const std::string& command) {
  Ran ran;
  std::fflush(nullptr);
  FILE* const pipe = popen(("exec 2>&1; " + command).c_str(), "re");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    ran.output.append(buffer, got);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A folder that is gone with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hcomm-test-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  // Writes a file, with the folders above it.
  void write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  void write_program(const std::string& name, std::string_view text) const {
    write(name, text);
    std::filesystem::permissions(path_ / name, std::filesystem::perms::owner_all);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace hcomm::test
