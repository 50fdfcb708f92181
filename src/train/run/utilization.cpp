// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "utilization.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/device/peak.hpp>

#include <fmt/format.h>

namespace fourfold::train {

double peak_flop_per_s(const runfile::RunConfig& config, std::string_view device_name) {
  if (config.log.peak_tflops > 0) {
    return config.log.peak_tflops * 1e12;
  }
  if (config.train.precision == DType::f32 || config.mesh.share_devices) {
    return 0;
  }
  return device::bf16_peak_flop_per_s(device_name).value_or(0);
}

std::string utilization_text(const runfile::RunConfig& config, std::string_view device_name) {
  if (const double peak = peak_flop_per_s(config, device_name); peak > 0) {
    return fmt::format(
        "MFU counts 6N + 6LhT = {:.4g} GFLOP per token against {:.4g} TFLOP/s a rank",
        model::flops_per_token(config.model, config.model.context) / 1e9, peak / 1e12);
  }
  if (!device::has_own_memory || config.train.precision == DType::f32) {
    return {};
  }
  return fmt::format("no MFU: the peak of {} is not known (log.peak_tflops tells it)",
                     config.mesh.share_devices ? "a part of a device" : device_name);
}

}  // namespace fourfold::train
