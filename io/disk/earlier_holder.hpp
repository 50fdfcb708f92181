// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace fourfold::io {

/// For who has taken a directory over: an earlier holder that stood still may have this file open,
/// and what it still appends is to come to nobody's eyes. The file is replaced by one with the same
/// bytes. Nothing happens where there is none, or what is there is no regular file.
/// @throws UserError (cannot_write)
void leave_to_earlier_holder(const std::filesystem::path& file);

}  // namespace fourfold::io
