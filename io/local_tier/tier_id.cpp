// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "local_tier/tier_id.hpp"

#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "step/directory_names.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace fourfold::io {
namespace {

constexpr std::string_view name_of_kind = "fourfold-fast-level ";
constexpr std::string_view head = "fourfold-fast-level 1 ";
constexpr std::size_t word_digits = 16;
constexpr std::uint64_t most_bytes = 1 << 20;  ///< of what somebody may have put there instead

bool is_word(std::string_view text) {
  return text.size() == word_digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// What a directory has and no copy of it: "INODE BIRTH", the time in seconds, 0 where the file
/// system does not know it. An inode alone is soon given again, and another file system begins to
/// count where this one did.
std::string directory_mark(const std::filesystem::path& directory) {
  struct statx status {};
  if (::statx(AT_FDCWD, directory.c_str(), 0, STATX_INO | STATX_BTIME, &status) != 0) {
    throw UserError(ExitCode::config,
                    format_message("{}: cannot be looked at ({})", directory.string(),
                                   std::generic_category().message(errno)));
  }
  const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
  return fmt::format("{} {}.{:09}", status.stx_ino, has_birth ? status.stx_btime.tv_sec : 0,
                     has_birth ? status.stx_btime.tv_nsec : 0);
}

std::string text_of(std::string_view word, std::string_view mark) {
  return fmt::format("{}{} {}\n", head, word, mark);
}

/// What cannot be looked at counts nothing: this is for people.
std::uint64_t bytes_below(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code failure;
  std::filesystem::recursive_directory_iterator entry(folder, failure);
  for (; !failure && entry != std::filesystem::end(entry); entry.increment(failure)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) {
      const auto size = entry->file_size(ignored);
      bytes += ignored ? 0 : size;
    }
  }
  return bytes;
}

/// The word in what text_of() makes, of whatever mark; empty: it has not made the text.
std::string word_in(std::string_view text) {
  if (!text.starts_with(head) || !text.ends_with('\n')) {
    return {};
  }
  const std::string_view fields = text.substr(head.size(), text.size() - head.size() - 1);
  const std::string_view word = fields.substr(0, word_digits);
  const std::string_view mark = fields.substr(std::min(fields.size(), word_digits + 1));
  const bool is_mark =
      !mark.empty() && mark.find_first_not_of("0123456789. ") == std::string_view::npos;
  return is_word(word) && is_mark && fields[word_digits] == ' ' ? std::string(word) : "";
}

}  // namespace

std::string read_tier_id(const std::filesystem::path& checkpoint_directory) {
  const std::filesystem::path path = checkpoint_directory / tier_id_name;
  if (kind_of(path) == EntryKind::missing) {
    return {};
  }
  std::string text;
  if (const Defect defect = read_file(path, most_bytes, text)) {
    throw UserError(
        ExitCode::config,
        format_message("{}: {}, so nobody can tell which node-local steps this run has; check "
                       "its permissions and the file system and start again, or remove it "
                       "to do without them",
                       path.string(), *defect));
  }
  std::string word = word_in(text);
  if (!text.empty() && !text.starts_with(name_of_kind) && !name_of_kind.starts_with(text)) {
    throw UserError(ExitCode::config,
                    format_message("{}: is not a file that fourfold wrote (a run would write its "
                                   "own there); rename it, or choose another checkpoint.dir",
                                   path.string()));
  }
  if (word.empty()) {
    log::warning(format_message(
        "{}: is not what a run writes there; node-local steps that this run may have "
        "left are not looked at",
        path.string()));
    return {};
  }
  if (text != text_of(word, directory_mark(checkpoint_directory))) {
    log::warning(format_message(
        "{}: came with a copy of the checkpoints of a run; that run's node-local steps are "
        "its own, and not looked at",
        path.string()));
    return {};
  }
  return word;
}

void write_tier_id(const std::filesystem::path& checkpoint_directory, const std::string& word,
                   const std::function<void()>& ask) {
  AtomicFile file(checkpoint_directory / tier_id_name);
  file.write(text_of(word, directory_mark(checkpoint_directory)));
  file.publish(ask);
}

void remove_tier_id(const std::filesystem::path& checkpoint_directory,
                    const std::function<void()>& ask) {
  if (kind_of(checkpoint_directory / tier_id_name) == EntryKind::missing) {
    return;
  }
  const std::filesystem::path trash =
      work_folder_in(checkpoint_directory) / fmt::format("{}{}", trash_prefix, random_word());
  rename_path(checkpoint_directory / tier_id_name, trash, ask);
  remove_file(trash);
  sync_directory(checkpoint_directory);
}

void tell_of_other_local_steps(const std::filesystem::path& node_local_directory,
                               const std::string& word) {
  int folders = 0;
  std::uint64_t bytes = 0;
  for (const std::string& name :
       names_in(node_local_directory).value_or(std::vector<std::string>{})) {
    if (is_word(name) && name != word &&
        kind_of(node_local_directory / name) == EntryKind::directory) {
      ++folders;
      bytes += bytes_below(node_local_directory / name);
    }
  }
  if (folders > 0) {
    log::local(
        log::Level::info,
        format_message("{}: holds {} of node-local steps of other runs, or of this one before its "
                       "checkpoints were removed ({} folders), which are left alone; remove "
                       "them if nobody needs them",
                       node_local_directory.string(), bytes_text(bytes), folders));
  }
}

}  // namespace fourfold::io
