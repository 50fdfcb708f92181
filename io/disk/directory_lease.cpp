// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/at_signal.hpp"
#include "disk/file.hpp"
#include "disk/lease_file.hpp"
#include "disk/temporary.hpp"
#include "disk/work_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/made_folders.hpp>

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

}  // namespace

struct DirectoryLease::Impl {
  /// Those that are provisional and not confirmed. Its mutex is locked before `mutex` of one of
  /// them.
  static inline std::set<Impl*> provisional;
  static inline std::mutex provisional_mutex;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { give_back(); }

  fs::path path;
  Lease lease;
  LeaseOptions options;
  std::optional<OutputFile> file;
  std::optional<WorkFolder> work;
  /// When the file was seen to be ours, and whether it was seen not to be. Since the clock's epoch.
  std::atomic<Clock::rep> seen{0};
  std::atomic<bool> is_lost = false;
  std::atomic<bool> was_given_back = false;  ///< by this process, whose end was told from outside
  std::optional<LeaseHolder> left_by;
  fs::path aside;  ///< the lease that they left; empty: none, or it is gone for good
  std::optional<MadeFolders> made;      ///< the lease's folder, until it stays
  std::optional<FolderId> its_id;       ///< that one, however it is called by now
  bool is_elsewhere = false;            ///< it was seen not to be what has its name
  bool replaces_living = false;         ///< who had it before may not have noticed yet
  std::optional<LeaseHolder> taken_by;  ///< who has it then, if it was seen
  bool ends = false;
  std::mutex mutex;
  std::condition_variable wake;
  std::thread thread;
  std::optional<std::size_t> at_signal;  ///< where a signal handler finds it

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
    if (!make_file()) {
      return false;
    }
    if (!work->is_there()) {
      // Who gave the lease back has swept it before it was ours; or somebody has taken over since,
      // which is seen after the new one is there: who takes over later sweeps that.
      work.emplace(path.parent_path(), options.name, lease.word);
      if (word_in(path) != lease.word) {
        return false;
      }
    }
    if (options.gone_at_signal && !at_signal) {
      const fs::path directory =
          fs::absolute(path.parent_path().empty() ? "." : path.parent_path());
      at_signal = give_lease_back_at_signal(directory / work->path().filename(),
                                            directory / path.filename());
    }
    seen = now;
    return true;
  }

  bool make_file() {
    if (!work) {
      work.emplace(path.parent_path(), options.name, lease.word);
    }
    const fs::path own = path.string() + "-" + lease.word;
    const Temporary goes_again(own);  // should that fail it is swept later
    ::unlink(own.c_str());
    file.emplace(OutputFile::create(own));
    file->let_all_read();  // who may start here must see whether it is alive
    write();
    const Linked linked = options.has_links ? link_lease(own, path) : Linked::cannot;
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
  bool is_left_after(const Lease& found) {
    if (found.is_foreign) {
      throw UserError(ExitCode::config,
                      format_message("{}: is no lease that fourfold wrote (a run has its own "
                                     "there); rename it, or choose another directory",
                                     path.string()));
    }
    if (const EntryKind kind = kind_of(path);
        kind == EntryKind::directory || kind == EntryKind::other) {
      throw UserError(ExitCode::config,
                      format_message("{}: is a folder, a link, a pipe or a device (a lease is a "
                                     "file); remove it, or choose another directory",
                                     path.string()));
    }
    if (found.holder.is_gone_from_machine_of(lease.holder) || found.holder == options.gone) {
      return true;
    }
    if (lease.holder.replaces(found.holder)) {
      if (options.before_overtaking) {
        options.before_overtaking();
      }
      replaces_living = true;
      return true;
    }
    log::info(format_message(
        "{}: {} has the lease of this directory; watching for {} s whether it is alive",
        path.string(), found.holder.str(), std::chrono::duration<double>(options.silence).count()));
    const auto end = Clock::now() + options.silence;
    while (Clock::now() < end) {
      std::this_thread::sleep_for(std::min(options.beat, options.silence) / 4);
      const auto now = read_lease(path);
      if (!now || now->word != found.word) {
        return false;  // given back, or taken over: look again
      }
      if (found.holder.is_gone_from_machine_of(lease.holder)) {
        return true;
      }
      if (now->count != found.count) {
        throw UserError(
            ExitCode::config,
            format_message("{}: {} {} (its lease {} is alive), {}", path.parent_path().string(),
                           found.holder.str(), options.doing, path.string(), options.remedy));
      }
    }
    if (!found.unreadable.empty()) {
      throw UserError(ExitCode::config,
                      format_message("{}: {}, so that it does not show whether another job is "
                                     "running here; if none is, remove it",
                                     path.string(), found.unreadable));
    }
    log::warning(format_message("{}: the lease of {} is silent and is taken over",
                                path.parent_path().string(), found.holder.str()));
    return true;
  }

  static std::string word_in(const fs::path& file) {
    const auto found = read_lease(file);
    return found ? found->word : "";
  }

  void acquire() {
    while (!take()) {
      work.reset();  // who has the lease would take it for an earlier holder's
      const auto found = read_lease(path);
      if (found && is_left_after(*found)) {
        left_by = found->holder;
        if (!aside.empty()) {
          ::unlink(aside.c_str());  // of a holder before that one
        }
        aside = set_lease_aside(path, *found);
      }
    }
  }

  /// From here on no earlier holder changes anything there.
  void confirm() {
    is_lost = is_lost || !work->fence();  // check() says so
    if (!aside.empty()) {
      ::unlink(aside.c_str());  // should this fail it is swept later
      aside.clear();
    }
    if (made) {
      made->keep();
    }
  }

  /// Takes the file away, if it is ours, by a rename that fails where another has taken over.
  /// @return whether nobody has it now
  bool release() const {
    // A name that is swept, should this process end here. Who stood still before it had the lease
    // may have got it with its folder swept already.
    const fs::path folder = work->is_there() ? work->path() : path.parent_path();
    const fs::path ours = folder / (options.name + "-" + lease.word);
    if (word_in(path) != lease.word || ::rename(path.c_str(), ours.c_str()) != 0) {
      return kind_of(path) == EntryKind::missing;
    }
    const bool was_ours = word_in(ours) == lease.word;
    if (!was_ours) {
      std::ignore = ::link(ours.c_str(), path.c_str());  // back
    }
    ::unlink(ours.c_str());
    return was_ours;
  }

  /// Also of a lease that was never had.
  void give_back() {
    if (at_signal) {
      keep_at_signal(*at_signal);
      at_signal.reset();
    }
    const bool is_free = work ? release() : kind_of(path) == EntryKind::missing;
    if (!aside.empty()) {
      if (is_free) {
        // As it was; fails where there is one by now.
        std::ignore = ::link(aside.c_str(), path.c_str());
      }
      ::unlink(aside.c_str());
    }
    work.reset();
    made.reset();
  }

  /// After taking it away from one that may live.
  void wait_until_noticed() {
    const auto noticed = 2 * options.beat + options.beat / 2;
    log::warning(
        format_message("{}: took the lease of this directory from an earlier start of this run; "
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
      is_lost = is_lost || !work->is_there() || !is_fresh() || !take();
    } else if (now->unreadable.empty() && now->word != lease.word) {
      is_lost = true;
      taken_by = now->holder;
    } else if (now->unreadable.empty()) {
      seen = begin;
    }
    is_lost = is_lost || !work->is_there();
    is_elsewhere = is_elsewhere || (is_lost && id_of(path.parent_path()) != its_id);
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
  impl_->path = directory / options.name;
  impl_->lease = {.word = random_word(), .holder = me};
  impl_->options = options;
  impl_->made.emplace(directory);
  impl_->its_id = id_of(directory);
  impl_->acquire();
  if (!options.provisional) {
    impl_->confirm();
  } else {
    const std::scoped_lock lock(Impl::provisional_mutex);
    Impl::provisional.insert(impl_.get());
  }
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
  if (impl_->replaces_living) {
    impl_->wait_until_noticed();
  }
}

DirectoryLease::~DirectoryLease() {
  no_longer_provisional();
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->ends = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

void DirectoryLease::no_longer_provisional() const {
  const std::scoped_lock lock(Impl::provisional_mutex);
  Impl::provisional.erase(impl_.get());
}

void give_back_provisional_leases() noexcept {
  using Impl = DirectoryLease::Impl;
  const std::scoped_lock lock(Impl::provisional_mutex);
  for (Impl* const lease : Impl::provisional) {
    try {
      const std::scoped_lock its_lock(lease->mutex);
      lease->is_lost = true;
      lease->was_given_back = true;
      lease->give_back();
    } catch (const std::exception&) {  // the process ends: who comes next watches the lease
      continue;
    }
  }
  Impl::provisional.clear();
}

void DirectoryLease::confirm() {
  no_longer_provisional();
  const std::scoped_lock lock(impl_->mutex);
  impl_->confirm();
}

void DirectoryLease::check() const {
  const std::scoped_lock lock(impl_->mutex);
  if (impl_->keep()) {
    return;
  }
  const std::string directory = impl_->path.parent_path().string();
  if (impl_->was_given_back) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: the lease of this directory was given back, because this "
                                   "start is being ended; the rank that ended first says why",
                                   directory));
  }
  if (impl_->is_elsewhere) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: was removed, moved or replaced while this process wrote "
                                   "there, which writes nothing more; put it back as it was, then "
                                   "start again (without it the run would begin anew)",
                                   directory));
  }
  const auto& taken_by = impl_->taken_by;
  if (taken_by && taken_by->replaces(impl_->lease.holder)) {
    throw UserError(
        ExitCode::no_progress,
        format_message(
            "{}: {} is a later start of this run and goes on with it; this one writes nothing more",
            directory, taken_by->str()));
  }
  // Who takes over takes the work folder away, also one that has come and gone meanwhile.
  const bool was_taken = taken_by || !impl_->work || !impl_->work->is_there();
  throw UserError(was_taken ? ExitCode::no_progress : ExitCode::cannot_write,
                  format_message("{}: the lease of this directory is lost{}: this process stood "
                                 "still for longer than {} s; {}",
                                 directory,
                                 taken_by    ? " to " + taken_by->str()
                                 : was_taken ? " to another start, which has ended"
                                             : "",
                                 std::chrono::duration<double>(impl_->options.silence).count(),
                                 was_taken ? "it writes nothing more"
                                           : "start again when nobody else saves there"));
}

const std::optional<LeaseHolder>& DirectoryLease::left_by() const noexcept {
  return impl_->left_by;
}

bool DirectoryLease::was_given_back() const noexcept {
  return impl_->was_given_back;
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

std::optional<LeaseHolder> living_holder_of(const fs::path& directory, const LeaseHolder& me,
                                            const std::string& name) {
  const auto found = read_lease(directory / name);
  return found && !found->holder.is_gone_from_machine_of(me) ? std::optional(found->holder)
                                                             : std::nullopt;
}

}  // namespace fourfold::io
