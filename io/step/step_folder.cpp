// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step/step_folder.hpp"

#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "disk/work_folder.hpp"
#include "step/directory_names.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/fingerprint.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <tuple>

namespace fourfold::io {
namespace {

/// The manifest before it has its name.
const std::string unnamed = std::string(manifest_name) + ".tmp";

std::filesystem::path temporary_path(const std::filesystem::path& directory, std::int64_t step,
                                     std::string_view word) {
  return directory / fmt::format("{}{:09}-{}", temporary_prefix, step, word);
}

void check_room(const std::filesystem::path& directory, std::int64_t step, const Room& needed) {
  const auto lack = lack_of_room(needed, room_of(directory));
  if (lack) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: the checkpoint of step {} does not fit ({}); free some "
                                   "space or choose a folder on another file system",
                                   directory.string(), step, *lack));
  }
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

std::optional<std::string> lack_of_room(const Room& needed, const Room& free) {
  if (needed.bytes && free.bytes && *free.bytes < *needed.bytes) {
    return fmt::format("{} needed, {} free there", bytes_text(*needed.bytes),
                       bytes_text(*free.bytes));
  }
  if (needed.files && free.files && *free.files < *needed.files) {
    return fmt::format("{} files to be made, room for {} there (inodes)", *needed.files,
                       *free.files);
  }
  return std::nullopt;
}

TemporaryStep::TemporaryStep(const std::filesystem::path& directory, std::int64_t step,
                             const Room& needed)
    : directory_(directory), final_path_(directory / step_folder_name(step)) {
  make_directories(directory);
  check_room(directory, step, needed);
  path_ = temporary_path(work_folder_in(directory), step, random_word());
  make_directory(path_);  // when this throws there is no destructor, and nothing to remove
}

TemporaryStep::TemporaryStep(const std::filesystem::path& directory, std::int64_t step,
                             const Room& needed, std::string_view word, bool is_kept)
    : directory_(directory),
      final_path_(directory / step_folder_name(step)),
      path_(temporary_path(work_folder_in(directory), step, word)),
      kept_path_(is_kept ? temporary_path(directory, step, word) : std::filesystem::path()) {
  make_directories(directory);
  if (is_kept && kept_path_ != path_ && kind_of(kept_path_) == EntryKind::directory) {
    rename_path(kept_path_, path_);
  }
  if (kind_of(path_) != EntryKind::directory) {
    check_room(directory, step, needed);
    make_directory(path_);
  }
  for (const std::string& name : {std::string(index_name), std::string(manifest_name), unnamed}) {
    remove_file(path_ / name);  // an attempt that was killed while it committed
  }
}

TemporaryStep::~TemporaryStep() {
  if (path_.empty()) {
    return;
  }
  if (!kept_path_.empty()) {  // where it is not, the lease's end brings it there
    std::ignore = ::rename(path_.c_str(), kept_path_.c_str());
    return;
  }
  if (const Defect defect = remove_tree(path_)) {
    log::local(log::Level::warning, format_message("an unfinished checkpoint could not be removed "
                                                   "({}); the next job that saves here removes it",
                                                   *defect));
  }
}

void TemporaryStep::commit(std::string_view manifest_text, std::string_view index_bytes,
                           const AskLease& ask) {
  write_new_file(path_ / index_name, bytes_of(index_bytes));
  write_new_file(path_ / unnamed, bytes_of(manifest_text));
  rename_path(path_ / unnamed, path_ / manifest_name);
  sync_directory(path_);
  if (kind_of(final_path_) != EntryKind::missing) {
    cannot_write(final_path_, "rename", EEXIST);
  }
  rename_path(path_, final_path_, ask);
  path_.clear();
  sync_directory(directory_);
}

void replace_in_step(const std::filesystem::path& folder, std::int64_t step, std::string_view name,
                     std::string_view bytes, const AskLease& ask) {
  // A link may lead to another file system, which no rename crosses.
  const std::filesystem::path directory = std::filesystem::canonical(folder).parent_path();
  const std::filesystem::path path = temporary_path(work_folder_in(directory), step, random_word());
  const auto failure = comm::capture_failure([&] {
    OutputFile file = OutputFile::create(path, folder / name);
    file.write_at(0, bytes_of(bytes));
    file.sync();
    file.close();
    rename_path(path, folder / name, ask);
  });
  if (failure) {
    ::unlink(path.c_str());
    throw UserError(failure->code, failure->message);
  }
  sync_directory(folder);
  sync_directory(directory);
}

namespace {

std::string latest_line(std::int64_t step, std::string_view identity, std::string_view check) {
  return fmt::format("{} {} {}\n", step, identity, check);
}

}  // namespace

std::string latest_text(std::int64_t step, std::string_view identity,
                        std::string_view manifest_text) {
  return latest_line(step, identity, fmt::format("{:08x}", crc32c(bytes_of(manifest_text))));
}

void refuse_foreign_latest(const std::filesystem::path& directory) {
  constexpr std::uint64_t most_bytes = 256;
  constexpr std::size_t crc_digits = 8;
  const std::filesystem::path file = directory / latest_name;
  std::string text;
  const Defect defect = read_file(file, most_bytes, text);
  if (kind_of(file) == EntryKind::missing || (!defect && text.empty())) {
    return;
  }
  std::istringstream words(text);
  std::int64_t step = 0;
  std::string identity;
  std::string check;
  // By its shape: bits of our own may have flipped.
  if (defect || !(words >> step >> identity >> check) || step < 0 ||
      identity.size() != Fingerprint().str().size() || check.size() != crc_digits ||
      latest_line(step, identity, check) != text) {
    throw UserError(ExitCode::config,
                    format_message("{}: is not a file that fourfold wrote (a run would write its "
                                   "own there); rename it, or choose another checkpoint.dir",
                                   file.string()));
  }
}

void write_latest(const std::filesystem::path& directory, std::int64_t step,
                  std::string_view identity, std::string_view manifest_text, const AskLease& ask) {
  const std::string text = latest_text(step, identity, manifest_text);
  std::string present;
  if (!read_file(directory / latest_name, text.size(), present) && present == text) {
    return;
  }
  AtomicFile file(directory / latest_name);
  file.write(text);
  file.publish(ask);
}

std::filesystem::path set_aside(const std::filesystem::path& directory, std::int64_t step,
                                std::uint64_t looked_at, const AskLease& ask) {
  const std::filesystem::path folder = directory / step_folder_name(step);
  const std::string name = fmt::format("{}{:09}-{}", set_aside_prefix, step, random_word());
  const std::filesystem::path aside = directory / name;
  const std::filesystem::path on_its_way = work_folder_in(directory) / name;
  rename_path(folder, on_its_way, ask);
  if (number_of(on_its_way) != looked_at) {
    rename_path(on_its_way, folder);
    throw UserError(
        ExitCode::cannot_write,
        format_message("{}: another job has saved this step meanwhile (this process stood still so "
                       "long that it was taken for dead); nothing was changed",
                       folder.string()));
  }
  if (on_its_way != aside) {
    rename_path(on_its_way, aside, ask);
  }
  sync_directory(directory);
  return aside;
}

}  // namespace fourfold::io
