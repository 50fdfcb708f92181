// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/run_view.hpp>

#include <span>
#include <string>

namespace fourfold::status_program {

/// All runs in Prometheus' text format (version 0.0.4), for the textfile collector of its
/// node_exporter: gauges named fourfold_run_*, in base units, each with the label run, the whole
/// path of log.dir. What is not known of a run has no sample.
std::string to_prometheus(std::span<const batch::RunView> views);

}  // namespace fourfold::status_program
