// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/compression.hpp>

#include <charconv>
#include <string>
#include <system_error>

namespace fourfold::parallel {
namespace {

constexpr std::int64_t highest_rank = 1024;

}  // namespace

std::string name(GradientCompression compression) {
  const std::string word(name(compression.kind));
  return compression.kind == Compression::low_rank ? word + std::to_string(compression.rank) : word;
}

std::optional<GradientCompression> gradient_compression_named(std::string_view text) {
  constexpr std::string_view low_rank = name(Compression::low_rank);
  if (!text.starts_with(low_rank)) {
    const auto kind = value_named<Compression>(text);
    return kind ? std::optional(GradientCompression{*kind, 0}) : std::nullopt;
  }
  text.remove_prefix(low_rank.size());
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc{} || end != text.data() + text.size() || rank < 1 || rank > highest_rank) {
    return std::nullopt;
  }
  return GradientCompression{Compression::low_rank, rank};
}

}  // namespace fourfold::parallel
