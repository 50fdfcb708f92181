// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fourfold::io {

/// Who has a lease (directory_lease.hpp).
struct LeaseHolder {
  std::string host;
  std::string processes = {};  ///< where its number means the same; empty: nowhere
  long pid = 0;
  std::string job = {};    ///< of the batch system, "1234"; empty: none
  long restarts = 0;       ///< of that job
  long launch = 0;         ///< in that start of the job (BatchJob::launch)
  std::string chain = {};  ///< of jobs that follow each other; empty: none

  std::string str() const;  ///< "job 1234 (process 77 on node3)"
  /// Whether both are processes of one start of one job. Outside of jobs that is true of any two.
  bool is_of_start(const LeaseHolder& other) const {
    return job == other.job && restarts == other.restarts && launch == other.launch;
  }
  /// Whether the scheduler, or the job's own script, has given up `earlier`, dead or not, since it
  /// has started this one: a later start of the same job or a later launch in it, or a later job of
  /// the same chain.
  bool replaces(const LeaseHolder& earlier) const;
  /// Whether it is a process of the same machine as `me`, and gone. Asks the system.
  bool is_gone_from_machine_of(const LeaseHolder& me) const;
  /// This process, and its job as BatchJob::of_this_process() tells it.
  static LeaseHolder this_process();
  friend bool operator==(const LeaseHolder&, const LeaseHolder&) = default;
};

}  // namespace fourfold::io
