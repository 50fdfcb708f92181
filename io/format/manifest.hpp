// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"

#include <string>
#include <string_view>

namespace fourfold::io {

/// MANIFEST.json: the file whose presence and checksum make a folder a checkpoint. Its last member
/// is the CRC-32C of all bytes before the comma that ends the member before.
std::string manifest_text(const Manifest& manifest);

/// Whether the text is what somebody wrote: whole, and of its own CRC-32C. @return what is wrong
Defect manifest_damage(std::string_view text);

/// Checks the checksum first, then that everything is there, of its type and in range; nothing in
/// the text is believed before. @return what is wrong
Defect parse_manifest(std::string_view text, Manifest& manifest);

}  // namespace fourfold::io
