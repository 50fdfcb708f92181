// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace fourfold::device {

/// Bytes that this process and those beside it may still take: what the system has left, or less
/// where a control group (a container, a job) allows less. Nothing if nobody says.
/// @param root  of /proc and /sys
std::optional<std::int64_t> available_memory_bytes(const std::filesystem::path& root = "/");

/// Bytes of memory that the machine has. Nothing if nobody says.
std::optional<std::int64_t> total_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace fourfold::device
