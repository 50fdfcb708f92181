// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/io/own_file.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <string>
#include <system_error>
#include <thread>

namespace fourfold::io {

namespace {

constexpr std::size_t looked_at = 4096;

/// The beginning of a regular file; nothing when it cannot be read.
std::optional<std::string> beginning_of(const std::filesystem::path& path, Links links) {
  const RegularFile file = open_regular_file(path, O_RDONLY, links);
  if (!file.descriptor) {
    return std::nullopt;
  }
  std::string text(looked_at, '\0');
  const ssize_t got = ::pread(file.descriptor.get(), text.data(), looked_at, 0);
  if (got < 0) {
    return std::nullopt;
  }
  text.resize(got);
  return text;
}

/// As one of ours, and by nobody changed.
bool is_ours(const std::filesystem::path& path, const std::string& beginning, const OwnFile& own) {
  if (!begins_as(beginning, own)) {
    return false;
  }
  constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  return own.is_unchanged == nullptr ||
         own.is_unchanged(text_if_readable(followed(path), most_bytes).value_or(""));
}

bool is_there(const std::filesystem::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace

bool begins_as(std::string_view text, const OwnFile& own) {
  if (own.is_older != nullptr && own.is_older(text)) {
    return true;
  }
  if (!text.starts_with(own.opening)) {
    return false;
  }
  text.remove_prefix(own.opening.size());
  return own.is_anywhere ? text.find(own.mark) != std::string_view::npos
                         : text.starts_with(own.mark);
}

bool is_own_file(const std::filesystem::path& path, const OwnFile& own) {
  return begins_as(beginning_of(path, Links::follow).value_or(""), own);
}

void refuse_foreign_file(const std::filesystem::path& path, const OwnFile& own, Links links) {
  if (!is_there(path)) {
    return;
  }
  const auto beginning = beginning_of(path, links);
  if (beginning && (beginning->empty() || is_ours(path, *beginning, own))) {
    return;
  }
  if (beginning && begins_as(*beginning, own)) {
    throw UserError(ExitCode::config,
                    format_message("{}: was changed since `{}` made it, and would be replaced; "
                                   "choose another name, or move it away",
                                   path.string(), own.maker));
  }
  throw UserError(ExitCode::config,
                  format_message("{}: is there already, and not made by `{}` (which replaces only "
                                 "its own files); choose another name, or move it away",
                                 path.string(), own.maker));
}

void refuse_one_place_twice(std::span<const NamedOutput> outputs) {
  std::map<std::filesystem::path, const char*> seen;
  for (const NamedOutput& output : outputs) {
    if (output.path.empty()) {
      continue;
    }
    std::error_code ignored;
    const auto place =
        std::filesystem::weakly_canonical(std::filesystem::absolute(output.path, ignored), ignored);
    const auto [other, is_new] = seen.emplace(place, output.option);
    if (!is_new) {
      throw UserError(ExitCode::usage,
                      format_message("{} and {} both name {}; give each a file of its own",
                                     other->second, output.option, output.path.string()));
    }
  }
}

std::filesystem::path followed(const std::filesystem::path& output) {
  std::error_code failure;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(output, failure))) {
    return output;
  }
  std::filesystem::path target = std::filesystem::canonical(output, failure);
  return failure ? output : target;
}

void refuse_input_as_output(const std::filesystem::path& output,
                            std::span<const std::filesystem::path> inputs) {
  for (const std::filesystem::path& input : inputs) {
    std::error_code missing;
    if (std::filesystem::equivalent(output, input, missing)) {
      throw UserError(
          ExitCode::config,
          format_message(
              "{}: would be replaced, and is an input ({}); choose another name for the output",
              output.string(), input.string()));
    }
  }
}

namespace {

/// What holds a folder for longer is no preparation that gives its files their names: `flock FOLDER
/// COMMAND`, which may have started this very program, or a process that is stopped.
constexpr auto longest_wait = std::chrono::seconds(5);

}  // namespace

FileDescriptor lock_folder(const std::filesystem::path& folder) {
  FileDescriptor opened = open_folder(folder.empty() ? "." : folder, Links::follow);
  if (!opened && errno == EACCES) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: may be written, but not read, and so names in it cannot be "
                                   "made to last; give read access, or choose another folder",
                                   folder.empty() ? "." : folder.string()));
  }
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  while (opened && ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0 &&
         (errno == EWOULDBLOCK || errno == EINTR) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return opened;
}

}  // namespace fourfold::io
