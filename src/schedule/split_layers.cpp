// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/schedule/split_layers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace fourfold::schedule {
namespace {

/// Products of n weights and attention over `tokens` with `attention` features: of one token.
PassFlops flops_of(double weights, double attention, double tokens) {
  return {2 * weights + 2 * attention * tokens, 2 * weights + 4 * attention * tokens, 2 * weights};
}

/// Weights of one block's matrices.
double block_weights(const model::Architecture& config) {
  const std::int64_t head = config.vocab * config.hidden;
  return static_cast<double>((model::product_parameter_count(config) - head) / config.layers);
}

/// How good it is to leave the last stage `last` layers, lower is better: what the dearest stage
/// costs, then how uneven all are. In layers; the head costs `head`.
std::pair<double, double> unevenness(std::int64_t layers, std::int64_t others, std::int64_t last,
                                     double head) {
  const auto shorter = static_cast<double>((layers - last) / others);
  const auto longer = static_cast<double>((layers - last) % others);  // so many have one more
  const double end = static_cast<double>(last) + head;
  const double squares = (static_cast<double>(others) - longer) * shorter * shorter +
                         longer * (shorter + 1) * (shorter + 1) + end * end;
  return {std::max(shorter + (longer > 0 ? 1 : 0), end), squares};
}

/// Layers of every stage, by cost. @pre 2 <= stages <= layers
std::vector<std::int64_t> layers_by_cost(const model::Architecture& config, std::int64_t stages) {
  const int head_unit = model::all_units(config).end - 1;
  const double layer = pass_flops(config, {1, 2}, config.context).sum();
  const double head = pass_flops(config, {head_unit, head_unit + 1}, config.context).sum() / layer;
  const std::int64_t others = stages - 1;
  std::int64_t best = 0;
  for (std::int64_t last = 1; last <= config.layers - others; ++last) {
    if (unevenness(config.layers, others, last, head) <
        unevenness(config.layers, others, best, head)) {
      best = last;
    }
  }
  std::vector<std::int64_t> layers;
  for (std::int64_t stage = others; stage-- > 0;) {
    layers.push_back(even_part(config.layers - best, others, stage).count);
  }
  layers.push_back(best);
  return layers;
}

/// The nearest numbers of stages, chunks or layers with which every virtual stage has a layer.
std::string remedy(std::int64_t layers, const LayerSplit& split) {
  const std::int64_t stages = layers / split.chunks;
  if (split.least_stages > 0 && stages >= split.least_stages) {
    return fmt::format("set mesh.pp to {}", stages == 1 ? "1" : fmt::format("{} or less", stages));
  }
  const std::int64_t chunks = layers / split.stages;
  if (split.least_chunks > 0 && chunks >= split.least_chunks) {
    return fmt::format("set mesh.chunks to {}", chunks == split.least_chunks
                                                    ? fmt::format("{}", chunks)
                                                    : fmt::format("{} or less", chunks));
  }
  return fmt::format("set model.layers to {} or more, or mesh.pp to 1 without mesh.chunks",
                     split.stages * split.chunks);
}

/// @param least  layers that are enough
void require_layers(const model::Architecture& config, const LayerSplit& split,
                    std::int64_t least) {
  if (config.layers >= least) {
    return;
  }
  throw UserError(ExitCode::config,
                  format_message("mesh.pp = {} times mesh.chunks = {} are {} stages, and "
                                 "model.layers = {} (each holds a layer); {}",
                                 split.stages, split.chunks, split.stages * split.chunks,
                                 config.layers, remedy(config.layers, split)));
}

/// The fewest layers of a stage that is given by hand: the ends have something else to hold.
std::int64_t least_layers(std::size_t stage, std::size_t stages) {
  return stage == 0 || stage + 1 == stages ? 0 : 1;
}

/// mesh.stage_layers as near to `layers` as one that fits can be: numbers that are too small or too
/// large are moved to their bounds, then the largest ones give or the smallest ones take, one layer
/// at a time. @pre there are layers for all stages but the two ends
std::vector<std::int64_t> nearest_fit(std::vector<std::int64_t> layers, std::int64_t sum) {
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    layers[stage] = std::clamp(layers[stage], least_layers(stage, layers.size()), sum);
  }
  std::int64_t rest = sum - std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  for (; rest > 0; --rest) {
    ++*std::ranges::min_element(layers);
  }
  for (; rest < 0; ++rest) {
    std::size_t largest = 0;
    for (std::size_t stage = 0; stage < layers.size(); ++stage) {
      const std::int64_t spare = layers[stage] - least_layers(stage, layers.size());
      if (spare > 0 && layers[stage] >= layers[largest]) {
        largest = stage;
      }
    }
    --layers[largest];
  }
  return layers;
}

