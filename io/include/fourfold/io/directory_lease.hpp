// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One job at a time in a directory, on file systems whose locks nobody trusts (NFS, Lustre without
/// -o flock): a file ".lease" that its holder makes by link(), which is atomic there, and keeps
/// counting up. Who finds one watches whether it still counts; clocks of machines are not compared.
///
/// Two at a time never believe to have it: its holder believes so until two beats after it saw that
/// the file was its own, and who takes it away from one that may live waits for longer than that.
///
/// What a process does that stood still between a look at its lease and a rename is fenced off: it
/// has a folder ".lease.d-<word>" of its own while it holds the lease, what AtomicFile, checkpoints
/// and their removal rename comes from there or goes there, and who takes the lease over takes that
/// folder away first. Such a rename fails then, and the lease is lost.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
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

struct LeaseOptions {
  std::chrono::milliseconds beat{5000};      ///< between counts
  std::chrono::milliseconds silence{30000};  ///< after which a lease counts as left behind
  bool has_links = true;  ///< false: as where the file system has no link(), by O_EXCL
  /// Of the file. What is kept apart in one directory has different ones.
  std::string name = ".lease";
  /// For the message to who finds another that lives: what that one does, and what to do.
  std::string doing = "is running here";
  std::string remedy =
      "and two jobs would overwrite each other; wait for it, or choose another directory";
  /// Who is known to be gone, or to have noticed, by another lease that it had left behind.
  std::optional<LeaseHolder> gone = {};
  /// Called before the lease is taken away from an earlier start of the same job or chain, which
  /// may live: what it throws leaves the lease as it is. That start must know who has it, when it
  /// notices.
  std::function<void()> before_overtaking = {};
  /// Until confirm(), what the directory was like comes back at the end: a lease that was left
  /// after, and no folders where there were none. For a start that may still be refused.
  bool provisional = false;
  /// A signal that ends the process gives the lease back, with what was under way below it. Where
  /// nobody would go on with that.
  bool gone_at_signal = false;
};

/// Local; one process of a job takes it for all. Not movable: a thread counts.
class DirectoryLease {
 public:
  /// Takes the lease of `directory`, which is made if it is missing. A lease left behind is taken
  /// over: at once when its holder was a process of this machine that is gone. An earlier start of
  /// the same job or chain has no right to it any more, but may live where its node's slurmd died:
  /// after two and a half beats. Else after watching it for `silence`. Both are said in the log.
  /// @throws UserError: config when another job holds it, naming that job, or when it cannot be
  ///   read all that time; cannot_write, as NoRoom where a full disk is the reason
  DirectoryLease(const std::filesystem::path& directory, const LeaseHolder& me,
                 const LeaseOptions& options = {});
  /// Gives it back. Of a provisional one that was never confirmed the directory shows nothing then.
  ~DirectoryLease();
  DirectoryLease(const DirectoryLease&) = delete;
  DirectoryLease& operator=(const DirectoryLease&) = delete;

  /// Ask before something is published: whether it is still this job's.
  /// @throws UserError when it is lost: no_progress to another process, which may have ended
  ///   since; cannot_write when its file is gone, and this process stood still for so long that
  ///   another may be about to take it, when this process has given it back itself, or when
  ///   the directory is no longer what has that name
  void check() const;
  /// Of a provisional one: what it was taken for begins now. What was left behind goes for good.
  void confirm();
  /// From whom it was taken over; nothing: nobody had it.
  const std::optional<LeaseHolder>& left_by() const noexcept;
  /// Whether give_back_provisional_leases() did that: nobody has taken it away. From any thread.
  bool was_given_back() const noexcept;
  /// Whether it still is, as far as the last beats tell: reads the file only when they are late.
  /// From any thread.
  bool is_held() const noexcept;

 private:
  friend void give_back_provisional_leases() noexcept;
  struct Impl;
  void no_longer_provisional() const;
  std::unique_ptr<Impl> impl_;
};

/// Gives back all leases of this process that are provisional and not confirmed, for an end of
/// which no destructor hears: the directories are as they were found. From any thread; whoever
/// holds one finds it lost.
void give_back_provisional_leases() noexcept;

/// Who holds it and is not known to be gone; nothing: nobody. Local; reads one file and waits for
/// nothing.
/// @param me  who asks, to know whose process numbers can be compared
std::optional<LeaseHolder> living_holder_of(const std::filesystem::path& directory,
                                            const LeaseHolder& me, const std::string& name);

}  // namespace fourfold::io
