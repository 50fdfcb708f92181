// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Files whose names others can choose, or which lie where others can put something else: a pipe
/// would make a program wait for ever, a device would give without an end, a link would lead what
/// is written to another place. All that opens such a file opens it here.
#pragma once

#include <fourfold/base/unique_handle.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold {

/// What becomes of a symbolic link at the end of a path. Links of folders on the way are followed.
enum class Links : std::uint8_t {
  follow,  ///< for what users name: tokens, tokenizers, run files may be links
  refuse,  ///< for what lies in folders of ours under names of ours
};

/// A regular file that is open, or why it is not.
struct RegularFile {
  FileDescriptor descriptor;     ///< null: there is a defect
  std::uint64_t size_bytes = 0;  ///< when it was opened
  std::string defect;            ///< "is not a regular file (it is a pipe)", for after the name
  int error_number = 0;          ///< of open(2) or fstat(2); 0: it is no regular file, or a link
};

/// Opens without waiting and looks at what it has opened, so that nothing can be put in its place
/// between look and use. Thread-safe.
/// @param flags  of open(2): O_RDONLY, or O_RDWR | O_CREAT | O_APPEND, for example. O_TRUNC does
/// not
///               belong here: it would empty what is refused
RegularFile open_regular_file(const std::filesystem::path& path, int flags, Links links);

/// A folder that is open, whatever its name leads to from now on; null: it is none, cannot be
/// opened, or is a link that is not to be followed.
FileDescriptor open_folder(const std::filesystem::path& path, Links links);

/// open_regular_file() of a name in an open folder; a link is refused.
RegularFile open_regular_file_in(int folder, const std::string& name, int flags);

/// A file as it was when it was read.
struct FileBytes {
  std::filesystem::path path;
  std::string bytes;
};

/// Replaces `contents` by the whole of a regular file.
/// @return what is wrong, for after the name: it cannot be opened or read, is no regular file, or
///         has more than `most_bytes` bytes, of which none is read then
std::optional<std::string> read_regular_file(const std::filesystem::path& path, Links links,
                                             std::uint64_t most_bytes, std::string& contents);
/// The same of a file that is open.
std::optional<std::string> read_regular_file(const RegularFile& file, std::uint64_t most_bytes,
                                             std::string& contents);

/// Where a path of the user's leads, from anywhere: absolute, without ".", "..", or slashes at its
/// end. Links stay as they are written; but ".." means what is above the place that a link before
/// it leads to, so a path that has one is resolved as far as it exists. Local; asks the file system
/// only then. A path of which nobody can say where it leads comes back as it is.
std::filesystem::path whole_path(const std::filesystem::path& path);

/// Whether a path begins with a shell's word for a home, ~ or ~/, which nobody but a shell reads: a
/// folder of that name would be made.
bool begins_with_home(std::string_view path);
/// What a message says of one, after the name of what it was given for.
inline constexpr const char* home_is_a_shells =
    "begins with ~ (only a shell reads that as your home; here it would be a folder of that name); "
    "write the whole path, or ./~";

}  // namespace fourfold
