// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/device.hpp>

#include <catch2/catch_test_macros.hpp>

using fourfold::device::bf16_peak_flop_per_s;

TEST_CASE("the peak of a GPU is known by the name its driver gives it", "[peak]") {
  CHECK(bf16_peak_flop_per_s("NVIDIA A100-SXM4-80GB") == 312e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA A100 80GB PCIe") == 312e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA H100 80GB HBM3") == 989.4e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA H100 PCIe") == 756e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA H100 NVL") == 835.5e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA H200") == 989.4e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA H200 NVL") == 835.5e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA GH200 480GB") == 989.4e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA B200") == 2250e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA GB200") == 2500e12);
  CHECK(bf16_peak_flop_per_s("NVIDIA L40S") == 362e12);
}

TEST_CASE("of other devices no peak is claimed", "[peak]") {
  CHECK_FALSE(bf16_peak_flop_per_s("CPU"));
  CHECK_FALSE(bf16_peak_flop_per_s(""));
  CHECK_FALSE(bf16_peak_flop_per_s("Emulated GPU"));
  CHECK_FALSE(bf16_peak_flop_per_s("H100"));  // no driver says so
  CHECK_FALSE(bf16_peak_flop_per_s("NVIDIA H1000"));
  CHECK_FALSE(bf16_peak_flop_per_s("NVIDIA H100 80GB HBM3 MIG 1g.10gb"));  // a seventh of one
  CHECK_FALSE(bf16_peak_flop_per_s("NVIDIA GeForce RTX 4090"));
}
