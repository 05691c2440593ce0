// SPDX-License-Identifier: Apache-2.0
// A shared library that is used where it is installed: vendors' libraries, PMIx. That it is missing
// is an answer with a reason, not an error. Loaded libraries stay for the life of the process, for
// they may have started threads.
#pragma once

#include <initializer_list>
#include <string>

namespace hcomm {

class DynLib {
 public:
  // Loads the first of `names` that can be loaded ("libpmix.so.2").
  explicit DynLib(std::initializer_list<const char*> names);

  bool loaded() const { return handle_ != nullptr; }
  // Why none was: "libfoo.so.1: cannot open shared object file".
  const std::string& reason() const { return reason_; }
  const std::string& name() const { return name_; }

  // The function `symbol`. Throws Error(unavailable) naming the library and what is missing in it.
  template <typename Function>
  Function* function(const char* symbol) const {
    return reinterpret_cast<Function*>(find(symbol));
  }

 private:
  void* find(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_, reason_;
};

}  // namespace hcomm
