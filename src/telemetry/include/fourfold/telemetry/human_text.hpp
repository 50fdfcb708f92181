// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Numbers as people read them, for log lines and reports.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

namespace fourfold::telemetry {

/// "812ms", "41.0s", "3m05s", "4h12m", "2d04h"; "--" for what is not finite or negative.
std::string duration_text(double seconds);

/// Three digits and a factor: "153", "15.3k", "1.23M", "4.56G"; "nan" stays "nan".
std::string count_text(double count);
std::string count_text(std::integral auto count) {
  return count_text(static_cast<double>(count));
}

/// "12.3 MB" with powers of ten.
std::string bytes_text(std::int64_t bytes);

/// Local time, "2026-01-31 23:59:59".
std::string time_text(double unix_time_s);

}  // namespace fourfold::telemetry
