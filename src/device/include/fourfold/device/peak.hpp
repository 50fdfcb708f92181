// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace fourfold::device {

/// What a device's tensor cores can do at most in bf16 or f16 with f32 accumulation, without
/// sparsity, in FLOP/s, as its maker states it (H100 SXM: 989.4e12), by the name that its driver
/// gives it (DeviceFacts::name). Nothing where that is not known: a CPU, a part of a GPU (MIG), a
/// model that the table does not have.
std::optional<double> bf16_peak_flop_per_s(std::string_view device_name);

}  // namespace fourfold::device
