// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/kernels/matmul_tuning.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::train {

/// train.matmul_tuning_file: a file that keeps which way a device's library makes each product
/// fastest (kernels/matmul_tuning.hpp). Without the key, and where there is one way each, this does
/// nothing; the latter is said. Collective.
class MatmulTuningFile {
 public:
  /// Rank 0 reads it, and from here on all ranks make products as it says and measure others. What
  /// other devices or library versions have left is passed over, which is said.
  /// @throws UserError (config, rank 0) when the file is there and no such file
  MatmulTuningFile(const runfile::RunConfig& config, comm::Communicator& world);

  /// Adds what ranks have measured, of several that measured the same the lowest one's; rank 0
  /// writes. Waits for the device. @throws UserError (rank 0) when the file cannot be written
  void write();

 private:
  comm::Communicator& world_;
  std::filesystem::path path_;  ///< empty: nothing to do
  std::string library_;
};

// Product choices as text and in files.

struct LibraryTuning {
  std::string library;  ///< kernels::matmul_library()
  std::vector<kernels::MatmulTuning> choices;
  friend bool operator==(const LibraryTuning&, const LibraryTuning&) = default;
};

/// JSON that choices_from_json() reads.
std::string to_json(const LibraryTuning& choices);
/// Nothing when `text`, of whatever origin, is no such JSON.
std::optional<LibraryTuning> choices_from_json(std::string_view text);

/// Of the first one's library: the choices of all, by name; the first one's where several have one.
LibraryTuning merged(std::span<const LibraryTuning> all);

/// Nothing when there is no file. @throws UserError (config) when there is one of another kind
std::optional<LibraryTuning> read_matmul_tuning(const std::filesystem::path& path);
/// Leaves a file that says the same as it is. @throws UserError when it cannot be written
void write_matmul_tuning(const std::filesystem::path& path, const LibraryTuning& choices);

}  // namespace fourfold::train
