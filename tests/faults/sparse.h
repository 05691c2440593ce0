// SPDX-License-Identifier: Apache-2.0
// Memory that costs nothing until it is touched, for cases with counts that pass 2^31.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace hcomm::test {

class Sparse {
 public:
  explicit Sparse(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() { munmap(data_, bytes_); }
  signed char* data() const { return static_cast<signed char*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

}  // namespace hcomm::test
