// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/compression.hpp>

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace fourfold::parallel {
namespace {

constexpr std::string_view low_rank_prefix = "lowrank:";
constexpr std::int64_t highest_rank = 1024;

}  // namespace

std::string name(GradientCompression compression) {
  switch (compression.kind) {
    case Compression::none:
      return "none";
    case Compression::bf16:
      return "bf16";
    case Compression::int8:
      return "int8";
    case Compression::low_rank:
      break;
  }
  return fmt::format("{}{}", low_rank_prefix, compression.rank);
}

std::optional<GradientCompression> gradient_compression_named(std::string_view text) {
  for (const Compression kind : {Compression::none, Compression::bf16, Compression::int8}) {
    if (text == name(GradientCompression{kind, 0})) {
      return GradientCompression{kind, 0};
    }
  }
  if (!text.starts_with(low_rank_prefix)) {
    return std::nullopt;
  }
  text.remove_prefix(low_rank_prefix.size());
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc{} || end != text.data() + text.size() || rank < 1 || rank > highest_rank) {
    return std::nullopt;
  }
  return GradientCompression{Compression::low_rank, rank};
}

}  // namespace fourfold::parallel
