// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/device.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace fourfold::device {
namespace {

struct Peak {
  std::string_view model;
  std::string_view variant;  ///< another word of the name; empty: any
  double tflop_per_s;
};

/// From the data sheets; where they give rates with sparsity, half of those. The first that fits.
constexpr std::array<Peak, 18> peaks{{
    {"A10", "", 125},
    {"A30", "", 165},
    {"A40", "", 149.7},
    {"A100", "", 312},
    {"A800", "", 312},
    {"L4", "", 121},
    {"L40", "", 181},
    {"L40S", "", 362},
    {"H20", "", 148},
    {"H100", "PCIe", 756},
    {"H100", "NVL", 835.5},
    {"H100", "", 989.4},
    {"H800", "", 989.4},
    {"GH200", "", 989.4},
    {"H200", "NVL", 835.5},
    {"H200", "", 989.4},
    {"B200", "", 2250},
    {"GB200", "", 2500},
}};

/// "NVIDIA", "A100", "SXM4", "80GB".
std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of(" -"), name.size());
    words.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return words;
}

}  // namespace

std::optional<double> bf16_peak_flop_per_s(std::string_view device_name) {
  const std::vector<std::string_view> words = words_of(device_name);
  const auto has = [&](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  if (!has("NVIDIA") || has("MIG")) {
    return std::nullopt;
  }
  const auto found = std::ranges::find_if(peaks, [&](const Peak& peak) {
    return has(peak.model) && (peak.variant.empty() || has(peak.variant));
  });
  return found == peaks.end() ? std::nullopt : std::optional(found->tflop_per_s * 1e12);
}

}  // namespace fourfold::device
