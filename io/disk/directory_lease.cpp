// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/random_word.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/io/directory_lease.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t most_bytes = 4096;

/// The line of a lease file: "fourfold-lease 1 WORD HOST PROCESSES PID JOB RESTARTS COUNT".
struct Lease {
  std::string word;  ///< tells apart any two that were ever taken
  LeaseHolder holder;
  long count = 0;
  std::string unreadable = {};  ///< why; a lease that makes no sense is readable

  std::string text() const {
    const auto shown = [](const std::string& field) { return field.empty() ? "-" : field; };
    return fmt::format("fourfold-lease 1 {} {} {} {} {} {} {}\n", word, shown(holder.host),
                       shown(holder.processes), holder.pid, shown(holder.job), holder.restarts,
                       count);
  }
};

/// Nothing when there is none. One that cannot be read or understood is somebody's whom nobody
/// knows.
std::optional<Lease> read_lease(const fs::path& path) {
  std::string text;
  if (const Defect defect = read_file(path, most_bytes, text)) {
    return kind_of(path) == EntryKind::missing
               ? std::nullopt
               : std::optional(Lease{.word = {}, .holder = {}, .unreadable = *defect});
  }
  std::istringstream line(text);
  std::string magic;
  int version = 0;
  Lease lease;
  LeaseHolder& holder = lease.holder;
  line >> magic >> version >> lease.word >> holder.host >> holder.processes >> holder.pid >>
      holder.job >> holder.restarts >> lease.count;
  if (!line || magic != "fourfold-lease" || version != 1) {
    return Lease{.word = text, .holder = {}, .unreadable = {}};
  }
  for (std::string* field : {&holder.host, &holder.processes, &holder.job}) {
    *field = *field == "-" ? "" : *field;
  }
  return lease;
}

enum class Linked : std::uint8_t { yes, no, cannot };

/// Makes `path` a second name of a file of ours, or not: what link() answers may get lost on NFS,
/// but not how many names the file has.
Linked link_to(const fs::path& file, const fs::path& path) {
  const int result = ::link(file.c_str(), path.c_str());
  const int error_number = errno;
  struct stat status = {};
  if (::stat(file.c_str(), &status) == 0 && status.st_nlink == 2) {
    return Linked::yes;
  }
  if (result != 0 && (error_number == EPERM || error_number == EOPNOTSUPP ||
                      error_number == ENOSYS || error_number == EMLINK)) {
    return Linked::cannot;
  }
  // ENOENT: who has the lease sweeps what others of that name have left, and swept ours.
  if (result != 0 && error_number != EEXIST && error_number != ENOENT) {
    cannot_write(path, "link", error_number);
  }
  return Linked::no;
}

/// A name that goes at the end of a scope, however it ends. Should that fail it is swept later.
struct ForgottenName {
  explicit ForgottenName(const fs::path& name) : path(name) {}
  ForgottenName(const ForgottenName&) = delete;
  ForgottenName& operator=(const ForgottenName&) = delete;
  ~ForgottenName() { ::unlink(path.c_str()); }
  const fs::path& path;
};

/// Whether the holder is gone for sure, without watching.
bool is_gone(const LeaseHolder& holder, const LeaseHolder& me) {
  return holder.host == me.host && !holder.processes.empty() && holder.processes == me.processes &&
         holder.pid > 0 && holder.pid != me.pid && ::kill(static_cast<pid_t>(holder.pid), 0) != 0 &&
         errno == ESRCH;
}

/// Whether `me` is the start of a job for which the scheduler has given up the holder's, dead or
/// not.
bool is_replaced(const LeaseHolder& holder, const LeaseHolder& me) {
  return !holder.job.empty() && holder.job == me.job && holder.restarts < me.restarts;
}

/// Takes away a lease that was left behind, and no other: who else has judged so may have taken
/// its own by now. @throws UserError (cannot_write) where only its owner may
void take_away(const fs::path& path, const Lease& stale) {
  const fs::path aside = path.string() + "-" + random_word();
  if (::rename(path.c_str(), aside.c_str()) != 0) {
    if (errno == ENOENT || errno == ESTALE) {
      return;  // somebody was faster
    }
    throw UserError(
        ExitCode::cannot_write,
        fmt::format("{}: {} has left its lease of this directory behind, and it cannot "
                    "be taken away ({}); let its owner, or the directory's, remove it",
                    path.string(), stale.holder.str(), std::generic_category().message(errno)));
  }
  const auto got = read_lease(aside);
  if (got && got->word != stale.word) {
    link_to(aside, path);  // back; its holder would notice otherwise
  }
  ::unlink(aside.c_str());  // should this fail it is swept later
}

