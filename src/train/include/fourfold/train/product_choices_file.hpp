// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <string>

namespace fourfold::train {

/// train.product_choices: a file that keeps which way a device's library makes each product fastest
/// (kernels/product_choices.hpp). Without the key, and where there is one way each, this does
/// nothing; the latter is said. Collective.
class ProductChoicesFile {
 public:
  /// Rank 0 reads it, and from here on all ranks make products as it says and measure others. What
  /// other devices or library versions have left is passed over, which is said.
  /// @throws UserError (config, rank 0) when the file is there and no such file
  ProductChoicesFile(const runfile::RunConfig& config, comm::Communicator& world);

  /// Adds what ranks have measured, of several that measured the same the lowest one's; rank 0
  /// writes. Waits for the device. @throws UserError (rank 0) when the file cannot be written
  void write();

 private:
  comm::Communicator& world_;
  std::filesystem::path path_;  ///< empty: nothing to do
  std::string library_;
};

}  // namespace fourfold::train
