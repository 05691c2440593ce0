// SPDX-License-Identifier: Apache-2.0
#include "comm/calibration/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/bytes.h"
#include "base/log.h"
#include "base/process.h"

namespace hcomm::comm {

namespace {

// "hcomm-calibration 2 HASH", HASH of all that follows; then a line an entry: key, when, three
// numbers.
constexpr std::string_view kHead = "hcomm-calibration 2 ";
constexpr const char* kFile = "calibration";
constexpr size_t kMostBytes = 64 * kKiB;
constexpr int64_t kLeftover_s = 3600;  // then a file that somebody began to write is nobody's

// Ours, and nobody else may write there.
bool safe(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// nullopt where it is not there, or not to be trusted; logs why.
UniqueFd open_folder(const std::string& parent) {
  if (parent.empty()) {
    log(LogLevel::debug, "calibration is not kept: neither XDG_CACHE_HOME nor HOME is set");
    return {};
  }
  const std::string path = parent + "/hcomm";
  mkdir(parent.c_str(), 0700);  // ~/.cache of a new user
  mkdir(path.c_str(), 0700);
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder || fstat(folder.get(), &status) != 0) {
    log(LogLevel::debug, "calibration is not kept: {}: {}", path, std::strerror(errno));
    return {};
  }
  if (!safe(status)) {
    log(LogLevel::debug, "calibration is not kept: {}: others may write there", path);
    return {};
  }
  return folder;
}

std::string hash_text(std::string_view text) {
  return fmt::format("{:016x}", hash_bytes(text));
}

// The next word of a line, turned into a number. False: it is none.
template <typename Number, typename... Base>
bool take(std::string_view& line, Number& into, Base... base) {
  const char* const end = line.data() + line.size();
  const auto [at, error] = std::from_chars(line.data(), end, into, base...);
  if (error != std::errc{} || (at != end && *at != ' ')) return false;
  line.remove_prefix(static_cast<size_t>(at - line.data()) + (at == end ? 0 : 1));
  return true;
}

}  // namespace

Cache::Cache(const std::string& folder, int64_t now_s)
    : now_s_(now_s), folder_(open_folder(folder)) {
  if (folder_) parse(read_file());
}

std::string Cache::read_file() const {
  // Not blocked by what is no file.
  const UniqueFd file(openat(folder_.get(), kFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !safe(status) ||
      status.st_size > static_cast<off_t>(kMostBytes))
    return {};
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  return got == status.st_size ? text : "";
}

// Keeps all that has not expired; of a file with a fault nothing.
void Cache::parse(std::string_view text) {
  const size_t head = kHead.size() + 16 + 1;
  if (text.size() < head || !text.starts_with(kHead) || text[head - 1] != '\n') return;
  const std::string_view hash = text.substr(kHead.size(), 16);
  text.remove_prefix(head);
  if (hash != hash_text(text)) return;
  std::vector<Entry> read;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    Entry entry;
    if (!take(line, entry.key, 16) || !take(line, entry.made_s) ||
        !take(line, entry.values.first) || !take(line, entry.values.second) ||
        !take(line, entry.values.third) || !line.empty())
      return;
    if (entry.made_s <= now_s_ && entry.made_s > now_s_ - kLife_s) read.push_back(entry);
  }
  entries_ = std::move(read);
}

bool Cache::writable() const {
  return folder_ && faccessat(folder_.get(), ".", W_OK | X_OK, AT_EACCESS) == 0;
}

std::optional<Cache::Values> Cache::find(uint64_t key) const {
  for (const Entry& entry : entries_)
    if (entry.key == key) return entry.values;
  return std::nullopt;
}

void Cache::put(uint64_t key, Values values) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
  if (entries_.size() >= kMostEntries) entries_.erase(entries_.begin());
  entries_.push_back({key, now_s_, values});
}

// A process that died while it wrote has left a file under another name.
void Cache::sweep() const {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(
      fdopendir(openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), closedir);
  if (!list) return;
  while (const dirent* each = readdir(list.get())) {
    struct stat status {};
    if (std::string_view(each->d_name).starts_with(std::string(kFile) + ".") &&
        fstatat(folder_.get(), each->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_mtim.tv_sec < now_s_ - kLeftover_s)
      unlinkat(folder_.get(), each->d_name, 0);
  }
}

void Cache::save() const {
  if (!folder_) return;
  std::string text;
  for (const Entry& entry : entries_)
    text += fmt::format("{:016x} {} {} {} {}\n", entry.key, entry.made_s, entry.values.first,
                        entry.values.second, entry.values.third);
  text = fmt::format("{}{}\n{}", kHead, hash_text(text), text);
  uint64_t random = 0;
  fill_random(std::as_writable_bytes(std::span(&random, 1)));
  const std::string name = fmt::format("{}.{:016x}", kFile, random);
  UniqueFd file(openat(folder_.get(), name.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const bool written =
      file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && renameat(folder_.get(), name.c_str(), folder_.get(), kFile) == 0) return sweep();
  log(LogLevel::debug, "calibration is not kept: write it: {}", std::strerror(errno));
  if (file) unlinkat(folder_.get(), name.c_str(), 0);
}

}  // namespace hcomm::comm
