// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_option.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

namespace fourfold::ckpt {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;
constexpr std::int64_t most_mib = std::int64_t{1} << 24;

/// Binary units; whole MiB.
std::optional<std::int64_t> mib_of(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  const std::string unit(rest, end);
  if (failure != std::errc() || number < 0 || number > most_mib) {
    return std::nullopt;
  }
  if (unit.empty() || unit == "M" || unit == "MiB") {
    return number;
  }
  return unit == "G" || unit == "GiB" ? std::optional(number * 1024) : std::nullopt;
}

}  // namespace

void add_memory_option(CLI::App& verb, std::int64_t& bytes, std::int64_t least_mib,
                       const char* meaning) {
  verb.add_option_function<std::string>(
          "--memory", [&bytes](const std::string& text) { bytes = *mib_of(text) * mib; }, meaning)
      ->check([least_mib](const std::string& text) {
        const auto wanted = mib_of(text);
        return wanted && *wanted >= least_mib
                   ? std::string()
                   : fmt::format("{} is no size from {}M on, like 256M or 2G", text, least_mib);
      })
      ->default_str(fmt::format("{}M", bytes / mib))
      ->type_name("SIZE");
}

}  // namespace fourfold::ckpt
