// SPDX-License-Identifier: Apache-2.0
// A driver that misbehaves as its first word says, for the tests of hcc-bench compare. The six
// words of a job follow.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "hcc-bench/peers/harness.h"

namespace {

// Reads a command, and answers as told.
int answer(peer_world& world, const std::string& how) {
  while (true) {
    peer_next_command(&world);
    if (world.region->quit != 0) return 0;
    if (how == "crash") {
      fprintf(stderr, "about to crash\x1b[31m\n");
      raise(SIGSEGV);
    } else if (how == "leave") {
      return 7;
    } else if (how == "hang") {
      pause();
    } else if (how == "garbage") {
      peer_write_line(&world, "ok 1 2 banana\n");
    } else if (how == "endless") {
      for (int i = 0; i < 100; i++) peer_write_line(&world, std::string(1000, 'x').c_str());
    } else if (how == "nan") {
      peer_write_line(&world, "ok nan nan nan 1 1 0 30 30\n");
    } else if (how == "wrong") {
      peer_write_line(&world, "ok 1 2 3 10 1 5 30 30\n");
    } else if (how == "mixed") {
      peer_write_line(&world, "ok 1 2 3 10 1 0 30 150\n");
    } else if (how == "unsupported") {
      peer_write_line(&world, "unsupported\n");
    } else {
      peer_write_line(&world, "ok 1 2 3 10 1 0 30 31.5\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string how = argv[1];
  peer_world world;
  if (!peer_parse(&world, argc - 1, argv + 1)) return 2;
  if (how == "silent") pause();
  if (how == "stillborn") {
    fprintf(stderr, "no library here\n");
    return 3;
  }
  if (how == "rude") {
    peer_connect(&world, "x");
    return 0;
  }
  if (!peer_connect(&world, "fake 1.0\x07")) return 1;
  return answer(world, how);
}
