// SPDX-License-Identifier: Apache-2.0
// Groups: what a thread calls between hcommGroupStart and hcommGroupEnd, kept until the outermost
// end and then started together. One a thread. Private to api/.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/call.h"
#include "hcomm/hcomm.h"

namespace hcomm::api {

// A call with its arrays: for whatever runs after the caller's own have gone.
class KeptCall {
 public:
  KeptCall(const comm::Call& call, uint32_t ranks);
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;
  const comm::Call& call() const { return call_; }

 private:
  comm::Call call_;
  std::vector<size_t> arrays_[4];
};

class Group {
 public:
  struct Item {
    hcommComm_t comm;
    hcommStream_t stream;
    std::shared_ptr<KeptCall> call;
  };

  bool open() const { return depth_ > 0; }
  void start() { depth_++; }
  // True when this was the outermost end; what was kept is then the caller's.
  bool end(std::vector<Item>& items, std::vector<std::function<hcommResult_t()>>& setups);
  void drop();
  void add(Item item) { items_.push_back(std::move(item)); }
  // Joining and splitting: each runs in a thread of its own at the end.
  void add_setup(std::function<hcommResult_t()> setup) { setups_.push_back(std::move(setup)); }
  // A call inside was refused: the end returns it.
  void note(hcommResult_t result) {
    if (error_ == hcommSuccess) error_ = result;
  }
  hcommResult_t take_error();

 private:
  int depth_ = 0;
  std::vector<Item> items_;
  std::vector<std::function<hcommResult_t()>> setups_;
  hcommResult_t error_ = hcommSuccess;
};

Group& group();

}  // namespace hcomm::api
