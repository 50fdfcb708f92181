// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One job at a time in a directory, on file systems whose locks nobody trusts (NFS, Lustre without
/// -o flock): a file ".lease" that its holder makes by link(), which is atomic there, and keeps
/// counting up. Who finds one watches whether it still counts; clocks of machines are not compared.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace fourfold::io {

/// What a lease says about its holder.
struct LeaseHolder {
  std::string host;
  std::string processes = {};  ///< where its number means the same; empty: nowhere
  long pid = 0;
  std::string job;          ///< of the batch system, "1234"; empty: none
  long restarts = 0;        ///< of that job: an earlier start of it is dead
  std::string str() const;  ///< "job 1234 (process 77 on node3)"
};

struct LeaseOptions {
  std::chrono::milliseconds beat{5000};      ///< between counts
  std::chrono::milliseconds silence{30000};  ///< after which a lease counts as left behind
  bool has_links = true;  ///< false: as where the file system has no link(), by O_EXCL
};

/// Local; one process of a job takes it for all. Not movable: a thread counts.
class DirectoryLease {
 public:
  /// Takes the lease of `directory`, which is made if it is missing. A lease left behind is taken
  /// over: at once when its holder was a process of this machine that is gone, or an earlier start
  /// of the same job; else after watching it for `silence`, which is said in the log.
  /// @throws UserError: config when another job holds it, naming that job, or when it cannot be
  ///   read all that time; cannot_write
  DirectoryLease(const std::filesystem::path& directory, const LeaseHolder& me,
                 const LeaseOptions& options = {});
  /// Gives it back.
  ~DirectoryLease();
  DirectoryLease(const DirectoryLease&) = delete;
  DirectoryLease& operator=(const DirectoryLease&) = delete;

  /// Ask before something is published: whether it is still this job's.
  /// @throws UserError (cannot_write) when it is lost: this process stood still so long that
  ///   another took it for dead
  void check() const;

  /// This process, as SLURM_JOB_ID and SLURM_RESTART_COUNT tell its job.
  static LeaseHolder this_process();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Who holds the lease of a directory, if anybody seems to. Local; reads one file. A lease left
/// behind by a crash still shows.
std::string lease_holder_of(const std::filesystem::path& directory);

}  // namespace fourfold::io
