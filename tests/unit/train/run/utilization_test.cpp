// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run/startup_log.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/model/presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

using Catch::Matchers::WithinAbs;

namespace fourfold::train {
namespace {

runfile::RunConfig bf16_run(const char* preset) {
  runfile::RunConfig config;
  config.model = model::preset(preset);
  config.train.precision = DType::bf16;
  return config;
}

TEST_CASE("MFU is counted against what the run file says, else the data sheet", "[utilization]") {
  runfile::RunConfig config = bf16_run("gpt2-124m");
  CHECK(peak_flop_per_s(config, "NVIDIA H100 80GB HBM3") == 989.4e12);
  CHECK(peak_flop_per_s(config, "CPU") == 0);
  config.train.precision = DType::f16;
  CHECK(peak_flop_per_s(config, "NVIDIA H100 80GB HBM3") == 989.4e12);
  config.train.precision = DType::f32;
  CHECK(peak_flop_per_s(config, "NVIDIA H100 80GB HBM3") == 0);
  config.log.peak_tflops = 1.5;
  CHECK(peak_flop_per_s(config, "NVIDIA H100 80GB HBM3") == 1.5e12);
  CHECK(peak_flop_per_s(config, "CPU") == 1.5e12);
  config = bf16_run("gpt2-124m");
  config.mesh.share_devices = true;
  CHECK(peak_flop_per_s(config, "NVIDIA H100 80GB HBM3") == 0);
}

// 6N + 6LhT by hand for published shapes with V = 50257 and T = 1024: 0.798, 2.27, 4.92, 9.80.
TEST_CASE("FLOP per token are those of published shapes", "[utilization]") {
  const auto gflop = [](const char* preset, std::int64_t tokens) {
    return model::flops_per_token(model::preset(preset), tokens) / 1e9;
  };
  CHECK_THAT(gflop("gpt2-124m", 1024), WithinAbs(0.798, 5e-4));
  CHECK_THAT(gflop("gpt2-350m", 1024), WithinAbs(2.272, 1e-3));
  CHECK_THAT(gflop("gpt2-774m", 1024), WithinAbs(4.916, 1e-3));
  CHECK_THAT(gflop("gpt2-1558m", 1024), WithinAbs(9.802, 1e-3));
  // 32 layers of 218.1 M and a head of 525.3 M; 14,451 tokens/s are 744 TFLOP/s, as published.
  CHECK_THAT(gflop("llama-3-8b", 8192) * 14'451 / 1e3, WithinAbs(744, 1));
}

TEST_CASE("the log names the formula, or what is missing for it", "[utilization]") {
  runfile::RunConfig config = bf16_run("gpt2-124m");
  CHECK(utilization_text(config, "NVIDIA H100 80GB HBM3") ==
        "MFU counts 6N + 6LhT = 0.7978 GFLOP per token against 989.4 TFLOP/s a rank");
  const std::string unknown =
      device::has_own_memory ? "no MFU: the peak of X is not known (log.peak_tflops tells it)" : "";
  CHECK(utilization_text(config, "X") == unknown);
  config.train.precision = DType::f32;
  CHECK(utilization_text(config, "NVIDIA H100 80GB HBM3").empty());
}

}  // namespace
}  // namespace fourfold::train