/// What to write instead of a mesh.stage_layers that does not fit.
std::string fitting_list(const model::Architecture& config, const LayerSplit& split) {
  constexpr std::int64_t most_numbers = 64;  // that a person would read
  constexpr std::int64_t most_layers = 10000;
  const std::int64_t stages = split.stages * split.chunks;
  const std::string leave_out = config.layers >= stages ? ", or leave it out" : "";
  if (stages > most_numbers || config.layers > most_layers) {
    return fmt::format("write {} numbers with the sum {}{}", stages, config.layers, leave_out);
  }
  std::vector<std::int64_t> layers = split.stage_layers;
  layers.resize(stages);
  return fmt::format("write [{}]{}", fmt::join(nearest_fit(std::move(layers), config.layers), ", "),
                     leave_out);
}

void require_fit(const model::Architecture& config, const LayerSplit& split) {
  const std::vector<std::int64_t>& layers = split.stage_layers;
  const std::int64_t stages = split.stages * split.chunks;
  require_layers(config, split, std::max<std::int64_t>(stages - 2, 0));
  const std::string list = fmt::format("mesh.stage_layers = [{}]", fmt::join(layers, ", "));
  const auto refuse = [&](const std::string& what) {
    throw UserError(ExitCode::config,
                    format_message("{} {}; {}", list, what, fitting_list(config, split)));
  };
  if (std::ssize(layers) != stages) {
    refuse(
        format_message("has {} number{} (mesh.pp = {} times mesh.chunks = {} stages have one each)",
                       layers.size(), layers.size() == 1 ? "" : "s", split.stages, split.chunks));
  }
  std::int64_t sum = 0;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    if (layers[stage] < least_layers(stage, layers.size()) || layers[stage] > config.layers) {
      refuse(format_message(
          "gives stage {} {} layers (of {}, and 0 only where the embedding or the head is)", stage,
          layers[stage], config.layers));
    }
    sum += layers[stage];
  }
  if (sum != config.layers) {
    refuse(format_message("has the sum {}, and model.layers = {} (every layer is on one stage)",
                          sum, config.layers));
  }
}

}  // namespace

PassFlops pass_flops(const model::Architecture& config, model::UnitRange units,
                     std::int64_t tokens) {
  const int head = model::all_units(config).end - 1;
  FOURFOLD_EXPECT(0 <= units.begin && units.begin <= units.end && units.end <= head + 1);
  const int blocks = std::max(std::min(units.end, head) - std::max(units.begin, 1), 0);
  const double head_weights =
      units.contains(head) ? static_cast<double>(config.vocab * config.hidden) : 0;
  const auto features = static_cast<double>(config.attention.heads * config.attention.head_dim);
  return flops_of(blocks * block_weights(config) + head_weights, blocks * features,
                  static_cast<double>(tokens));
}

std::vector<model::UnitRange> split_layers(const model::Architecture& config,
                                           const LayerSplit& split) {
  FOURFOLD_EXPECT(split.stages >= 1 && split.chunks >= 1);
  const std::int64_t stages = split.stages * split.chunks;
  std::vector<std::int64_t> layers = split.stage_layers;
  if (layers.empty()) {
    require_layers(config, split, stages);
    layers = stages == 1 ? std::vector{config.layers} : layers_by_cost(config, stages);
  } else {
    require_fit(config, split);
  }
  std::vector<model::UnitRange> units;
  int begin = 1;
  for (const std::int64_t count : layers) {
    units.push_back({begin, begin + static_cast<int>(count)});
    begin = units.back().end;
  }
  units.front().begin = 0;
  ++units.back().end;
  return units;
}

}  // namespace fourfold::schedule
