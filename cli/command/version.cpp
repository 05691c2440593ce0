// SPDX-License-Identifier: Apache-2.0
// hcc version: what is built and what is loaded.
#include "cli/version.h"

#include <fmt/format.h>
#include <hcomm/hcomm.h>

#include <CLI/CLI.hpp>

#include "base/config.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/options.h"
#include "datatype/kernels.h"

namespace hcomm::cli {

namespace {

constexpr std::string_view kTransports[] = {
#define HCOMM_TRANSPORT(name) #name,
#include "transport/transports.def"
#undef HCOMM_TRANSPORT
};

class Version : public Command {
 public:
  std::string_view name() const override { return "version"; }
  std::string_view summary() const override { return "what is built, and what is loaded"; }

  void describe(CLI::App& app) override {
    set_page(app, {.usage = "hcc version [-v] [--json]", .exits = kExits});
    add_switch(app, {"-v,--verbose", "", "how it was built, transports, kernels"}, verbose_);
    add_switch(app, {"--json", "", "as JSON"}, json_);
  }

  int run() override {
    int code = 0;
    if (hcommGetVersion(&code) != hcommSuccess)
      fail(Code::internal, "the library does not tell its version");
    const std::string library = version_code_text(code);
    const std::string header = version_code_text(HCOMM_VERSION_CODE);
    if (json_)
      print_json(library, header);
    else
      print_text(library, header);
    if (library == header) return kDone;
    complain(
        fmt::format("hcc: the library is {}, but hcc was built with the header of {}: another "
                    "libhcomm-core.so comes first (LD_LIBRARY_PATH?)",
                    library, header));
    return kProblem;
  }

 private:
  static std::string_view kernels() {
    select_kernels(Config::from_env().kernels);
    return kernels_in_force();
  }

  void print_text(const std::string& library, const std::string& header) const {
    fmt::print("{}\nlibhcomm-core {} (header {})\n", version_line("hcc"), library, header);
    if (!verbose_) return;
    const BuildFacts& facts = build_facts();
    fmt::print("compiler      {}, {}{}{}\n", facts.compiler, facts.type,
               facts.sanitize.empty() ? "" : ", sanitize=", facts.sanitize);
    fmt::print("transports    {}\nkernels       {}\n", fmt::join(kTransports, " "), kernels());
  }

  static void print_json(const std::string& library, const std::string& header) {
    const BuildFacts& facts = build_facts();
    Json json = document("hcc-version", 1);
    json["tool"] = facts.version;
    json["git"] = facts.git_hash.empty() ? Json(nullptr) : Json(facts.git_hash);
    json["library"] = library;
    json["header"] = header;
    json["compiler"] = facts.compiler;
    json["build_type"] = facts.type;
    json["sanitize"] = facts.sanitize.empty() ? Json(nullptr) : Json(facts.sanitize);
    json["transports"] = kTransports;
    json["kernels"] = kernels();
    fmt::print("{}", json_pretty(json));
  }

  bool verbose_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_version() {
  return std::make_unique<Version>();
}

}  // namespace hcomm::cli
