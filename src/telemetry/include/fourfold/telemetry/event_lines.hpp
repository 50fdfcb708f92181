// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Files that grow by a line of JSON per event, {"event":NAME,"time":SECONDS,...}: metrics.jsonl
/// (MetricsFile) and attempts.jsonl (batch::AttemptLog). Other programs write such lines, too: here
/// is what tells them apart.
#pragma once

#include <string_view>

namespace fourfold::telemetry {

/// Whether the beginning of a file is of lines of ours: its first line is an event with the keys
/// that every version has written for it. A full disk, a kill or a crash may have left less: blank
/// bytes (NULs, too) are passed over, and of a line that was cut, what is left counts.
bool begins_with_events(std::string_view head);

}  // namespace fourfold::telemetry
