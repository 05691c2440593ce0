// SPDX-License-Identifier: Apache-2.0
// A rank that uses the library, for the rows of the fault table that need one. First argument: what
// to do.
#include <hcomm/hcomm.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace {

void say(const std::string& text) {
  const std::string line = text + "\n";
  if (write(1, line.data(), line.size()) < 0) _exit(99);
}

// Sums of several sizes, looked at; says "rank R of N: right".
int check(hcommComm_t comm, int rank, int ranks) {
  for (const size_t count : {1, 1000, 300000}) {
    std::vector<int> in(count), out(count);
    for (size_t i = 0; i < count; i++) in[i] = static_cast<int>(i % 1000) * (rank + 1);
    if (hcommAllReduce(in.data(), out.data(), count, hcommInt32, hcommSum, comm, nullptr) !=
        hcommSuccess) {
      say(std::string("all-reduce: ") + hcommGetLastError(comm));
      return 51;
    }
    for (size_t i = 0; i < count; i++)
      if (out[i] != static_cast<int>(i % 1000) * ranks * (ranks + 1) / 2) return 53;
  }
  say("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ": right");
  return hcommCommDestroy(comm) == hcommSuccess ? 0 : 52;
}

int run(const std::string& mode) {
  hcommComm_t comm = nullptr;
  if (hcommCommInitWorld(&comm, nullptr) != hcommSuccess) {
    say(std::string("init: ") + hcommGetLastError(nullptr));
    return 50;
  }
  int rank = -1, ranks = 0;
  hcommCommUserRank(comm, &rank);
  hcommCommCount(comm, &ranks);
  if (mode == "init-exit") _exit(3);
  if (mode == "absent" && rank == 0) {
    say("ready");
    while (true) pause();
  }
  if (mode == "absent" || mode == "busy") say("ready");
  if (mode == "leave" && rank == 1) _exit(7);
  if (mode == "crash" && rank == 1) abort();

  if (mode == "check") return check(comm, rank, ranks);
  std::vector<float> values(1 << 16, 1.0f);
  for (int i = 0; i < (mode == "sum" ? 3 : 1000000); i++)
    if (hcommAllReduce(values.data(), values.data(), values.size(), hcommFloat32, hcommMax, comm,
                       nullptr) != hcommSuccess) {
      say(std::string("all-reduce: ") + hcommGetLastError(comm));
      return 51;
    }
  return hcommCommDestroy(comm) == hcommSuccess ? 0 : 52;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc > 1 ? argv[1] : "");
}
