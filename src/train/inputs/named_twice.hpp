// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>

namespace fourfold::train {

/// Looks for token files that [data] names twice, by whatever name: device and inode tell. A
/// pattern of data.train that also catches a file of data.validation is refused, since nobody means
/// that: the loss of text that was trained on looks like that of new text. A file that is written
/// in both, or twice in one, is a warning of `effective`: to overfit on purpose, or to train on a
/// text more often, is done so. Files that are not there are passed over. Local.
/// @throws UserError (config) with the file, the pattern and both keys
void note_files_named_twice(runfile::EffectiveConfig& effective);

}  // namespace fourfold::train
