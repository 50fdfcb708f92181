// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/enum_name.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::parallel {

/// How gradients of matrices travel over the data plane.
enum class Compression : std::uint8_t {
  none,
  bf16,      ///< kernels::GradientCodec
  int8,      ///< likewise
  low_rank,  ///< PowerSGD (Vogels et al. 2019)
};
constexpr auto names_of(Compression /*any*/) {
  using enum Compression;  // a rank follows that of low_rank
  return std::to_array<Named<Compression>>(
      {{none, "none"}, {bf16, "bf16"}, {int8, "int8"}, {low_rank, "lowrank:"}});
}
using fourfold::name;

/// The same as run files spell it.
struct GradientCompression {
  Compression kind = Compression::none;
  std::int64_t rank = 0;  ///< of low_rank, 1 to 1024: columns of the two factors
  friend bool operator==(const GradientCompression&, const GradientCompression&) = default;
};
std::string name(GradientCompression compression);  ///< "none", "bf16", "int8", "lowrank:4"
std::optional<GradientCompression> gradient_compression_named(std::string_view text);

}  // namespace fourfold::parallel
