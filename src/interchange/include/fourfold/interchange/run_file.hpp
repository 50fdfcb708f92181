// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/model/architecture.hpp>

#include <filesystem>
#include <string>

namespace fourfold::interchange {

/// A run file with which training goes on from an imported model: every key with its value and what
/// it means, the model exact, the weights taken from its step, log.dir a folder beside that.
/// Complete but for data.train.
/// @param tokenizer  data.tokenizer; empty: left to the record beside the token files
/// @param step       the imported checkpoint, whole path
/// @param file       where the run file will be, for its own example
/// @pre model is resolved
/// @throws UserError (config) for names that no run file can hold, which are those that are not
///   UTF-8
std::string run_file_of(const model::Architecture& model, const std::string& tokenizer,
                        const std::filesystem::path& step, const std::filesystem::path& file);

}  // namespace fourfold::interchange
