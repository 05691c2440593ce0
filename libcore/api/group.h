// SPDX-License-Identifier: Apache-2.0
// Groups: what a thread calls between hcommGroupStart and hcommGroupEnd, kept until the outermost
// end and then started together. One a thread. Private to api/.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/call.h"
#include "hcomm/hcomm.h"

namespace hcomm::api {

class Group {
 public:
  // A call with copies of its arrays: for whatever runs after the caller's own have gone.
  struct Item {
    Item(hcommComm_t comm, hcommStream_t stream, const comm::Call& call);
    hcommComm_t comm;
    hcommStream_t stream;
    comm::Call call;
    std::shared_ptr<const std::vector<size_t>> arrays[4];
  };

  // Joining, or splitting `parent`, whose turn it holds until it has run.
  struct Setup {
    hcommComm_t parent;
    std::function<hcommResult_t()> run;
  };
  // What an outermost end runs.
  struct Content {
    std::vector<Item> items;
    std::vector<Setup> setups;
    hcommResult_t error = hcommSuccess;  // of the first call inside that was refused
    std::string text;
  };

  bool open() const { return !starts_.empty(); }
  size_t depth() const { return starts_.size(); }
  void start() { starts_.push_back({content_.items.size(), content_.setups.size()}); }
  // The content when this was the outermost end.
  std::optional<Content> end();
  // Ends as well, without what was called since the start; hcommSuccess if it could have run.
  hcommResult_t cancel();
  void add(Item item) { content_.items.push_back(std::move(item)); }
  void reuse(std::vector<Item> memory) {  // of what has run, empty
    if (content_.items.empty()) content_.items = std::move(memory);
  }
  void add_setup(Setup setup) { content_.setups.push_back(std::move(setup)); }
  // Whoever waits for a turn of comm in this thread would wait for ever.
  bool splits(hcommComm_t comm) const;
  // A call inside was refused: the end returns it, with the text of now.
  void note(hcommResult_t result);

 private:
  struct Start {
    size_t items, setups;
  };
  std::vector<Start> starts_;
  Content content_;
};

Group& group();

}  // namespace hcomm::api
