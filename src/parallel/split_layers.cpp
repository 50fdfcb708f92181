// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/parallel/split_layers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

namespace fourfold::parallel {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw UserError(ExitCode::config, message);
}

/// Products of n weights and attention over `tokens` with `attention` features: of one token.
PassFlops flops_of(double weights, double attention, double tokens) {
  return {2 * weights + 2 * attention * tokens, 2 * weights + 4 * attention * tokens, 2 * weights};
}

/// Weights of one block's matrices.
double block_weights(const model::ModelConfig& config) {
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
std::vector<std::int64_t> layers_by_cost(const model::ModelConfig& config, std::int64_t stages) {
  const int head_unit = static_cast<int>(config.layers) + 1;
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

void require_layers(const model::ModelConfig& config, const LayerSplit& split) {
  const std::int64_t stages = std::int64_t{split.stages} * split.chunks;
  if (config.layers >= stages) {
    return;
  }
  const std::int64_t most = config.layers / split.chunks;
  const std::string remedy =
      most > 0 ? fmt::format("set mesh.pp to {} or less", most)
               : fmt::format("set mesh.chunks to {} or less",
                             std::max<std::int64_t>(config.layers / split.stages, 1));
  refuse(fmt::format(
      "model.layers = {} is fewer than mesh.pp = {} times mesh.chunks = {} stages (each "
      "holds a layer) {}",
      config.layers, split.stages, split.chunks, remedy));
}

void require_fit(const model::ModelConfig& config, const LayerSplit& split) {
  const std::vector<std::int64_t>& layers = split.stage_layers;
  const std::int64_t stages = std::int64_t{split.stages} * split.chunks;
  const std::string list = fmt::format("mesh.stage_layers = [{}]", fmt::join(layers, ", "));
  if (std::ssize(layers) != stages) {
    refuse(
        fmt::format("{} has {} numbers (mesh.pp = {} times mesh.chunks = {} stages have one each) "
                    "write {}, or leave it out",
                    list, layers.size(), split.stages, split.chunks, stages));
  }
  std::int64_t sum = 0;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const bool at_an_end = stage == 0 || stage == stages - 1;
    if (layers[stage] < (at_an_end ? 0 : 1) || layers[stage] > config.layers) {
      refuse(
          fmt::format("{} gives stage {} {} layers (0 only where the embedding or the head is) "
                      "set it to {}",
                      list, stage, layers[stage],
                      std::clamp<std::int64_t>(layers[stage], at_an_end ? 0 : 1, config.layers)));
    }
    sum += layers[stage];
  }
  if (sum != config.layers) {
    const std::int64_t rest = config.layers - sum;
    refuse(fmt::format(
        "{} are {} layers, and model.layers = {} (every layer is on one stage) {} {} "
        "of them",
        list, sum, config.layers, rest > 0 ? "add" : "take away", rest > 0 ? rest : -rest));
  }
}

}  // namespace

PassFlops pass_flops(const model::ModelConfig& config, model::Units units, std::int64_t tokens) {
  const int head = static_cast<int>(config.layers) + 1;
  FOURFOLD_EXPECT(0 <= units.begin && units.begin <= units.end && units.end <= head + 1);
  const int blocks = std::max(std::min(units.end, head) - std::max(units.begin, 1), 0);
  const double head_weights =
      units.contains(head) ? static_cast<double>(config.vocab * config.hidden) : 0;
  const auto features = static_cast<double>(config.heads * config.head_dim);
  return flops_of(blocks * block_weights(config) + head_weights, blocks * features,
                  static_cast<double>(tokens));
}

std::vector<model::Units> split_layers(const model::ModelConfig& config, const LayerSplit& split) {
  FOURFOLD_EXPECT(split.stages >= 1 && split.chunks >= 1);
  const std::int64_t stages = std::int64_t{split.stages} * split.chunks;
  std::vector<std::int64_t> layers = split.stage_layers;
  if (layers.empty()) {
    require_layers(config, split);
    layers = stages == 1 ? std::vector{config.layers} : layers_by_cost(config, stages);
  } else {
    require_fit(config, split);
  }
  std::vector<model::Units> units;
  int begin = 1;
  for (const std::int64_t count : layers) {
    units.push_back({begin, begin + static_cast<int>(count)});
    begin = units.back().end;
  }
  units.front().begin = 0;
  ++units.back().end;
  return units;
}

}  // namespace fourfold::parallel
