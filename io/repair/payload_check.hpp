// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "payload/payload_frame.hpp"
#include "payload/save_job.hpp"

#include <cstdint>
#include <functional>

namespace fourfold::io {

using OnRead = std::function<void(std::int64_t bytes)>;

/// CRC-32C of a whole file. @return what is wrong
Defect whole_crc(const InputFile& file, const OnRead& on_read, std::uint32_t& crc);

/// Reads a payload file of a job whole, each byte once: everything but its tensors must be what the
/// job makes there, byte for byte, and each chunk have the CRC that the file's table says.
/// @param written  out: as if this process had written the file
/// @return what is wrong, with the name of the file and, where it is known, of the tensor
Defect check_payload(const InputFile& file, const SaveJob& job, const PlannedFile& planned,
                     const OnRead& on_read, WrittenPayload& written);

}  // namespace fourfold::io
