// SPDX-License-Identifier: Apache-2.0
#include "device/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include "base/bytes.h"
#include "base/error.h"

namespace hcomm {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::string read_file(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text(8192, '\0');
  const ssize_t bytes = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
  text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return text;
}

// The value of "Name:   123 kB" in /proc/meminfo, as it stands; 0: not there.
size_t meminfo(std::string_view name) {
  const std::string text = read_file("/proc/meminfo");
  size_t at = text.find(name);
  if (at == std::string::npos) return 0;
  at = text.find_first_of("0123456789", at + name.size());
  if (at == std::string::npos) return 0;
  size_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

// Not executable, as hardened systems demand (vm.memfd_noexec); Linux before 6.3 does not know it.
int make_memfd(unsigned flags) {
  constexpr unsigned kNoExecSeal = 8;
  flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create("hcomm", flags | kNoExecSeal);
  if (fd >= 0 || errno != EINVAL) return fd;
  return memfd_create("hcomm", flags);
}

[[noreturn]] void refuse(int error, std::string_view purpose, size_t bytes, bool huge) {
  const std::string reason = std::generic_category().message(error);
  if (huge)
    fail(Code::system,
         "{}: {} in huge pages: {}; {} huge pages of {} are free; reserve more "
         "(vm.nr_hugepages) or set HCOMM_HUGEPAGES=auto",
         purpose, size_text(bytes), reason, meminfo("HugePages_Free:"),
         size_text(meminfo("Hugepagesize:") * kKiB));
  fail(Code::system, "{}: wanted {} of shared memory, available {}: {}", purpose, size_text(bytes),
       size_text(available_bytes()), reason);
}

}  // namespace

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

SharedPages make_shared_pages(std::string_view purpose, size_t bytes, Switch huge_pages) {
  const bool huge = huge_pages == Switch::on;
  size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (huge) page_bytes = std::max(page_bytes, meminfo("Hugepagesize:") * kKiB);
  if (bytes > SIZE_MAX / 4) refuse(ENOMEM, purpose, bytes, huge);
  const size_t mapped_bytes = round_up(bytes, page_bytes);

  // Beyond this limit ftruncate does not fail, it kills.
  rlimit file_bytes{};
  if (::getrlimit(RLIMIT_FSIZE, &file_bytes) == 0 && mapped_bytes > file_bytes.rlim_cur)
    refuse(EFBIG, purpose, bytes, huge);

  SharedPages pages;
  pages.fd.reset(make_memfd(huge ? MFD_HUGETLB : 0));
  if (!pages.fd) refuse(errno, purpose, bytes, huge);
  if (::ftruncate(pages.fd.get(), static_cast<off_t>(mapped_bytes)) != 0)
    refuse(errno, purpose, bytes, huge);
  // Huge pages are few and under quotas of their own: to run out at first touch would be SIGBUS.
  if (huge) {
    int error = EINTR;
    while (error == EINTR)
      error = ::fallocate(pages.fd.get(), 0, 0, static_cast<off_t>(mapped_bytes)) == 0 ? 0 : errno;
    if (error != 0) refuse(error, purpose, bytes, huge);
  }
  if (::fcntl(pages.fd.get(), F_ADD_SEALS, kSeals) != 0)
    fail_system(errno, "{}: seal {} of shared memory", purpose, size_text(bytes));
  pages.mapping = map_shared_pages(pages.fd.get(), Access::read_write);
  if (pages.mapping.base() == nullptr) refuse(errno, purpose, bytes, huge);
  // A wish: kernels that keep shared memory in small pages ignore it.
  if (huge_pages == Switch::automatic) ::madvise(pages.mapping.base(), mapped_bytes, MADV_HUGEPAGE);
  return pages;
}

Mapping map_shared_pages(int fd, Access access) {
  struct stat status {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return {};
  if (::fstat(fd, &status) != 0 || status.st_size <= 0) return {};
  const auto bytes = static_cast<size_t>(status.st_size);
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* base = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return {};
  return {static_cast<std::byte*>(base), bytes};
}

size_t available_bytes() {
  return meminfo("MemAvailable:") * kKiB;
}

}  // namespace hcomm
