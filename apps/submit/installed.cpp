// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "submission_check.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <system_error>

namespace fourfold::submit {
namespace {

namespace fs = std::filesystem;

/// The first of `candidates` below `start` that is there.
fs::path found(const fs::path& start, const std::array<const char*, 3>& candidates,
               const char* what) {
  std::error_code ignored;
  for (const char* candidate : candidates) {
    const fs::path path = (start / candidate).lexically_normal();
    if (fs::exists(path, ignored)) {
      return path;
    }
  }
  throw UserError(
      ExitCode::config,
      format_message("{} is not where this program is ({}); install fourfold whole: cmake "
                     "--install, or Spack",
                     what, start.string()));
}

}  // namespace

std::string Installed::functions() const {
  constexpr std::uint64_t most_bytes = 1 << 16;
  const std::string text = io::text_of_file(scripts / "elsewhere.bash", most_bytes);
  const std::size_t head = text.find("\n\n");
  return head == std::string::npos ? text : text.substr(head + 2);
}

Installed find_installed() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  // Programs are in libexec/fourfold, or all together in the build tree's bin.
  return {found(folder, {"fourfold", "../../bin/fourfold", "../bin/fourfold"}, "fourfold"),
          found(folder,
                {"../share/fourfold/slurm/train.sbatch", "../../share/fourfold/slurm/train.sbatch",
                 "../slurm/train.sbatch"},
                "share/fourfold/slurm/train.sbatch")
              .parent_path()};
}

}  // namespace fourfold::submit
