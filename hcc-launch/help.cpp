// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "cli/text.h"

namespace hcomm::launch {

namespace {

constexpr Topic kTopics[] = {
    {"bind", "Binding to cores",
     R"(Ranks may use the cores that hcc-launch itself may use: the affinity mask that it
inherits, a container's set of cores included. Nothing outside of it is ever used. Without
--bind-to the mask stays as it is.

core and numa follow one rule for every number of ranks: the cores (or NUMA nodes) of the
mask are dealt out in equal consecutive shares, so 2 ranks on 8 cores get 4 each. With
more ranks than cores, neighbours share a core and a warning says so.

list:0-3;4-7 gives rank 0 cores 0 to 3 and rank 1 cores 4 to 7; a rank without a set, or a
core outside of the mask, is refused.

--show-bindings prints, for each rank, what sched_getaffinity returned after its program
was executed; a line that differs from what was asked for is marked. Memory is not bound:
it comes from the node of the core that first touches it.)"},
    {"ending", "How a job ends",
     R"(The job ends well when all its ranks exit with 0. When a rank fails (another code, or a
signal), the others are told to end with SIGTERM, and after the grace time by SIGKILL; so
is whatever the ranks started, in any session or process group. With --keep-going the
others run on. Ranks that end because they were told to (by SIGTERM or SIGKILL, or with
code 143 or 137) are not counted as failed; one that crashes meanwhile, or exits with a
code of its own, is. --timeout is for ranks that run: once all have ended, their output
may take its time.

The exit code is that of the first rank that failed: its own code, or 128 + its signal.
124: --timeout was reached, or a rank ended before init while the others wait for it in
init. 125: hcc-launch itself failed, or could not prepare a rank. 126: the program was
found but cannot be executed. 127: it was not found. 2: the command line is wrong, or
names a folder or file that is not there.

INT, TERM, HUP, QUIT, USR1, USR2, CONT and TSTP are passed on to the ranks. After INT,
TERM or HUP the grace time runs; a second INT is SIGKILL for all. The exit code is then
the first code other than 0 that a rank ends with; a rank that needed SIGKILL counts as
ended by the signal.

Should hcc-launch be killed, even by SIGKILL and with its whole process group, nothing of
the job survives it: it runs as three processes, hcc-launch, hcc-guard and hcc-agent, that
watch one another, and any one of them that is left ends the job.

Processes that outlive the last rank have one second to end by themselves; then they are
ended like ranks.)"},
    {"env", "Environment and arguments",
     R"(Ranks have the environment and the arguments of hcc-launch byte for byte; no shell reads
them. --unset is applied first, then --env-file, then -x; of several -x of one name the
last counts. -x NAME and -x 'P*' say that variables are to be passed on to every host; one
that is not set is warned of. An --env-file has lines NAME=VALUE, taken as they are; blank
lines and lines that begin with # are skipped.

hcc-launch sets HCOMM_RANK, HCOMM_SIZE, HCOMM_LOCAL_RANK, HCOMM_LOCAL_SIZE, HCOMM_JOB_ID,
HCOMM_SECRET (of this job alone), HCOMM_ROOT (where rank 0 listens), HCOMM_ROOT_FD (for
rank 0: the socket that already listens there) and HCOMM_RECORDER_FD (memory that the
failure report is read from).

A program name without / is searched for in the PATH of its ranks; one with / is relative
to --wdir.)"},
    {"mpmd", "Several programs",
     R"(A lone : separates programs of one job: hcc-launch -n 2 a : -n 1 b gives a ranks 0 and 1,
and b rank 2. -n, --wdir, -x, --env-file and --unset belong to the program that they stand
before; all other options stand before the first program. After -- nothing is read as an
option or as a separator any more.)"},
    {"output", "Output",
     R"(Standard output and standard error stay apart. A line is never mixed with another rank's;
labels ([3] or [host:3]) and times stand only at the begin of a line. An unfinished line
is shown after 200 ms; if another rank writes meanwhile, the line is broken and its rest
begins with a + behind the label: [3]+.

--label auto labels only on a terminal, from the moment a second rank writes to it; files
and pipes get the lines as they are. A job of one rank without labels passes through
untouched, byte for byte.

On a terminal, where several ranks write, the states of a progress bar (text between
carriage returns) replace one another in the rank's own line, five times a second. In
files and pipes carriage returns are kept.

Output is read at the pace at which it is taken; ranks wait in their writes meanwhile,
nothing is dropped.

In --output-pattern %h is the host, %R the rank, %r the rank on its host, %j the job, %s
out or err, %% a percent sign. Without %s, standard error goes to the same name with .err
in place of .out. Files have no labels. With --tee the output is shown as well.)"},
    {"report", "The failure report",
     R"(When a rank failed, a box on standard error tells which one was first, its host and
process, the signal by name, where its core file is, the last 20 lines that it wrote to
standard error, its last HCOMM operation and the rank that it waits for; then which ranks
failed by themselves and which were ended by hcc-launch. When the job was ended by a
signal (^C) or by a time limit, it tells for each rank what it was at: its last operation,
and the rank that it waits for. With --quiet it is one line.

--report FILE writes the same as JSON (schema hcomm.launch.report), also for a job that
ended well. The file is opened before the job starts and written when all else is done.)"},
    {"stdin", "Standard input",
     R"(One rank, 0 unless --stdin names another, has the standard input of hcc-launch itself: a
file, a pipe or the terminal. So it is read only if that rank reads it, and exactly as
far. The others read end of file, as do all with --stdin none.

--stdin all copies it to every rank, at the pace of the slowest; a rank that closes its
end is left out. From a terminal it is read only in the foreground.)"},
};

}  // namespace

std::span<const Topic> topics() {
  return kTopics;
}

std::string topic_names() {
  std::vector<std::string_view> names;
  for (const Topic& topic : kTopics) names.push_back(topic.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

cli::Page help_page() {
  cli::Page page;
  page.usage = "hcc-launch [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS]]...";
  page.examples = {
      {"hcc-launch -n 8 hcc-bench allreduce --sizes 1K:1G", "eight processes on this host"},
      {"hcc-launch -n 4 --bind-to core --label rank --timeout 10m ./train",
       "bound, labelled, ended after ten minutes"},
  };
  page.environment =
      "PATH finds programs; NO_COLOR and TERM as usual. What ranks get: hcc-launch --help env.";
  page.exits =
      "the code of the first rank that failed, or 128 + its signal; 124 time-out; 125 hcc-launch "
      "failed; 126 cannot be executed; 127 not found; 2 usage";
  page.see_also = "hcc(1), hcc-bench(1), hcomm(7)";
  return page;
}

std::string help_topic(std::string_view name) {
  std::vector<std::string> known;
  for (const Topic& topic : kTopics) {
    known.emplace_back(topic.name);
    if (topic.name != name) continue;
    std::string text(topic.title);
    text += '\n';
    for (std::string_view rest = topic.text; !rest.empty();) {
      const size_t end = std::min(rest.find("\n\n"), rest.size());
      text += '\n';
      std::string paragraph(rest.substr(0, end));
      std::replace(paragraph.begin(), paragraph.end(), '\n', ' ');
      for (const std::string& line : cli::wrap(paragraph, 78)) text += line + "\n";
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    return text;
  }
  fail(Code::invalid_argument, "--help {}: no such topic{}; there are {}", name,
       cli::did_you_mean(name, known), topic_names());
}

}  // namespace hcomm::launch
