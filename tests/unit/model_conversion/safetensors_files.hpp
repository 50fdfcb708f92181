// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scratch_folder.hpp"

#include <fourfold/io/safetensors.hpp>
#include <fourfold/model_conversion/export.hpp>
#include <fourfold/model_conversion/hf_config.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace fourfold::harness {

/// A folder as Hugging Face has it, whose tensors can be bent before it is written. All weights are
/// zero, but those of `differing`.
class HfFiles {
 public:
  HfFiles(std::filesystem::path folder, const model::Architecture& config)
      : folder_(std::move(folder)),
        config_(model_conversion::hf_config_json(config, config.vocab, DType::f32)) {
    const model_conversion::ExportPlan plan = model_conversion::plan_hf_export(config, {});
    for (const model_conversion::ExternalTensor& tensor : plan.files.front().tensors) {
      arrays.push_back({tensor.name, DType::f32, tensor.shape});
    }
  }

  std::vector<io::ArrayToWrite> arrays;
  std::string differing;

  void replace_in_config(const std::string& from, const std::string& to) {
    config_.replace(config_.find(from), from.size(), to);
  }
  void write() const {
    std::filesystem::create_directories(folder_);
    write_bytes(folder_ / "config.json", config_);
    std::string bytes = io::safetensors_header(arrays, {});
    for (const io::ArrayToWrite& array : arrays) {
      bytes.append(static_cast<std::size_t>(array.bytes()), array.name == differing ? '\1' : '\0');
    }
    write_bytes(folder_ / "model.safetensors", bytes);
  }

 private:
  std::filesystem::path folder_;
  std::string config_;
};

}  // namespace fourfold::harness
