// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/fd.h"
#include "cli/terminal.h"

namespace hcomm::tune {

namespace {

[[noreturn]] void refuse(const std::string& path) {
  fail(Code::invalid_argument, "--output: {} is there already; --force overwrites it", path);
}

mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

bool all_written(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno != EINTR) return false;
    if (put > 0) text.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

}  // namespace

void Output::check() const {
  if (path == "-") return;
  struct stat status {};
  const bool there = stat(path.c_str(), &status) == 0;
  if (there && !S_ISREG(status.st_mode))
    fail(Code::invalid_argument, "--output: {} is there and is no file", path);
  if (there && existing == Existing::keep) refuse(path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    fail_system(errno, "--output: make {}", path);
}

void Output::write(std::string_view text) const {
  if (path == "-") {
    if (!cli::show(text)) fail_system(errno, "write to standard output");
    return;
  }
  std::string name = path + ".XXXXXX";
  const UniqueFd file(mkostemp(name.data(), O_CLOEXEC));
  if (!file) fail_system(errno, "--output: make {}", path);
  // A link, unlike a new name, is not made over a file that has come meanwhile.
  const bool made = all_written(file.get(), text) && fchmod(file.get(), usual_mode()) == 0 &&
                    (existing == Existing::keep ? link(name.c_str(), path.c_str())
                                                : rename(name.c_str(), path.c_str())) == 0;
  const int error = errno;
  unlink(name.c_str());
  if (made) return;
  if (error == EEXIST) refuse(path);
  fail_system(error, "--output: write {}", path);
}

}  // namespace hcomm::tune