/// Process numbers mean the same where this is the same: in one PID namespace (containers of a node
/// may have one each, under one host name) until the machine is started anew.
std::string processes_of_this_place() {
  std::array<char, 64> name{};
  std::string boot;
  if (::readlink("/proc/self/ns/pid", name.data(), name.size() - 1) <= 0 ||
      !(std::ifstream("/proc/sys/kernel/random/boot_id") >> boot)) {
    return "";
  }
  return fmt::format("{},{}", name.data(), boot);
}

}  // namespace

std::string LeaseHolder::str() const {
  const std::string process = fmt::format("process {} on {}", pid, host.empty() ? "?" : host);
  return job.empty() ? process : fmt::format("job {} ({})", job, process);
}

struct DirectoryLease::Impl {
  fs::path path;
  Lease lease;
  LeaseOptions options;
  std::optional<OutputFile> file;
  /// When the file was seen to be ours, and whether it was seen not to be. Since the clock's epoch.
  std::atomic<Clock::rep> seen{0};
  std::atomic<bool> is_lost = false;
  std::optional<LeaseHolder> left_behind_by;
  bool replaces_living = false;  ///< who had it before may not have noticed yet
  std::string taken_by;          ///< who has it then
  bool ends = false;
  std::mutex mutex;
  std::condition_variable wake;
  std::thread thread;

  /// Into the file that is or was ours, under whatever name: never into another's.
  void write() {
    const std::string text = lease.text();
    file->write_at(0, std::as_bytes(std::span(text)));
    file->sync();
  }

  /// Whether it was seen to be ours so lately that nobody who has taken it believes so yet.
  bool is_fresh() const {
    return Clock::now().time_since_epoch().count() - seen <
           Clock::duration(2 * options.beat).count();
  }

  /// @return whether it is ours now
  bool take() {
    const auto now = Clock::now().time_since_epoch().count();
    if (make_file()) {
      seen = now;
      return true;
    }
    return false;
  }

  bool make_file() {
    const fs::path own = path.string() + "-" + lease.word;
    const ForgottenName forgets(own);
    ::unlink(own.c_str());
    file.emplace(OutputFile::create(own));
    file->let_all_read();  // who may start here must see whether it is alive
    write();
    const Linked linked = options.has_links ? link_to(own, path) : Linked::cannot;
    return linked == Linked::cannot ? take_exclusively() : linked == Linked::yes;
  }

  /// On a file system without links. There the file is empty for a moment, like one that makes no
  /// sense: it is watched all the same.
  bool take_exclusively() {
    try {
      file.emplace(OutputFile::create(path));
    } catch (const UserError&) {
      if (kind_of(path) == EntryKind::missing) {
        throw;
      }
      return false;
    }
    file->let_all_read();
    write();
    return true;
  }

  /// Watches one that is there. @return whether it was left behind
  bool is_left_behind(const Lease& found) {
    if (is_gone(found.holder, lease.holder) || found.holder == options.gone) {
      return true;
    }
    if (is_replaced(found.holder, lease.holder)) {
      replaces_living = true;
      return true;
    }
    log::info(fmt::format(
        "{}: {} has the lease of this directory; watching for {} s whether it is "
        "alive",
        path.string(), found.holder.str(), std::chrono::duration<double>(options.silence).count()));
    const auto end = Clock::now() + options.silence;
    while (Clock::now() < end) {
      std::this_thread::sleep_for(std::min(options.beat, options.silence) / 4);
      const auto now = read_lease(path);
      if (!now || now->word != found.word) {
        return false;  // given back, or taken over: look again
      }
      if (now->count != found.count) {
        throw UserError(
            ExitCode::config,
            fmt::format("{}: {} is running here (its lease {} is alive), and two jobs would "
                        "overwrite each other; wait for it, or choose another directory",
                        path.parent_path().string(), found.holder.str(), path.string()));
      }
    }
    if (!found.unreadable.empty()) {
      throw UserError(ExitCode::config,
                      fmt::format("{}: {}, so that it does not show whether another job is running "
                                  "here; if none is, remove it",
                                  path.string(), found.unreadable));
    }
    log::warning(fmt::format("{}: the lease of {} is silent and is taken over",
                             path.parent_path().string(), found.holder.str()));
    return true;
  }

