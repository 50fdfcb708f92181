// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/work_folder.hpp"

#include "disk/file.hpp"
#include "disk/temporary.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;

std::mutex held_mutex;
std::vector<const WorkFolder*> held;  // of directories that are there

/// The newest. @pre holds held_mutex
const WorkFolder* held_in(const fs::path& directory) {
  if (held.empty()) {
    return nullptr;
  }
  const auto place = id_of(directory);
  const auto found = std::find_if(held.rbegin(), held.rend(),
                                  [&](const auto* one) { return one->place() == place; });
  return found == held.rend() ? nullptr : *found;
}

std::string prefix_of(std::string_view lease_name) {
  return fmt::format("{}.d-", lease_name);
}

}  // namespace

std::optional<FolderId> id_of(const fs::path& folder) {
  struct stat found {};
  return ::stat(folder.empty() ? "." : folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode)
             ? std::optional(FolderId(found.st_dev, found.st_ino))
             : std::nullopt;
}

WorkFolder::WorkFolder(fs::path directory, std::string_view lease_name, std::string_view word)
    : directory_(directory.empty() ? fs::path(".") : std::move(directory)),
      prefix_(prefix_of(lease_name)),
      given_back_prefix_(fmt::format("{}-", lease_name)),
      path_(directory_ / fmt::format("{}{}", prefix_, word)) {
  make_directory(path_);
  place_ = id_of(directory_);
  if (place_) {
    const std::scoped_lock lock(held_mutex);
    held.push_back(this);
  }
}

WorkFolder::~WorkFolder() {
  {
    const std::scoped_lock lock(held_mutex);
    std::erase(held, this);
  }
  empty(path_);
}

bool WorkFolder::is_there() const noexcept {
  return kind_of(path_) != EntryKind::missing;
}

/// A rename of a holder that was taken over may be on its way in the kernel or to a file server,
/// with the folder itself in hand rather than its name: only when the folder is empty and removed
/// is there nothing left for it to do.
void WorkFolder::empty(const fs::path& folder) const {
  constexpr int most_rounds = 100;  // what comes in meanwhile is one rename of one process
  for (int round = 0; round < most_rounds && ::rmdir(folder.c_str()) != 0 && errno != ENOENT;
       ++round) {
    for (const std::string& name : names_in(folder).value_or(std::vector<std::string>{})) {
      if (name.starts_with(given_back_prefix_) && ::unlink((folder / name).c_str()) == 0) {
        continue;  // whoever gives it back will not find it where it was
      }
      fs::path to = directory_ / name;
      if (kind_of(to) != EntryKind::missing) {
        to = directory_ / fmt::format("{}{}", trash_prefix, random_word());
      }
      std::ignore = ::rename((folder / name).c_str(), to.c_str());  // the next round sees
    }
  }
}

/// By a rename into the own folder, which fails when that is gone: who was taken over itself takes
/// nothing from who has the directory now.
bool WorkFolder::take_away(const std::string& name) {
  const fs::path taken = path_ / name;
  if (::rename((directory_ / name).c_str(), taken.c_str()) == 0) {
    empty(taken);
    return true;
  }
  if (errno == ENOENT) {
    return is_there();  // somebody else was faster, or the holder has given it back
  }
  // Another user's folder may only change its name.
  const int error_number = errno;
  const fs::path trash = directory_ / fmt::format("{}{}", trash_prefix, random_word());
  if (!is_there() || ::rename((directory_ / name).c_str(), trash.c_str()) != 0) {
    cannot_write(directory_ / name, "rename", error_number);
  }
  return true;
}

bool WorkFolder::fence() {
  std::set<std::string> done{path_.filename().string()};
  const auto next = [&]() -> std::optional<std::string> {
    const auto names = names_in(directory_).value_or(std::vector<std::string>{});
    const auto found = std::ranges::find_if(names, [&](const std::string& name) {
      return is_random_word_after(prefix_, name) && done.insert(name).second;
    });
    return found == names.end() ? std::nullopt : std::optional(*found);
  };
  // A folder that was taken away may hold those that its holder had taken away.
  for (auto name = next(); name; name = next()) {
    if (!take_away(*name)) {
      return false;
    }
    const std::scoped_lock lock(held_mutex);
    has_fenced_ = true;
  }
  return is_there();
}

fs::path work_folder_in(const fs::path& directory) {
  const std::scoped_lock lock(held_mutex);
  const WorkFolder* const found = held_in(directory);
  return found == nullptr ? directory : found->path();
}

bool has_fenced_in(const fs::path& directory) {
  const std::scoped_lock lock(held_mutex);
  const WorkFolder* const found = held_in(directory);
  return found != nullptr && found->has_fenced();
}

void refuse_fenced_off(const fs::path& file) {
  const std::scoped_lock lock(held_mutex);
  const WorkFolder* const found = held_in(file.parent_path());
  if (found != nullptr && !found->is_there()) {
    throw UserError(
        ExitCode::no_progress,
        format_message("{}: is not written (another start has taken the directory over); end this "
                       "one",
                       file.string()));
  }
}

bool is_work_folder_of_another(std::string_view name, std::string_view lease_name,
                               std::string_view word) {
  const std::string prefix = prefix_of(lease_name);
  return is_random_word_after(prefix, name) && name.substr(prefix.size()) != word;
}

}  // namespace fourfold::io
