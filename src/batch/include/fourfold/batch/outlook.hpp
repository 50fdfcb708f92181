// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace fourfold::batch {

/// When a run will be done, against the end of its job.
struct Outlook {
  double finish_unix_s = 0;  ///< of a run that has stopped: if it went on now
  /// nothing: the end of the job is not known, or the job is over
  std::optional<bool> in_time = {};
  /// that are needed after this one: ceil(what is left at its end / its length); nothing: its
  /// length is not known. A length counts from the begin of the attempt to the end of the job.
  std::optional<std::int64_t> more_jobs = {};
};

struct OutlookFacts {
  double now_unix_s = 0;
  double remaining_s = 0;  ///< of training, from now on
  bool goes_on = true;
  std::optional<double> began_unix_s = {};     ///< of the newest attempt
  std::optional<double> deadline_unix_s = {};  ///< of its job
};

Outlook outlook(const OutlookFacts& facts);

}  // namespace fourfold::batch
