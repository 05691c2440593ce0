// SPDX-License-Identifier: Apache-2.0
#include "base/dynlib.h"

#include <dlfcn.h>

#include "base/error.h"

namespace hcomm {

DynLib::DynLib(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      reason_.clear();
      return;
    }
    const char* error = dlerror();
    if (!reason_.empty()) reason_ += "; ";
    reason_ += error != nullptr ? error : fmt::format("{}: cannot be loaded", name);
  }
}

void* DynLib::find(const char* symbol) const {
  if (!loaded()) fail(Code::unavailable, "{}", reason_);
  dlerror();
  void* address = dlsym(handle_, symbol);
  if (address == nullptr)
    fail(Code::unavailable, "{} has no function {}: another version than we know", name_, symbol);
  return address;
}

}  // namespace hcomm
