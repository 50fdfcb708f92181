// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/outlook.hpp>

#include <algorithm>
#include <cmath>

namespace fourfold::batch {

Outlook outlook(const OutlookFacts& facts) {
  constexpr double most_jobs = 1e9;
  Outlook result;
  result.finish_unix_s = facts.now_unix_s + facts.remaining_s;
  if (!facts.deadline_unix_s) {
    return result;
  }
  const double deadline_s = *facts.deadline_unix_s;
  // A job past its end does nothing more, whatever its files say.
  const double job_left_s = facts.goes_on ? std::max(deadline_s - facts.now_unix_s, 0.0) : 0;
  const double left_after_s = std::max(facts.remaining_s - job_left_s, 0.0);
  if (facts.goes_on) {
    result.in_time = left_after_s <= 0;
  }
  if (facts.began_unix_s && deadline_s > *facts.began_unix_s) {
    const double jobs = std::ceil(left_after_s / (deadline_s - *facts.began_unix_s));
    result.more_jobs = std::min(jobs, most_jobs);
  }
  return result;
}

}  // namespace fourfold::batch
