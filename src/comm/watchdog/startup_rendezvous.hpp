// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch.hpp"
#include "startup_analysis.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace fourfold::comm {

/// What all processes of this start, and of no other, have in common: the batch system's numbers
/// for it, and the address of its mpiexec. Fit for a file name. "any" where there is nothing of the
/// kind.
/// @param parent  the command line of the process that started this one, words split by '\0'
std::string name_of_start(const std::string& parent);

/// Ranks of one host, this one among them, as its launcher tells; empty: it does not.
std::vector<int> ranks_beside(const Launch& launch);

/// Where ranks meet that have no MPI yet: a folder with a file of each, which is there only as long
/// as they need it. One rank's view.
class StartMeeting {
 public:
  /// Touches nothing.
  /// @param folder  that all ranks see
  /// @param name    name_of_start()
  StartMeeting(const std::filesystem::path& folder, const std::string& name, int rank);

  /// Whether anybody has come. Looks at one name; a link is no meeting.
  bool is_called() const;
  /// Says that this rank has come. Makes the folder, and what is above it.
  /// @return false: it cannot be written
  bool join(const Arrival& arrival) const;
  /// Whether a rank below this one has come. Looks at one name, where rank 0 has.
  /// @param most_age_s  what is that much older than this rank's own word an earlier start has left
  bool has_come_below(double most_age_s) const;
  /// Who has come.
  std::map<int, Arrival> arrivals(double most_age_s) const;
  /// Takes this rank's word back, and the folder with the last one.
  void leave() const;
  /// Removes all, of which nobody sees a part: who comes later finds no meeting, and not one that
  /// the ranks below it have not come to.
  void end() const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  bool is_of_now(int folder, const std::string& file, double most_age_s) const;

  std::filesystem::path folder_;
  int rank_;
};

}  // namespace fourfold::comm
