// SPDX-License-Identifier: Apache-2.0
// An operation that runs while its caller does something else, in the two ways that the library
// has. Made for one call and started again and again; destroyed when nothing is under way.
#pragma once

#include <memory>
#include <string_view>

#include "hcc-bench/call.h"

namespace hcomm::bench::overlap {

class Motion {
 public:
  virtual ~Motion() = default;
  virtual void start() = 0;
  // What the caller must do now and then for the operation to move.
  virtual void progress() = 0;
  virtual bool done() = 0;
  virtual void wait() = 0;
};

// progress: stream, plan. `layout` is kept by reference.
std::unique_ptr<Motion> make_motion(std::string_view progress, const Call& call,
                                    const Layout& layout, const Place& place);

}  // namespace hcomm::bench::overlap
