// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/runfile/run_config.hpp>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <system_error>

namespace fourfold::runfile {
namespace {

constexpr std::string_view low_rank_prefix = "lowrank:";
constexpr std::int64_t highest_rank = 1024;

}  // namespace

std::string_view name(ContextMode mode) noexcept {
  constexpr std::array<std::string_view, 3> names{"ring", "ulysses", "allgather"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name(HostCollectives collectives) noexcept {
  constexpr std::array<std::string_view, 4> names{"auto", "direct", "ring", "tree"};
  return names[static_cast<std::size_t>(collectives)];
}

std::string_view name(CudaGraphs graphs) noexcept {
  constexpr std::array<std::string_view, 3> names{"auto", "true", "false"};
  return names[static_cast<std::size_t>(graphs)];
}

std::string_view name(ZeroKeep keep) noexcept {
  constexpr std::array<std::string_view, 2> names{"micro_batch", "step"};
  return names[static_cast<std::size_t>(keep)];
}

std::string_view name(GradientReduce reduce) noexcept {
  constexpr std::array<std::string_view, 3> names{"auto", "step", "micro_batch"};
  return names[static_cast<std::size_t>(reduce)];
}

std::string_view name(DataParallelMode mode) noexcept {
  constexpr std::array<std::string_view, 2> names{"sync", "local"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name(OuterOptimizerKind kind) noexcept {
  constexpr std::array<std::string_view, 2> names{"average", "nesterov"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(OptimizerKind kind) noexcept {
  constexpr std::array<std::string_view, 3> names{"adamw", "adam", "sgd"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(ProgressMode mode) noexcept {
  constexpr std::array<std::string_view, 4> names{"auto", "bar", "plain", "none"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name(BusySave policy) noexcept {
  return policy == BusySave::wait ? "wait" : "skip";
}

std::string name(GradientCompression compression) {
  switch (compression.kind) {
    case GradientCompression::Kind::none:
      return "none";
    case GradientCompression::Kind::bf16:
      return "bf16";
    case GradientCompression::Kind::int8:
      return "int8";
    case GradientCompression::Kind::low_rank:
      break;
  }
  return fmt::format("{}{}", low_rank_prefix, compression.rank);
}

std::optional<GradientCompression> gradient_compression_named(std::string_view text) {
  using Kind = GradientCompression::Kind;
  for (const Kind kind : {Kind::none, Kind::bf16, Kind::int8}) {
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
  return GradientCompression{Kind::low_rank, rank};
}

}  // namespace fourfold::runfile
