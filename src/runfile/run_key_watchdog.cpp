// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

namespace fourfold::runfile {
namespace {

RunField member(auto path) {
  return field(&RunConfig::watchdog, path);
}

}  // namespace

std::vector<RunKey> watchdog_keys() {
  return {
      {.name = "enabled",
       .field = member(&WatchdogConfig::enabled),
       .meaning = "Watch the ranks: a thread beside each tells two of them, over TCP, what it is "
                  "in. A run that hangs is ended with exit code 86, and hang.json in log.dir names "
                  "who hangs where."},
      {.name = "deadline_s",
       .field = member(&WatchdogConfig::deadline_s),
       .unit = "seconds",
       .meaning = "How long a rank may wait for others in one operation: longer than the slowest "
                  "thing that one rank does alone (a save to a slow file system).",
       .minimum = 2,
       .maximum = 86400},
      {.name = "silence_s",
       .field = member(&WatchdogConfig::silence_s),
       .unit = "seconds",
       .meaning = "How long a rank may give no sign of life, as one does that is stopped or whose "
                  "node is gone. After 8 s it is named in the log.",
       .minimum = 2,
       .maximum = 86400},
      {.name = "start_s",
       .field = member(&WatchdogConfig::start_s),
       .unit = "seconds",
       .meaning = "How long ranks may wait in MPI_Init for others to come. Those that wait then "
                  "meet in log.dir for a quarter of that time (at most 75 s), name who is missing "
                  "and end the run with exit code 86. 0: the start is not watched, and a signal "
                  "that comes in MPI_Init waits for its end.",
       .minimum = 0,
       .maximum = 86400},
  };
}

}  // namespace fourfold::runfile
