// SPDX-License-Identifier: Apache-2.0
// Numbers that earlier jobs of this user have measured, in one small file of the user's cache
// folder. Owned by who calibrates, on rank 0 alone. Nothing here is ever an error: where there is
// no folder, where it is not safe, where the file is not what it should be, there is nothing to be
// found. Absent: locks. Of two jobs that save at once the later one wins, and what the other one
// has found out is measured again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace hcomm::comm {

class Cache {
 public:
  struct Values {
    double first = 0, second = 0, third = 0;
  };
  static constexpr int64_t kLife_s = 7 * 24 * 3600;  // of an entry
  static constexpr size_t kMostEntries = 256;        // the oldest make room

  // Opens hcomm/ in the folder, makes it where it is missing, and reads what is there. "": no
  // cache. now_s: the wall clock, by which entries expire; those of the future have expired, too.
  Cache(const std::string& folder, int64_t now_s);

  bool writable() const;  // so that it pays to find out more than this job needs
  std::optional<Values> find(uint64_t key) const;
  void put(uint64_t key, Values values);
  void save() const;  // all or nothing; a line of the debug log where it cannot be done

 private:
  struct Entry {
    uint64_t key = 0;
    int64_t made_s = 0;
    Values values;
  };
  std::string read_file() const;
  void parse(std::string_view text);
  void sweep() const;

  int64_t now_s_;
  UniqueFd folder_;
  std::vector<Entry> entries_;  // in the order of their making
};

}  // namespace hcomm::comm
