// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/lease_file.hpp"
#include "disk/temporary.hpp"
#include "disk/work_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/event_file.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

namespace fourfold::io {
namespace {

[[noreturn]] void cannot_write_events(const std::filesystem::path& path, std::string_view call,
                                      int error_number) {
  throw UserError(ExitCode::cannot_write,
                  format_message("{}: TensorBoard events cannot be written ({}); check that the "
                                 "folder is yours to write and has room",
                                 path.string(), write_failure(path, call, error_number)));
}

/// Protocol buffers on the wire: a field is its number and wire type, then the value.
enum class Wire : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class T>
void put_little_endian(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.resize(out.size() + sizeof value);
  std::memcpy(out.data() + out.size() - sizeof value, &value, sizeof value);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
  }
  out += static_cast<char>(value);
}

void put_key(std::string& out, std::uint32_t field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<std::uint32_t>(wire));
}

void put_integer(std::string& out, std::uint32_t field, std::int64_t value) {
  put_key(out, field, Wire::varint);
  put_varint(out, value);
}

void put_double(std::string& out, std::uint32_t field, double value) {
  put_key(out, field, Wire::fixed64);
  put_little_endian(out, value);
}

void put_float(std::string& out, std::uint32_t field, double value) {
  put_key(out, field, Wire::fixed32);
  put_little_endian(out, static_cast<float>(value));
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

/// Event { 1 wall_time, 2 step, 3 file_version | 5 summary | 7 session_log }
std::string event(double wall_time_s, std::int64_t step, std::uint32_t what,
                  std::string_view contents) {
  std::string out;
  put_double(out, 1, wall_time_s);
  if (step != 0) {
    put_integer(out, 2, step);
  }
  put_bytes(out, what, contents);
  return out;
}

/// TFRecord's: rotated and shifted, so that the CRC of data that holds CRCs stays good.
std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/// The second that the name of an event file begins with; nothing: it is none.
std::optional<std::int64_t> second_in(const std::string& name) {
  std::int64_t second = 0;
  if (!name.starts_with(event_file_prefix)) {
    return std::nullopt;
  }
  const char* const begin = name.data() + event_file_prefix.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), second);
  return error == std::errc() && second >= 0 ? std::optional(second) : std::nullopt;
}

/// TensorBoard reads files in the order of their names, and what a START voids has to come before
/// it: two starts in one second, or on hosts whose clocks differ, are told apart by the next one.
std::int64_t second_after_others(const std::filesystem::path& directory, double wall_time_s) {
  auto second = static_cast<std::int64_t>(wall_time_s);
  constexpr std::int64_t longest_digits_end =
      9'999'999'999;  // names of other lengths sort elsewhere
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const auto other = second_in(entry.path().filename().string());
    if (other && *other >= second && *other < longest_digits_end) {
      second = *other + 1;
    }
  }
  return second;
}

/// Where an earlier holder of the directory may still append to the file of its own start, which
/// is the last one.
void leave_last_to_earlier_holder(const std::filesystem::path& directory) {
  const auto names = names_in(directory).value_or(std::vector<std::string>{});
  const auto last = std::find_if(names.rbegin(), names.rend(),
                                 [](const std::string& name) { return second_in(name); });
  if (last != names.rend()) {
    leave_to_earlier_holder(directory / *last);
  }
}

std::string name_of_next(const std::filesystem::path& directory, double wall_time_s) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) {
    std::strcpy(host.data(), "localhost");
  }
  return fmt::format("{}{}.{}.{}.0", event_file_prefix, second_after_others(directory, wall_time_s),
                     host.data(), ::getpid());
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& directory, std::int64_t first_step,
                     double wall_time_s) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) {
    cannot_write_events(directory, "mkdir", failure.value());
  }
  if (has_fenced_in(directory)) {
    leave_last_to_earlier_holder(directory);
  }
  path_ = directory / name_of_next(directory, wall_time_s);
  // Made where a lease is fenced: its START would void what another start has written since.
  Temporary made(temporary_sibling(work_folder_in(directory) / path_.filename()));
  file_.reset(
      ::open(made.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) {
    cannot_write_events(path_, "open", errno);
  }
  append_record(event(wall_time_s, 0, 3, "brain.Event:2"));
  std::string session_log;  // SessionLog { 1 status: START = 1 }
  put_integer(session_log, 1, 1);
  append_record(event(wall_time_s, first_step, 7, session_log));
  rename_path(made.path(), path_);
  made.keep();
}

void EventFile::add(std::int64_t step, double wall_time_s, std::span<const EventScalar> scalars) {
  std::string summary;  // Summary { repeated 1 Value { 1 tag, 2 simple_value } }
  for (const EventScalar& scalar : scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_float(value, 2, scalar.value);
    put_bytes(summary, 1, value);
  }
  append_record(event(wall_time_s, step, 5, summary));
}

void EventFile::append_record(const std::string& event) {
  std::string record;
  put_little_endian<std::uint64_t>(record, event.size());
  put_little_endian(record, masked_crc(record));
  record += event;
  put_little_endian(record, masked_crc(event));
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      cannot_write_events(path_, "write", written == 0 ? EIO : errno);
    }
    rest.remove_prefix(written);
  }
}

}  // namespace fourfold::io
