// SPDX-License-Identifier: Apache-2.0
// The driver of Gloo: makes its ranks itself; TCP over loopback, the only transport that Gloo has
// on one host. Reduce-scatter is left out: Gloo has it in place and in an older form only.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"

namespace {

// What ranks tell one another to connect, over the shared region: each writes few and short values,
// under keys that it makes up.
class RegionStore : public gloo::rendezvous::Store {
 public:
  explicit RegionStore(peer_world& world) : world_(world) {}

  void set(const std::string& key, const std::vector<char>& value) override {
    const std::string entry = std::to_string(key.size()) + " " + std::to_string(value.size()) +
                              " " + key + std::string(value.begin(), value.end());
    unsigned char* own = world_.region->shared[world_.rank];
    if (used_ + entry.size() + 1 > PEER_SHARED_BYTES) throw std::runtime_error("store is full");
    memcpy(own + used_, entry.data(), entry.size());
    used_ += entry.size();
    __atomic_store_n(&world_.region->posted[world_.rank], static_cast<uint32_t>(used_),
                     __ATOMIC_RELEASE);
  }

  std::vector<char> get(const std::string& key) override {
    std::vector<char> value;
    while (!find(key, value)) usleep(1000);
    return value;
  }

  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  bool find(const std::string& key, std::vector<char>& value) const {
    for (int rank = 0; rank < world_.ranks; rank++) {
      const auto* text = reinterpret_cast<const char*>(world_.region->shared[rank]);
      const size_t end = __atomic_load_n(&world_.region->posted[rank], __ATOMIC_ACQUIRE);
      for (size_t at = 0; at < end;) {
        size_t key_size = 0, value_size = 0;
        int head = 0;
        if (sscanf(text + at, "%zu %zu%n", &key_size, &value_size, &head) != 2) return false;
        at += static_cast<size_t>(head) + 1;
        const char* bytes = text + at + key_size;
        if (key.compare(0, std::string::npos, text + at, key_size) == 0) {
          value.assign(bytes, bytes + value_size);
          return true;
        }
        at += key_size + value_size;
      }
    }
    return false;
  }

  peer_world& world_;
  size_t used_ = 0;
};

struct Gloo {
  std::shared_ptr<gloo::rendezvous::Context> context;
  // Made when the buffers change: what a user keeps, too.
  const float* of = nullptr;
  std::unique_ptr<gloo::transport::UnboundBuffer> send, recv;
};

void bind_buffers(Gloo& self, const peer_task& task) {
  self.send = self.context->createUnboundBuffer(task.send, task.count * sizeof(float));
  self.recv = self.context->createUnboundBuffer(task.recv, task.count * sizeof(float));
}

void send_to(Gloo& self, int rank) {
  self.send->send(rank, 1);
  self.send->waitSend();
}
void receive_from(Gloo& self, int rank) {
  self.recv->recv(rank, 1);
  self.recv->waitRecv();
}

void point_to_point(Gloo& self, const peer_task& task) {
  if (task.kind == PEER_SENDRECV) {
    self.recv->recv((task.rank + task.ranks - 1) % task.ranks, 1);
    self.send->send((task.rank + 1) % task.ranks, 1);
    self.recv->waitRecv();
    self.send->waitSend();
  } else if (task.rank == 0) {
    send_to(self, 1);
    receive_from(self, 1);
  } else if (task.rank == 1) {
    receive_from(self, 0);
    send_to(self, 0);
  }
}

void once(Gloo& self, const peer_task& task, int root) {
  const auto sum = static_cast<void (*)(void*, const void*, const void*, size_t)>(gloo::sum<float>);
  const size_t blocks = task.block * static_cast<size_t>(task.ranks);
  const auto with = [&](auto options, size_t sent, size_t received) {
    options.setInput(task.send, sent);
    options.setOutput(task.recv, received);
    return options;
  };
  if (task.kind == PEER_ALLREDUCE) {
    auto options = with(gloo::AllreduceOptions(self.context), task.count, task.count);
    options.setReduceFunction(sum);
    gloo::allreduce(options);
  } else if (task.kind == PEER_REDUCE) {
    auto options = with(gloo::ReduceOptions(self.context), task.count, task.count);
    options.setRoot(root);
    options.setReduceFunction(sum);
    gloo::reduce(options);
  } else if (task.kind == PEER_ALLGATHER) {
    auto options = with(gloo::AllgatherOptions(self.context), task.block, blocks);
    gloo::allgather(options);
  } else if (task.kind == PEER_ALLTOALL) {
    auto options = with(gloo::AlltoallOptions(self.context), blocks, blocks);
    gloo::alltoall(options);
  } else if (task.kind == PEER_BROADCAST) {
    gloo::BroadcastOptions options(self.context);
    options.setOutput(task.recv, task.count);
    options.setRoot(root);
    gloo::broadcast(options);
  } else if (task.kind == PEER_BARRIER) {
    gloo::BarrierOptions options(self.context);
    gloo::barrier(options);
  } else {
    point_to_point(self, task);
  }
}

int supports(void*, peer_kind kind) {
  return kind != PEER_REDUCESCATTER;
}

void repeat(void* self, const peer_task* task, long turn, long count) {
  Gloo& gloo = *static_cast<Gloo*>(self);
  try {
    if (gloo.of != task->send) bind_buffers(gloo, *task);
    gloo.of = task->send;
    for (long i = 0; i < count; i++) once(gloo, *task, static_cast<int>((turn + i) % task->ranks));
  } catch (const std::exception& error) {
    fprintf(stderr, "rank %d: %s\n", task->rank, error.what());
    _exit(1);
  }
}

void release(void* self, void* memory, size_t bytes) {
  Gloo& gloo = *static_cast<Gloo*>(self);
  gloo.send.reset();
  gloo.recv.reset();
  gloo.of = nullptr;
  munmap(memory, bytes);
}

// Newer Gloos keep the store.
template <typename Context, typename Device>
auto connect_mesh(Context& context, const std::shared_ptr<RegionStore>& store, Device& device, int)
    -> decltype(context.connectFullMesh(store, device)) {
  context.connectFullMesh(store, device);
}
template <typename Context, typename Device>
void connect_mesh(Context& context, const std::shared_ptr<RegionStore>& store, Device& device,
                  long) {
  context.connectFullMesh(*store, device);
}

std::shared_ptr<gloo::rendezvous::Context> connect(peer_world& world) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  attributes.ai_family = AF_INET;
  auto context = std::make_shared<gloo::rendezvous::Context>(world.rank, world.ranks);
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  connect_mesh(*context, std::make_shared<RegionStore>(world), device, 0);
  return context;
}

}  // namespace

int main(int argc, char** argv) {
  peer_world world;
  if (!peer_parse(&world, argc, argv)) return 2;
  peer_fork(&world);
  world.threaded = 1;  // it has a thread a rank, so ranks are not bound to a core either
  Gloo self;
  try {
    self.context = connect(world);
  } catch (const std::exception& error) {
    fprintf(stderr, "rank %d: %s\n", world.rank, error.what());
    _exit(1);
  }
  const peer_driver driver = {&self, "Gloo", 0, supports, repeat, nullptr, nullptr, release};
  const int code = peer_serve(&world, &driver);
  fflush(nullptr);
  _exit(code);
}
