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
#include <utility>

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

// A file of another name in the same folder.
std::pair<UniqueFd, std::string> make_beside(const std::string& path) {
  std::string name = path + ".XXXXXX";
  UniqueFd file(mkostemp(name.data(), O_CLOEXEC));
  if (!file) fail_system(errno, "--output: make {}", path);
  return {std::move(file), name};
}

}  // namespace

void Output::check() const {
  if (path == "-") return;
  if (path.empty()) fail(Code::invalid_argument, "--output: an empty name");
  struct stat status {};
  const bool there = lstat(path.c_str(), &status) == 0;
  if (there && existing == Existing::keep) refuse(path);
  if (there && stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    fail(Code::invalid_argument, "--output: {} is there and is no file", path);
  unlink(make_beside(target()).second.c_str());
}

std::string Output::target() const {
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  return existing == Existing::keep || error ? path : resolved.string();
}

void Output::write(std::string_view text) const {
  if (path == "-") {
    if (!cli::show(text)) fail_system(errno, "write to standard output");
    return;
  }
  const std::string to = target();
  const auto [file, name] = make_beside(to);
  // A link, unlike a new name, is not made over a file that has come meanwhile.
  const bool made = all_written(file.get(), text) && fchmod(file.get(), usual_mode()) == 0 &&
                    (existing == Existing::keep ? link(name.c_str(), to.c_str())
                                                : rename(name.c_str(), to.c_str())) == 0;
  const int error = errno;
  unlink(name.c_str());
  if (made) return;
  if (error == EEXIST) refuse(path);
  fail_system(error, "--output: write {}", path);
}

}  // namespace hcomm::tune
