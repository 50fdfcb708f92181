// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

namespace fourfold::data {
namespace {

/// The first place that a search of patterns on this thread could not look into, with the reason:
/// glob(3) passes over it, and the search would find less.
thread_local std::string hidden_place;

void note_hidden(const char* place) {
  const int error_number = errno;
  if (error_number != ENOENT && error_number != ENOTDIR && hidden_place.empty()) {
    hidden_place = format_message("{} ({})", place, std::generic_category().message(error_number));
  }
  errno = error_number;
}

/// As glob(3) does by itself, but that failures are noted.
void look_by_our_own(glob_t& matches) {
  matches.gl_opendir = [](const char* name) -> void* {
    DIR* const folder = ::opendir(name);
    if (folder == nullptr) {
      note_hidden(name);
    }
    return folder;
  };
  matches.gl_readdir = [](void* folder) { return ::readdir(static_cast<DIR*>(folder)); };
  matches.gl_closedir = [](void* folder) { ::closedir(static_cast<DIR*>(folder)); };
  matches.gl_stat = [](const char* name, struct stat* status) {
    const int result = ::stat(name, status);
    if (result != 0) {
      note_hidden(name);
    }
    return result;
  };
  matches.gl_lstat = [](const char* name, struct stat* status) {
    const int result = ::lstat(name, status);
    if (result != 0) {
      note_hidden(name);
    }
    return result;
  };
}

/// Names that match `pattern`, in byte order; no file that is being written, or that a killed
/// program has left unfinished.
/// @throws UserError (config) where a place that may have some cannot be looked into
std::vector<std::string> names_like(const std::string& pattern) {
  glob_t matches = {};
  look_by_our_own(matches);
  hidden_place.clear();
  const int outcome = ::glob(pattern.c_str(), GLOB_ALTDIRFUNC, nullptr, &matches);
  const std::unique_ptr<glob_t, decltype([](glob_t* found) { ::globfree(found); })> guard(&matches);
  if (!hidden_place.empty()) {
    throw UserError(
        ExitCode::config,
        format_message("{}: files that match may lie in {}, which cannot be looked into; give "
                       "access to it, or name the files without a pattern that leads there",
                       pattern, hidden_place));
  }
  std::vector<std::string> names;
  if (outcome == 0) {
    names.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  std::erase_if(names, [](const std::string& name) {
    return io::name_of_temporary(std::filesystem::path(name).filename().string()).has_value();
  });
  std::sort(names.begin(), names.end());  // glob's own order follows the locale
  return names;
}

/// A pattern is of files, or, like a plain name, of prefixes.
std::vector<std::string> matches_of(const std::string& pattern) {
  std::vector<std::string> names = names_like(pattern);
  if (names.empty()) {
    names = names_like(pattern + ".bin");
  }
  if (names.empty()) {
    throw UserError(
        ExitCode::config,
        format_message("{}: no file matches this pattern; check [data] and the current folder",
                       pattern));
  }
  return names;
}

/// A file, or the prefix of a pair, by exactly this name.
bool is_there(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(name, ignored) || std::filesystem::exists(name + ".bin", ignored);
}

std::vector<io::TokenFile> open_all(std::span<const std::string> names) {
  std::vector<io::TokenFile> files;
  for (const std::string& name : expand_patterns(names)) {
    files.emplace_back(name);
  }
  return files;
}

std::vector<std::int64_t> begins_of(const std::vector<io::TokenFile>& files) {
  std::vector<std::int64_t> begins{0};
  for (const io::TokenFile& file : files) {
    begins.push_back(begins.back() + file.tokens());
  }
  return begins;
}

std::int64_t samples_of(std::int64_t tokens, std::int64_t context, const std::string& first_file) {
  FOURFOLD_EXPECT(context >= 1);
  if (tokens < 2) {
    throw UserError(ExitCode::config,
                    format_message("{}: the data set has {} token(s) (a sample needs an input and "
                                   "a target, so at least 2); prepare more text",
                                   first_file, tokens));
  }
  return (tokens - 1 + context - 1) / context;
}

}  // namespace

std::vector<std::string> expand_patterns(std::span<const std::string> names) {
  if (names.empty()) {
    throw UserError(ExitCode::config,
                    "no token files are named (there is nothing to read); give at least one file");
  }
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (name.find_first_of("*?[") == std::string::npos || is_there(name)) {
      files.push_back(name);
      continue;
    }
    if (name.find("**") != std::string::npos) {
      throw UserError(
          ExitCode::config,
          format_message("{}: ** means no more than * in a pattern (of folders at any depth there "
                         "is none); name one for each depth, as in [\"d/*.bin\", \"d/*/*.bin\"]",
                         name));
    }
    const std::vector<std::string> matches = matches_of(name);
    for (const std::string& match : matches) {
      // What prepare writes beside a .bin is not another token file.
      const std::filesystem::path bin = std::filesystem::path(match).replace_extension(".bin");
      const bool companion = (match.ends_with(".idx") || match.ends_with(".json")) &&
                             std::binary_search(matches.begin(), matches.end(), bin.string());
      if (!companion) {
        files.push_back(match);
      }
    }
  }
  return files;
}

TokenDataset::TokenDataset(std::span<const std::string> files, const Options& options)
    : options_(options),
      files_(open_all(files)),
      begins_(begins_of(files_)),
      tokens_(begins_.back()),
      samples_(samples_of(tokens_, options.context, files_.front().path().string())) {
  FOURFOLD_EXPECT(options.vocab >= 1 && options.vocab <= std::int64_t{1} << 31);
  for (const io::TokenFile& file : files_) {
    file.advise(options.order == Order::shuffled ? io::MappedFile::Access::random
                                                 : io::MappedFile::Access::sequential);
  }
}

std::int64_t TokenDataset::position(std::int64_t sample_number) const {
  FOURFOLD_EXPECT(sample_number >= 0);
  return options_.order == Order::shuffled
             ? shuffled_position(options_.seed, samples(), sample_number)
             : sample_number % samples();
}

template <class Visit>
void TokenDataset::for_each_piece(std::int64_t begin, std::int64_t count, Visit&& visit) const {
  // The file that holds `begin`: the last one that starts at or before it.
  auto file = std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1;
  while (count > 0) {
    const std::int64_t inside = begin - begins_[file];
    const std::int64_t piece = std::min(count, begins_[file + 1] - begin);
    visit(files_[file], Range{inside, piece});
    begin += piece;
    count -= piece;
    ++file;
  }
}

std::int64_t TokenDataset::fill(std::int64_t sample_number, std::span<std::int32_t> tokens,
                                std::span<std::int32_t> targets) const {
  FOURFOLD_EXPECT(std::ssize(tokens) == context() && std::ssize(targets) == context());
  const std::int64_t begin = position(sample_number) * context();
  const std::int64_t learned = std::min(context(), tokens_ - 1 - begin);
  std::int64_t done = 0;
  for_each_piece(begin, learned, [&](const io::TokenFile& file, Range piece) {
    file.read(piece.begin, tokens.subspan(done, piece.count), options_.vocab);
    done += piece.count;
  });
  // Targets are the inputs one later; only the last one has not been read yet.
  const std::size_t count = learned;
  std::copy(tokens.begin() + 1, tokens.begin() + learned, targets.begin());
  for_each_piece(begin + learned, 1, [&](const io::TokenFile& file, Range piece) {
    file.read(piece.begin, targets.subspan(count - 1, 1), options_.vocab);
  });
  std::fill(tokens.begin() + learned, tokens.end(), 0);
  std::fill(targets.begin() + learned, targets.end(), ignored_target);
  return learned;
}

void TokenDataset::prefetch(std::int64_t sample_number) const {
  const std::int64_t begin = position(sample_number) * context();
  for_each_piece(begin, std::min(context() + 1, tokens_ - begin),
                 [](const io::TokenFile& file, Range piece) { file.will_need(piece); });
}

}  // namespace fourfold::data
