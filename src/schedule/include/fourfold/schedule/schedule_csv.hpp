// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Schedules as text that people write: one line per rank, from the first, with no empty line
/// between them; cells between commas are its compute actions in order. F3 is the forward of
/// micro-batch 3, B3 its backward, I3 and W3 the input and weight halves of it; F3.1 is that of
/// chunk 1. Cells may be empty, so that columns can be steps of time. From # to the end of the line
/// is a comment; `# placement: vee` (or loop, which holds if nothing is said) tells where the
/// chunks lie. Slots, sends and receives follow from that.
#pragma once

#include <fourfold/schedule/schedule.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace fourfold::schedule {

/// The text of such a file, or nothing: it is not there, not yours to read, no regular file (a pipe
/// would block), or larger than any schedule can be.
std::optional<std::string> schedule_file_text(const std::string& path);

/// Reads, lowers and checks (check_schedule) a schedule. The text is not trusted.
/// @param file_name      for messages, and the schedule's name
/// @param stages         of the run (mesh.pp); 0: as many as the text has
/// @param micro_batches  of a step; 0: as many as the text has
/// @throws UserError (config) naming mesh.schedule, the file, line and column, and what to do
Schedule read_schedule_csv(std::string_view text, const std::string& file_name, int stages = 0,
                           int micro_batches = 0);

/// How every such text of ours begins.
inline constexpr std::string_view schedule_csv_mark =
    "# One line per rank. F forward, B backward, I and W its input and weight halves; ";

/// The compute actions as such a text, with comments that say how to read it.
std::string schedule_csv(const Schedule& schedule);

}  // namespace fourfold::schedule
