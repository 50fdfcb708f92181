// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/earlier_holder.hpp"

#include "disk/file.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fourfold::io {

void leave_to_earlier_holder(const std::filesystem::path& file) {
  constexpr std::uint64_t part_bytes = std::uint64_t{1} << 20;
  InputFile before;
  if (before.open(file)) {
    return;
  }
  AtomicFile copy(file);
  std::vector<std::byte> part;
  for (std::uint64_t at = 0; at < before.size_bytes(); at += part.size()) {
    part.resize(std::min(part_bytes, before.size_bytes() - at));
    if (const Defect defect = before.read_at(at, part)) {
      throw UserError(ExitCode::cannot_write,
                      format_message("{}: {}; check the file system", file.string(), *defect));
    }
    copy.write(part);
  }
  copy.publish();
}

}  // namespace fourfold::io
