// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>

namespace fourfold::telemetry {

std::string duration_text(double seconds) {
  constexpr double longest_s = 1e12;  // beyond it nobody waits, and integers end
  if (!(seconds >= 0) || seconds > longest_s) {
    return "--";
  }
  if (seconds < 1) {
    return fmt::format("{:.0f}ms", seconds * 1e3);
  }
  if (seconds < 59.95) {
    return fmt::format("{:.1f}s", seconds);
  }
  const auto whole = std::llround(seconds);
  if (whole < 3600) {
    return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  }
  if (whole < 86400) {
    return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
  }
  return fmt::format("{}d{:02}h", whole / 86400, whole % 86400 / 3600);
}

std::string count_text(double count) {
  constexpr std::array<const char*, 6> factors{"", "k", "M", "G", "T", "P"};
  std::size_t factor = 0;
  while (std::abs(count) >= 999.5 && factor + 1 < factors.size()) {
    count /= 1000;
    ++factor;
  }
  const bool whole = factor == 0 && count == std::floor(count);
  const int digits = whole || std::abs(count) >= 99.95 ? 0 : std::abs(count) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", count, digits, factors[factor]);
}

std::string bytes_text(std::int64_t bytes) {
  const std::string count = count_text(bytes);
  const bool has_factor = !count.empty() && count.back() > '9';
  return has_factor ? fmt::format("{} {}B", count.substr(0, count.size() - 1), count.back())
                    : fmt::format("{} B", count);
}

std::string time_text(double unix_time_s) {
  constexpr double year_5000 = 1e11;
  if (!(std::abs(unix_time_s) < year_5000)) {
    return "?";
  }
  const auto time = static_cast<std::time_t>(unix_time_s);
  std::tm local{};
  std::array<char, 32> text{};
  if (::localtime_r(&time, &local) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local) == 0) {
    return "?";
  }
  return text.data();
}

}  // namespace fourfold::telemetry
