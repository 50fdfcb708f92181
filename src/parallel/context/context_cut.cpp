// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/parallel/context_cut.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace fourfold::parallel {
namespace {

constexpr std::array own_keys{ChunkProduct{0, {0, 1}, true}, ChunkProduct{1, {0, 2}, true}};
/// Of a lower position: its first chunk lies in front of both chunks here, its second after them.
constexpr std::array keys_of_lower{ChunkProduct{0, {0, 1}, false}, ChunkProduct{1, {0, 1}, false}};
/// Of a higher position: both of its chunks lie between the two here.
constexpr std::array keys_of_higher{ChunkProduct{1, {0, 2}, false}};

/// Whether the heads of one tensor-parallel rank can be dealt to cp ranks, where the mode deals
/// them.
bool deals_heads(const model::Architecture& config, ContextMode mode, int tp, std::int64_t cp) {
  const std::int64_t heads = config.attention.heads / tp;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, config.attention.kv_heads / tp);
  return mode != ContextMode::ulysses ||
         (heads % cp == 0 && (kv_heads % cp == 0 || cp % kv_heads == 0));
}

bool works(const model::Architecture& config, ContextMode mode, int tp, std::int64_t cp) {
  return cp == 1 || (config.context % (2 * cp) == 0 && config.context / cp >= tp &&
                     deals_heads(config, mode, tp, cp));
}

/// The degrees next below and above `cp` that work, as "2 or 4"; 1 always does.
std::string degrees_near(const model::Architecture& config, ContextMode mode, int tp, int cp) {
  const std::int64_t highest = config.context / 2;
  std::int64_t below = std::max<std::int64_t>(1, std::min<std::int64_t>(cp - 1, highest));
  while (!works(config, mode, tp, below)) {
    --below;
  }
  for (int above = cp + 1; above <= highest; ++above) {
    if (works(config, mode, tp, above)) {
      return fmt::format("{} or {}", below, above);
    }
  }
  return fmt::format("{}", below);
}

/// ", or model.context to 4 or 8": those next to it that this cp can cut, if there are any.
std::string contexts_near(const model::Architecture& config, ContextMode mode, int tp, int cp) {
  if (!deals_heads(config, mode, tp, cp)) {
    return "";
  }
  const std::int64_t unit = std::int64_t{2} * cp;
  const std::int64_t least = (std::int64_t{tp} * cp + unit - 1) / unit * unit;
  const std::int64_t below = config.context / unit * unit;
  const std::int64_t above = std::max(least, below + unit);
  return below >= std::max(least, unit)
             ? fmt::format(", or model.context to {} or {}", below, above)
             : fmt::format(", or model.context to {}", above);
}

}  // namespace

std::array<Range, 2> context_chunks(std::int64_t tokens, int cp, int rank) {
  FOURFOLD_EXPECT(0 <= rank && rank < cp);
  if (cp == 1) {
    return {Range{0, tokens}, Range{tokens, 0}};
  }
  const std::int64_t chunks = std::int64_t{2} * cp;
  FOURFOLD_EXPECT(tokens % chunks == 0);
  const std::int64_t length = tokens / chunks;
  return {Range{rank * length, length}, Range{(chunks - 1 - rank) * length, length}};
}

std::span<const ChunkProduct> chunk_products(int rank, int key_rank) {
  if (rank == key_rank) {
    return own_keys;
  }
  return key_rank < rank ? std::span<const ChunkProduct>(keys_of_lower) : keys_of_higher;
}

void validate_context_cut(const model::Architecture& config, ContextMode mode, int cp, int tp) {
  FOURFOLD_EXPECT(cp >= 1 && tp >= 1);
  if (cp == 1) {
    return;
  }
  const auto degrees = [&] { return degrees_near(config, mode, tp, cp); };
  if (config.context % (2 * cp) != 0) {
    throw UserError(
        ExitCode::config,
        format_message("mesh.cp = {} does not fit model.context = {} (each rank takes two of {} "
                       "equal chunks of a sequence); set mesh.cp to {}{}",
                       cp, config.context, 2 * cp, degrees(), contexts_near(config, mode, tp, cp)));
  }
  if (config.context / cp < tp) {
    throw UserError(ExitCode::config,
                    format_message("mesh.cp = {} with mesh.tp = {} is more than model.context = {} "
                                   "(every rank must hold some of it); set mesh.cp to {}",
                                   cp, tp, config.context, degrees()));
  }
  if (!deals_heads(config, mode, tp, cp)) {
    throw UserError(
        ExitCode::config,
        format_message("mesh.cp = {} does not fit model.heads = {} with model.kv_heads = {} and "
                       "mesh.tp = {} (with mesh.context_mode = \"ulysses\" each rank takes the "
                       "same number of whole heads, or shares one key/value head with its "
                       "neighbours); set mesh.cp to {}, or mesh.context_mode to \"ring\"",
                       cp, config.attention.heads, config.attention.kv_heads, tp, degrees()));
  }
}

}  // namespace fourfold::parallel
