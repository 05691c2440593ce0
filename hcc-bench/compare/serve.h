// SPDX-License-Identifier: Apache-2.0
// `hcc-bench serve`: HCOMM's own driver of `hcc-bench compare`, over the harness that the peers'
// drivers use. Not for people: it is told what to do by the process that started it.
#pragma once

namespace hcomm::compare {

int serve(int argc, char** argv);  // the exit code

}  // namespace hcomm::compare
