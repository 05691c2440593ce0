// SPDX-License-Identifier: Apache-2.0
#include "trace/recorder.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/error.h"
#include "base/process.h"

namespace hcomm::trace {

Recorder::Recorder(int fd, uint32_t rank, uint32_t ranks) : mapped_bytes_(kAreaBytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  off_t offset = 0;
  if (fd >= 0) {
    struct stat info {};
    offset = static_cast<off_t>(kAreaBytes * rank);
    if (fstat(fd, &info) != 0 || info.st_size < offset + static_cast<off_t>(kAreaBytes))
      fail(Code::invalid_argument,
           "HCOMM_RECORDER_FD={}: no room for rank {}; unset it, hcc-launch sets it", fd, rank);
    flags = MAP_SHARED;
  }
  void* memory =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, flags, fd >= 0 ? fd : -1, offset);
  if (memory == MAP_FAILED) fail_system(errno, "map {} bytes for the recorder", mapped_bytes_);
  area_ = new (memory) RankArea;  // fresh memory is zero; default-initialisation leaves it so
  area_->version = kVersion;
  area_->rank = rank;
  area_->ranks = ranks;
  area_->ticks_per_ns = ticks_per_ns();
  area_->waiting_peer.store(-1, std::memory_order_relaxed);
  area_->pid.store(getpid(), std::memory_order_relaxed);
  area_->start_ticks.store(ticks(), std::memory_order_relaxed);
  area_->start_wall_ns.store(wall_ns(), std::memory_order_relaxed);
  host_name().copy(area_->host, sizeof area_->host - 1);
  area_->magic = kMagic;
  area_->state.store(RankState::starting, std::memory_order_release);
}

Recorder::~Recorder() { munmap(area_, mapped_bytes_); }

}  // namespace hcomm::trace