  void acquire() {
    while (!take()) {
      const auto found = read_lease(path);
      if (found && is_left_behind(*found)) {
        left_behind_by = found->holder;
        take_away(path, *found);
      }
    }
  }

  /// Behind taking it away from one that may live.
  void wait_until_noticed() {
    const auto noticed = 2 * options.beat + options.beat / 2;
    log::warning(
        fmt::format("{}: took the lease of this directory from an earlier start of this job; "
                    "waiting for {} s, in which that one would notice",
                    path.string(), std::chrono::duration<double>(noticed).count()));
    std::this_thread::sleep_for(noticed);
  }

  /// Whether it is still ours. A server that does not answer decides nothing, and a file that
  /// somebody removed is made again: this process lives. Unless it stood still for so long that
  /// another may have taken over, saved, and given back. @pre holds mutex
  bool keep() {
    const auto begin = Clock::now().time_since_epoch().count();
    const auto now = read_lease(path);
    if (!now) {
      is_lost = is_lost || !is_fresh() || !take();
    } else if (now->unreadable.empty() && now->word != lease.word) {
      is_lost = true;
      taken_by = now->holder.str();
    } else if (now->unreadable.empty()) {
      seen = begin;
    }
    return !is_lost;
  }

  /// One count more, if the lease is still ours.
  void beat() {
    try {
      if (!keep()) {
        return;
      }
      ++lease.count;
      write();
    } catch (const UserError&) {  // a full disk, a server that is away: silence, if it lasts
    }
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, options.beat, [this] { return ends; })) {
      beat();
    }
  }
};

DirectoryLease::DirectoryLease(const fs::path& directory, const LeaseHolder& me,
                               const LeaseOptions& options)
    : impl_(std::make_unique<Impl>()) {
  make_directories(directory);
  impl_->path = directory / options.name;
  impl_->lease = {.word = random_word(), .holder = me};
  impl_->options = options;
  impl_->acquire();
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
  if (impl_->replaces_living) {
    impl_->wait_until_noticed();
  }
}

DirectoryLease::~DirectoryLease() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->ends = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
  const auto now = read_lease(impl_->path);
  if (now && now->word == impl_->lease.word) {
    ::unlink(impl_->path.c_str());  // should this fail, the next job finds nobody counting
  }
}

void DirectoryLease::check() const {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->keep()) {
    throw UserError(
        ExitCode::cannot_write,
        fmt::format(
            "{}: the lease of this directory is lost{}: this process stood still for longer "
            "than {} s; start again when nobody else saves there",
            impl_->path.parent_path().string(),
            impl_->taken_by.empty() ? "" : " to " + impl_->taken_by,
            std::chrono::duration<double>(impl_->options.silence).count()));
  }
}

const std::optional<LeaseHolder>& DirectoryLease::left_behind_by() const noexcept {
  return impl_->left_behind_by;
}

bool DirectoryLease::is_held() const noexcept {
  if (impl_->is_lost || impl_->is_fresh()) {
    return !impl_->is_lost;
  }
  try {
    const std::scoped_lock lock(impl_->mutex);
    return impl_->keep();
  } catch (const std::exception&) {  // nobody can have it whose file cannot be made
    return true;
  }
}

LeaseHolder DirectoryLease::this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const char* const job = std::getenv("SLURM_JOB_ID");
  const char* const restarts = std::getenv("SLURM_RESTART_COUNT");
  return {.host = host.data(),
          .processes = processes_of_this_place(),
          .pid = ::getpid(),
          .job = job == nullptr ? "" : job,
          .restarts = restarts == nullptr ? 0 : std::atol(restarts)};
}

std::string lease_holder_of(const fs::path& directory) {
  const auto found = read_lease(directory / LeaseOptions{}.name);
  return found ? found->holder.str() : "";
}

std::optional<LeaseHolder> living_holder_of(const fs::path& directory, const LeaseHolder& me,
                                            const std::string& name) {
  const auto found = read_lease(directory / name);
  return found && !is_gone(found->holder, me) ? std::optional(found->holder) : std::nullopt;
}

}  // namespace fourfold::io
