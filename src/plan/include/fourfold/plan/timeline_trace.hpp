// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/timeline.hpp>

#include <span>
#include <string>
#include <string_view>

namespace fourfold::plan {

/// How every trace begins.
inline constexpr std::string_view timeline_trace_mark = R"({"otherData":{"made_by":"fourfold"},)";

/// Whether a trace begins as earlier versions wrote it, without the mark: by the names of its rows.
bool is_older_timeline_trace(std::string_view beginning);

/// Timelines in the trace event format (JSON) that Perfetto and chrome://tracing open: each
/// timeline is a process with a row per rank, so that a planned and a measured one lie under each
/// other on one axis of time. A compute action is a slice named as in the CSV (F3.1) with
/// micro_batch, chunk and slot as arguments; messages between ranks are arrows from the slice that
/// makes them to the one that needs them, and asynchronous slices where they take time. Spans have
/// a row of their own above each rank's. Collectives have operation, communicator, ranks, bytes and
/// busbw_gb_s (schedule::bus_gb_s()) as arguments.
std::string timeline_trace(std::span<const schedule::Timeline> timelines);

}  // namespace fourfold::plan
