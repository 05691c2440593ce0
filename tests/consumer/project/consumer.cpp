// SPDX-License-Identifier: Apache-2.0
// A user's program: every call of hcomm.hpp once, with the right answers.
#include <array>
#include <cstdint>
#include <cstdio>
#include <hcomm/hcomm.hpp>
#include <vector>

enum class Half : uint16_t {};  // a type of our own
template <>
inline constexpr hcommDataType_t hcomm::type_of<Half> = hcommFloat16;

namespace {

int faults = 0;

template <typename A, typename B>
void expect_equal(const A& seen, const B& wanted, const char* what) {
  if (seen == static_cast<A>(wanted)) return;
  std::fprintf(stderr, "%s: not as wanted\n", what);
  faults++;
}

void reductions(hcomm::Communicator& world) {
  const int n = world.size(), rank = world.rank();
  const std::vector<float> mine(1000, static_cast<float>(rank));
  std::vector<float> sum(1000, -1);
  world.all_reduce(mine, sum);
  expect_equal(sum, std::vector<float>(1000, static_cast<float>(n * (n - 1) / 2)), "all_reduce");

  std::array<int64_t, 2> most{rank, -rank};
  world.all_reduce(most, hcommMax);
  expect_equal(most[0], n - 1, "all_reduce max");
  expect_equal(most[1], 0, "all_reduce max of negative");

  std::vector<double> at_root(rank == 1 ? 3 : 0);
  world.reduce(std::vector<double>{1, 2, 3}, at_root, 1);
  if (rank == 1) expect_equal(at_root, std::vector<double>{1.0 * n, 2.0 * n, 3.0 * n}, "reduce");

  const std::vector<uint32_t> blocks(static_cast<size_t>(n) * 4, 1);
  std::array<uint32_t, 4> own{};
  world.reduce_scatter(blocks, own);
  expect_equal(own[3], n, "reduce_scatter");

  std::vector<Half> halves(5, Half{0x3c00});  // 1.0
  world.all_reduce(halves, hcommMax);
  expect_equal(halves[4], Half{0x3c00}, "all_reduce of a type of our own");
}

void movements(hcomm::Communicator& world) {
  const int n = world.size(), rank = world.rank();
  std::array<int, 1> one{rank == 2 ? 42 : 0};
  world.broadcast(one, 2);
  expect_equal(one[0], 42, "broadcast");

  std::vector<int> all(static_cast<size_t>(n));
  world.all_gather(std::array{rank * 10}, all);
  expect_equal(all[static_cast<size_t>(n - 1)], (n - 1) * 10, "all_gather");

  std::vector<int> to(static_cast<size_t>(n), rank), from(static_cast<size_t>(n));
  world.all_to_all(to, from);
  expect_equal(from[1], 1, "all_to_all");

  std::vector<int> gathered(rank == 1 ? to.size() : 0);
  world.gather(std::array{rank + 5}, gathered, 1);
  if (rank == 1) expect_equal(gathered[static_cast<size_t>(n - 1)], n + 4, "gather");
  std::array<int, 1> mine{-1};
  world.scatter(gathered, mine, 1);
  expect_equal(mine[0], rank + 5, "scatter");

  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  std::array<std::byte, 3> out{std::byte(rank)}, in{};
  hcomm::group([&] {
    world.send(out, next);
    world.receive(in, before);
  });
  expect_equal(in[0], std::byte(before), "send, receive");
  std::array<int, 1> ones{1};
  hcomm::Plan plan([&] { world.all_reduce(ones); });
  for (int i = 0; i < 2; i++) {
    plan.start();
    plan.wait();
  }
  expect_equal(plan.done(), true, "plan that was waited for");
  expect_equal(ones[0], n * n, "plan");
  world.barrier();
}

void rest(hcomm::Communicator& world) {
  hcomm::Communicator part = world.split(world.rank() == 0 ? HCOMM_SPLIT_NOCOLOR : 1);
  expect_equal(static_cast<bool>(part), world.rank() != 0, "split");
  if (part) expect_equal(part.size(), world.size() - 1, "size of the part");
  if (world.rank() != 1) {
    hcomm::Communicator fewer = world.shrink(std::array{1});
    expect_equal(fewer.size(), world.size() - 1, "size of the shrunk");
  }
  hcomm::Communicator moved = std::move(part);
  expect_equal(static_cast<bool>(part), false, "moved from");
  try {
    std::vector<float> three(3), four(4);
    world.all_reduce(three, four);
    expect_equal(true, false, "ranges that do not fit");
  } catch (const hcomm::Failure& failure) {
    expect_equal(failure.result(), hcommInvalidArgument, "result of a failure");
  }
  try {
    std::array<int, 1> data{};
    world.broadcast(data, world.size());
    expect_equal(true, false, "a root that is none");
  } catch (const hcomm::Failure& failure) {
    expect_equal(failure.result(), hcommInvalidArgument, "result of the library");
  }
}

}  // namespace

int main() {
  try {
    hcomm::Communicator world = hcomm::Communicator::world();
    reductions(world);
    movements(world);
    rest(world);
    std::printf("rank %d of %d: %s\n", world.rank(), world.size(), faults == 0 ? "ok" : "wrong");
  } catch (const hcomm::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
  return faults == 0 ? 0 : 1;
}
