// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace fourfold::runfile {
namespace {

constexpr std::string_view on_disk = name(StateTier::nvme);

RunField member(auto path) {
  return field(&RunConfig::offload, path);
}

RunField optimizer_field() {
  RunField result = text_field(
      names_in(named_values<StateTier>),
      [](const RunConfig& config) { return optimizer_tier_text(config.offload); },
      [](RunConfig& config, const std::string& text) {
        const bool to_disk = text.starts_with(on_disk);
        config.offload.optimizer = to_disk ? StateTier::nvme : *value_named<StateTier>(text);
        config.offload.nvme_directory = to_disk ? text.substr(on_disk.size()) : "";
      });
  std::erase(result.choices, on_disk);
  result.form = fmt::format("{}PATH", on_disk);
  result.form_condition = "with the path of a directory";
  result.has_form = [](const std::string& text) {
    return text.starts_with(on_disk) && text.size() > on_disk.size();
  };
  return result;
}

RunField activations_field() {
  return text_field(
      {"none", "cpu"},
      [](const RunConfig& config) { return config.offload.activations_on_host ? "cpu" : "none"; },
      [](RunConfig& config, const std::string& text) {
        config.offload.activations_on_host = text == "cpu";
      });
}

}  // namespace

std::string optimizer_tier_text(const OffloadConfig& offload) {
  return fmt::format("{}{}", name(offload.optimizer),
                     offload.optimizer == StateTier::nvme ? offload.nvme_directory : "");
}

std::vector<RunKey> offload_keys() {
  return {
      {.name = "optimizer",
       .field = optimizer_field(),
       .path_after = on_disk,
       .meaning = "Where the f32 master weights and the optimizer's moments lie: none: with the "
                  "rest; cpu: in the memory of the host, which updates them; nvme:PATH: in a file "
                  "in that directory, on a disk of each node, through which every update streams. "
                  "The same bits in each case."},
      {.name = "buffer_mb",
       .field = member(&OffloadConfig::buffer_mb),
       .unit = "MB (10^6 bytes)",
       .meaning = "Host memory of each rank through which offloaded state passes.",
       .minimum = 0.1,
       .maximum = 1e6,
       .relevance = {"offload.optimizer",
                     [](const RunConfig& config) {
                       return config.offload.optimizer != StateTier::none;
                     }}},
      {.name = "activations",
       .field = activations_field(),
       .meaning = "Where what train.recompute keeps of blocks lies between their forward and their "
                  "backward passes: none: with the rest; cpu: in the memory of the host, from "
                  "where it is brought one block ahead. The same bits in both cases."},
  };
}

}  // namespace fourfold::runfile
