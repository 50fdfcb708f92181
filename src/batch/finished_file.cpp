// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/finished_file.hpp>
#include <fourfold/io/atomic_file.hpp>

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace fourfold::batch {

std::filesystem::path finished_file(const std::filesystem::path& log_dir) {
  return log_dir / "FINISHED";
}

void write_finished(const std::filesystem::path& log_dir, std::int64_t step) {
  io::AtomicFile file(finished_file(log_dir));
  file.write(fmt::format("step {}\n", step));
  file.publish();
}

bool is_finished(const std::filesystem::path& log_dir, std::int64_t steps) {
  std::ifstream file(finished_file(log_dir));
  std::string word;
  std::int64_t step = 0;
  if (!file) {
    return false;
  }
  return !(file >> word >> step) || word != "step" || step >= steps;
}

}  // namespace fourfold::batch
