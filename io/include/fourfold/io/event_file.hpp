// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/unique_handle.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::io {

/// What the names of event files begin with: TensorBoard finds them by it.
inline constexpr std::string_view event_file_prefix = "events.out.tfevents.";

/// One point of a curve.
struct EventScalar {
  std::string_view tag;  ///< "train/loss"; the part before the first '/' is TensorBoard's group
  double value = 0;      ///< the file keeps a float of it
};

/// A TensorBoard event file: a record of protobuf bytes per event, each with its length and masked
/// CRC-32C, written without protobuf. One process writes it; move-only; one thread per object.
///
/// Each start of a run opens a new file in the same folder. Its SessionLog START, with the step
/// from which this start makes its own, tells TensorBoard to drop what earlier files have from that
/// step on: also where the run begins again because the start before it was killed without a
/// checkpoint.
class EventFile {
 public:
  /// Creates "events.out.tfevents.<seconds>.<host>.<pid>.0" in `directory`, which is created
  /// where missing. The seconds are those of `wall_time_s`, or later so that the name sorts after
  /// all that are there: readers go by it. It appears with its START. Who has taken the directory
  /// over from another start (directory_lease.hpp) first replaces the last one there by a copy, so
  /// that what the other may still append comes nowhere.
  /// @param first_step  events with this step or later in older files are void; 0: all
  /// @param wall_time_s  seconds since 1970 of the first event
  /// @throws UserError (cannot_write)
  EventFile(const std::filesystem::path& directory, std::int64_t first_step, double wall_time_s);

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Appends one event with these scalars. What is written survives the death of the process, not
  /// of the machine. @throws UserError (cannot_write)
  void add(std::int64_t step, double wall_time_s, std::span<const EventScalar> scalars);

 private:
  void append_record(const std::string& event);

  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace fourfold::io
