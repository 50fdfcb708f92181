// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Parts of report.html, each a piece of well-formed XML.
#pragma once

#include <fourfold/telemetry/report.hpp>

#include <span>
#include <string>

namespace fourfold::telemetry {

/// The style sheet of the page.
std::string report_style();

/// Name, how the run stands, and the numbers that matter most.
std::string report_summary(const ReportedRun& run);

/// One line per run with the same numbers.
std::string report_comparison(std::span<const ReportedRun> runs);

/// Loss, learning rate, gradient norm, tokens per second and step times of all runs.
std::string report_charts(std::span<const ReportedRun> runs);

/// Starts, evaluations, checkpoints, hosts and versions of one run, and its configuration.
std::string report_details(const ReportedRun& run);

}  // namespace fourfold::telemetry
