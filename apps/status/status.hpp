// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/batch/run_view.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fourfold::status_program {

struct Request {
  std::vector<std::string> runs = {};
  bool json = false;
  bool brief = false;                ///< one line per run
  std::string prometheus_file = {};  ///< empty: none
};

/// Prints and writes what is asked for. One run of several that cannot be looked at is said on
/// stderr, and the others are shown. @return the code to end with
/// @throws UserError: config where the only run cannot be looked at; cannot_write
ExitCode show(const Request& request);

/// What people read about a run, line by line. Text from its files has no control characters.
/// @param most_attempts  lines of the job chain: of more, the newest; 0: all
std::vector<std::string> page_of(const batch::RunView& view, std::size_t most_attempts = 0);

/// The same on one line: "runs/first: running, step 12 of 20000 (0.1%), loss 3.4121, 4h12m left".
std::string line_of(const batch::RunView& view);

/// All runs in Prometheus' text format (version 0.0.4), for the textfile collector of its
/// node_exporter: gauges named fourfold_run_*, in base units, each with the label run, the whole
/// path of log.dir. What is not known of a run has no sample.
std::string to_prometheus(std::span<const batch::RunView> views);

/// One JSON document of all runs; docs/run-directory.md has its keys.
std::string to_json(std::span<const batch::RunView> views);

/// The directory of a run by what a user calls it: that directory, its folder of checkpoints or a
/// step in it, or a run file.
/// @throws UserError (config) when it is none of them
std::filesystem::path log_dir_of_run(const std::string& run);

/// The runs that lie in a folder of runs, by name; else the folder itself. Warns of folders and
/// links beside them that are none.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

/// Shows the run until it is over: on a terminal a page that is drawn over itself, elsewhere a line
/// whenever state, checkpoint or the files that ask for something change, and at most once a minute
/// for a step alone.
/// @param chain  go on after an end after which another start makes sense
/// @return the code that the run ended with
ExitCode watch(const std::filesystem::path& log_dir, double interval_s, bool chain);

}  // namespace fourfold::status_program
