// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/runfile/saved_names.hpp>
#include <fourfold/train/saved_config.hpp>

namespace fourfold::train {

runfile::RunConfig saved_config(const io::Checkpoint& checkpoint) {
  return runfile::parse_saved_config(checkpoint.scalars().text(runfile::config_text_name),
                                     (checkpoint.path() / runfile::config_text_name).string());
}

}  // namespace fourfold::train
