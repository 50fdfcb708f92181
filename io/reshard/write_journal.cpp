// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "reshard/write_journal.hpp"

#include <fourfold/io/digest.hpp>

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <span>

namespace fourfold::io {
namespace {

constexpr std::string_view prefix = "journal-";
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

/// Extent, digest (low, high), CRCs, and the CRC-32C of these four words.
using Record = std::array<std::uint64_t, 5>;

std::uint64_t check_of(const Record& record) {
  return crc32c(std::as_bytes(std::span(record).first(4)));
}

std::vector<std::string> journals_in(const std::filesystem::path& folder) {
  std::vector<std::string> journals;
  for (const std::string& name : names_in(folder).value_or(std::vector<std::string>{})) {
    if (name.starts_with(prefix)) {
      journals.push_back(name);
    }
  }
  return journals;
}

}  // namespace

WriteJournal::WriteJournal(const std::filesystem::path& folder, int process)
    : file_(OutputFile::open_or_create(folder / fmt::format("{}{}", prefix, process))) {
  InputFile before;
  if (!before.open(folder / fmt::format("{}{}", prefix, process))) {
    end_ = before.size_bytes() / sizeof(Record) * sizeof(Record);  // over a torn one
  }
}

void WriteJournal::note(const std::map<std::size_t, WrittenExtent>& extents) {
  std::vector<Record> records;
  for (const auto& [extent, written] : extents) {
    Record record{extent, written.digest.low, written.digest.high,
                  std::uint64_t{written.crc32c} << 32 | written.table_crc32c, 0};
    record[4] = check_of(record);
    records.push_back(record);
  }
  const auto bytes = std::as_bytes(std::span(records));
  file_.write_at(end_, bytes);
  file_.sync();
  end_ += bytes.size();
}

std::map<std::size_t, WrittenExtent> read_journals(const std::filesystem::path& folder,
                                                   std::size_t extents) {
  std::map<std::size_t, WrittenExtent> written;
  for (const std::string& name : journals_in(folder)) {
    std::string bytes;
    if (read_file(folder / name, most_bytes, bytes)) {
      continue;  // it is written anew then
    }
    for (std::size_t begin = 0; begin + sizeof(Record) <= bytes.size(); begin += sizeof(Record)) {
      Record record{};
      std::memcpy(record.data(), bytes.data() + begin, sizeof(Record));
      if (record[4] == check_of(record) && record[0] < extents) {
        written[record[0]] = {{record[1], record[2]},
                              static_cast<std::uint32_t>(record[3] >> 32),
                              static_cast<std::uint32_t>(record[3])};
      }
    }
  }
  return written;
}

void remove_journals(const std::filesystem::path& folder) {
  for (const std::string& name : journals_in(folder)) {
    remove_file(folder / name);
  }
}

}  // namespace fourfold::io
