// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace fourfold::io {

/// The whole of a small file of another program. Links are followed.
/// @throws UserError: config when there is no such file, or it is no regular file;
///   data_corrupt when it cannot be read or has more than `limit` bytes
std::string text_of_file(const std::filesystem::path& path, std::uint64_t limit);

}  // namespace fourfold::io
