// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/file_region.hpp"
#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "step/directory_names.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/directory_probe.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
/// Told apart from the probes of others in the same directory.
constexpr std::string_view own_prefix = "doctor-";

std::string name_of(const std::string& word) {
  return fmt::format("{}{}{}", probe_prefix, own_prefix, word);
}

/// Different bytes in every chunk, which no file system takes for a hole or for the one before.
std::vector<std::byte> chunk(std::uint64_t number) {
  std::vector<std::byte> bytes(chunk_bytes);
  std::uint64_t state = number * 0x9e3779b97f4a7c15U + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56U);
  }
  return bytes;
}

FileRegion write(const fs::path& path, std::uint64_t most_bytes, double most_s, double& write_s) {
  FileRegion written;
  OutputFile file = OutputFile::create(path);
  double spent_s = 0;
  do {
    const std::vector<std::byte> bytes = chunk(written.bytes / chunk_bytes);
    const double start_s = steady_time_s();
    file.write_at(written.bytes, bytes);
    spent_s += steady_time_s() - start_s;
    written.bytes += bytes.size();
    written.crc32c = crc32c(bytes, written.crc32c);
  } while (written.bytes + chunk_bytes <= most_bytes && spent_s < most_s);
  const double start_s = steady_time_s();
  file.sync();
  write_s = spent_s + (steady_time_s() - start_s);
  file.forget_pages();
  file.close();
  return written;
}

void read_back(const fs::path& path, const FileRegion& written) {
  InputFile file;
  Defect defect = file.open(path);
  std::uint32_t crc = 0;
  std::vector<std::byte> bytes(chunk_bytes);
  for (std::uint64_t at = 0; !defect && at < written.bytes; at += bytes.size()) {
    defect = file.read_at(at, bytes);
    crc = crc32c(bytes, crc);
  }
  if (!defect && crc != written.crc32c) {
    defect = "holds other bytes than were written";
  }
  if (defect) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: what was just written there {} (its file system or disk is "
                                   "not sound); choose another and tell the administrators",
                                   path.parent_path().string(), *defect));
  }
}

}  // namespace

DirectoryProbe probe_directory(const fs::path& directory, std::uint64_t most_bytes, double most_s) {
  const std::string name = name_of(ProbeFile::new_word());
  const Temporary first(directory / name);
  const Temporary second(directory / (name + "-renamed"));
  const Temporary third(directory / (name + "-linked"));
  DirectoryProbe probe;
  const FileRegion written = write(first.path(), most_bytes, most_s, probe.write_s);
  probe.bytes = written.bytes;
  const double start_s = steady_time_s();
  read_back(first.path(), written);
  probe.read_s = steady_time_s() - start_s;
  rename_path(first.path(), second.path());
  sync_directory(directory);
  probe.has_links = ::link(second.path().c_str(), third.path().c_str()) == 0;
  return probe;
}

Room room_of(const fs::path& directory) {
  return {.bytes = free_bytes(directory), .files = free_files(directory)};
}

ProbeFile::ProbeFile(const fs::path& directory, const std::string& word)
    : file_(std::make_unique<Temporary>(directory / name_of(word))) {
  write_new_file(file_->path(), std::as_bytes(std::span(word)));
}

ProbeFile::~ProbeFile() = default;

bool ProbeFile::is_seen(const fs::path& directory, const std::string& word) {
  std::string contents;
  return !read_file(directory / name_of(word), word.size(), contents) && contents == word;
}

std::string ProbeFile::new_word() {
  return random_word();
}

void remove_old_probes(const fs::path& directory) noexcept {
  const auto names = names_in(directory);
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    std::error_code failure;
    if (is_probe(name) && name.starts_with(fmt::format("{}{}", probe_prefix, own_prefix))) {
      const auto changed = fs::last_write_time(directory / name, failure);
      if (!failure && fs::file_time_type::clock::now() - changed > std::chrono::minutes(10)) {
        ::unlink((directory / name).c_str());
      }
    }
  }
}

}  // namespace fourfold::io
