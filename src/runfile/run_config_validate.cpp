// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_file_message.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <string_view>

namespace fourfold::runfile {
namespace {

bool belongs_to_key(unsigned char c) {
  return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_' || c == '.';
}

/// The divisors of `total` next below and above `wanted`, as "2 or 4"; `wanted` is not one of them.
std::string divisors_near(std::int64_t total, std::int64_t wanted) {
  std::int64_t below = 1;
  std::int64_t above = total;
  for (std::int64_t small = 1; small <= total / small; ++small) {
    if (total % small != 0) {
      continue;
    }
    for (const std::int64_t divisor : {small, total / small}) {
      below = divisor < wanted ? std::max(below, divisor) : below;
      above = divisor > wanted ? std::min(above, divisor) : above;
    }
  }
  return above < wanted ? fmt::format("{}", total) : fmt::format("{} or {}", below, above);
}

/// The multiples of `unit` next below and above `value`, as "504 or 528"; at least one unit.
std::string multiples_near(std::int64_t unit, std::int64_t value) {
  const std::int64_t below = value / unit * unit;
  return below == 0 ? fmt::format("{}", unit) : fmt::format("{} or {}", below, below + unit);
}

void validate_schedule(const LearningRateSchedule& schedule, const Origins& origins) {
  if (schedule.kind == ScheduleKind::constant) {
    return;
  }
  if (schedule.min_lr > schedule.lr) {
    refuse(
        format_message(
            "optim.min_lr = {} is above optim.lr = {} (the rate would rise); set it to {} or less",
            schedule.min_lr, schedule.lr, schedule.lr),
        origins);
  }
  if (schedule.warmup_steps > schedule.decay_steps) {
    refuse(format_message("optim.warmup_steps = {} is longer than optim.decay_steps = {} (the "
                          "warm-up is part of it); shorten one or lengthen the other",
                          schedule.warmup_steps, schedule.decay_steps),
           origins);
  }
  const std::int64_t rest = schedule.decay_steps - schedule.warmup_steps;
  if (schedule.kind == ScheduleKind::wsd && rest < 1) {
    refuse(format_message("optim.warmup_steps = {} leaves no update for the cool-down of "
                          "optim.schedule = \"wsd\" (optim.decay_steps = {}); set it to {} or "
                          "less, or choose optim.schedule = \"constant\"",
                          schedule.warmup_steps, schedule.decay_steps, schedule.decay_steps - 1),
           origins);
  }
  if (schedule.kind == ScheduleKind::wsd && schedule.cooldown_steps > rest) {
    refuse(
        format_message("optim.cooldown_steps = {} is longer than what the warm-up leaves "
                       "(optim.decay_steps = {}, optim.warmup_steps = {}); set it to {} or less",
                       schedule.cooldown_steps, schedule.decay_steps, schedule.warmup_steps, rest),
        origins);
  }
}

void validate_recompute(const RunConfig& config, const Origins& origins) {
  const std::size_t group = config.train.recompute.group_blocks;
  const std::size_t layers = config.model.layers;
  if (group > layers) {
    refuse(
        format_message("train.recompute = \"every:{}\" does not fit model.layers = {} (a group is "
                       "at most the whole model); set it to \"every:{}\" or less, or to \"full\"",
                       group, layers, layers),
        origins);
  }
}

/// A chunk has a token at least.
void validate_head_chunks(const RunConfig& config, const Origins& origins) {
  const std::int64_t tokens =
      config.train.micro_batch *
      std::max<std::int64_t>(1, config.model.context / config.mesh.shape.cp);
  if (config.train.head_chunks > tokens) {
    refuse(format_message("train.head_chunks = {} is more than a rank has tokens of a micro-batch "
                          "(train.micro_batch = {} x model.context = {} / mesh.cp = {}, and a "
                          "chunk has one at least); set it to {} or less",
                          config.train.head_chunks, config.train.micro_batch, config.model.context,
                          config.mesh.shape.cp, tokens),
           origins);
  }
}

/// f16's gradients are multiplied by these and divided again: exact with powers of two only.
void validate_loss_scale(const TrainConfig& train, const Origins& origins) {
  const auto refuse_other_than_power = [&](const char* key, std::int64_t value) {
    const std::uint64_t bits = value;
    if (!std::has_single_bit(bits)) {
      refuse(format_message(
                 "train.{} = {} is no power of two (scaling by others rounds); set it to {} or {}",
                 key, value, std::bit_floor(bits), std::bit_ceil(bits)),
             origins);
    }
  };
  if (train.loss_scale != 0) {
    refuse_other_than_power("loss_scale", train.loss_scale);
    return;
  }
  refuse_other_than_power("loss_scale_initial", train.loss_scale_initial);
  refuse_other_than_power("loss_scale_min", train.loss_scale_min);
  if (train.loss_scale_initial < train.loss_scale_min) {
    refuse(format_message("train.loss_scale_initial = {} is below train.loss_scale_min = {} (it "
                          "never falls further); set it to {} or more",
                          train.loss_scale_initial, train.loss_scale_min, train.loss_scale_min),
           origins);
  }
}

/// What compression leaves out of a gradient is kept for as many numbers as the gradient has, once
/// per step.
void validate_compression(const MeshConfig& mesh, const Origins& origins) {
  if (mesh.dp_compress.kind == parallel::Compression::none ||
      mesh.dp_reduce == GradientReduce::step) {
    return;
  }
  if (mesh.dp_reduce == GradientReduce::micro_batch) {
    refuse(format_message(
               "mesh.dp_compress = \"{}\" does not go with mesh.dp_reduce = \"micro_batch\" (what "
               "it leaves out is kept per step, beside whole gradients); set mesh.dp_reduce to "
               "\"step\", or mesh.dp_compress to \"none\"",
               name(mesh.dp_compress)),
           origins);
  }
  if (mesh.zero >= 2) {
    refuse(
        format_message("mesh.dp_compress = \"{}\" does not go with mesh.zero = {}, which reduces "
                       "after every micro-batch (what is left out is kept per step, beside whole "
                       "gradients); set mesh.zero to 1, or mesh.dp_reduce to \"step\"",
                       name(mesh.dp_compress), mesh.zero),
        origins);
  }
}

void validate_local(const MeshConfig& mesh, const Origins& origins) {
  if (mesh.dp_mode == DataParallelMode::local &&
      mesh.dp_compress.kind != parallel::Compression::none) {
    refuse(format_message("mesh.dp_compress = \"{}\" does not go with mesh.dp_mode = \"local\" (no "
                          "gradients travel over the dp axis then); set it to \"none\"",
                          name(mesh.dp_compress)),
           origins);
  }
}

void validate_rounding(const RunConfig& config, const Origins& origins) {
  if (config.optim.stochastic_rounding && config.train.precision != DType::bf16) {
    refuse(format_message("optim.stochastic_rounding = true does not go with train.precision = "
                          "\"{}\" (it is for weights in bf16); set train.precision to \"bf16\", or "
                          "optim.stochastic_rounding to false",
                          name(config.train.precision)),
           origins);
  }
}

/// Steps that are due in checkpoint.dir go there alone, unless they are left out.
void validate_node_local(const CheckpointConfig& checkpoint, const Origins& origins) {
  const std::int64_t every = checkpoint.every_steps;
  if (checkpoint.node_local_dir.empty()) {
    return;
  }
  if (checkpoint.node_local_every_steps == 0) {
    refuse(
        format_message(
            "checkpoint.node_local_dir = \"{}\" needs checkpoint.node_local_every_steps (nothing "
            "would be saved there); set it to some steps{}, or leave checkpoint.node_local_dir out",
            checkpoint.node_local_dir,
            every > 1 ? format_message(", fewer than checkpoint.every_steps = {}", every) : ""),
        origins);
  }
  const bool leaves_out = checkpoint.async && checkpoint.when_busy == BusySave::skip;
  if (every > 0 && checkpoint.node_local_every_steps % every == 0 && !leaves_out) {
    refuse(format_message("checkpoint.node_local_every_steps = {} is a multiple of "
                          "checkpoint.every_steps = {} (all of its steps go to checkpoint.dir); "
                          "set it to fewer steps than that, or leave checkpoint.node_local_dir out",
                          checkpoint.node_local_every_steps, every),
           origins);
  }
}

}  // namespace

std::string located(const std::string& message, const Origins& origins) {
  std::size_t position = 0;
  while (position < message.size()) {
    if (!belongs_to_key(message[position])) {
      ++position;
      continue;
    }
    const auto begin = message.begin() + position;
    const std::string_view word(begin, std::find_if_not(begin, message.end(), belongs_to_key));
    const auto origin = origins.find(word);
    if (origin != origins.end() && !origin->second.where().empty()) {
      return origin->second.where() + ": " + message;
    }
    position += word.size();
  }
  return message;
}

void refuse(const std::string& message, const Origins& origins) {
  throw UserError(ExitCode::config, located(message, origins));
}

void validate(const RunConfig& config, const Origins& origins) {
  validate_schedule(config.optim.schedule, origins);
  validate_loss_scale(config.train, origins);
  validate_recompute(config, origins);
  validate_compression(config.mesh, origins);
  validate_local(config.mesh, origins);
  validate_rounding(config, origins);
  validate_head_chunks(config, origins);
  validate_node_local(config.checkpoint, origins);
  if (config.mesh.shape.dp > 0) {  // else when the ranks are known
    validate_batch(config, config.mesh.shape.dp, origins);
  }
}

void validate_data(const RunConfig& config, const Origins& origins) {
  if (config.data.train.empty()) {
    refuse(
        "data.train is empty (there is nothing to train on); name the token files: train = "
        "[\"tokens/*.bin\"] in [data]",
        origins);
  }
}

void validate_batch(const RunConfig& config, std::int64_t dp, const Origins& origins) {
  const std::int64_t global_batch = config.train.global_batch;
  const std::int64_t micro_batch = config.train.micro_batch;
  if (global_batch % dp != 0) {
    refuse(format_message("train.global_batch = {} does not divide among mesh.dp = {} ranks (each "
                          "takes the same share); set it to {}",
                          global_batch, dp, multiples_near(micro_batch * dp, global_batch)),
           origins);
  }
  const std::int64_t share = global_batch / dp;
  if (share % micro_batch != 0) {
    refuse(format_message(
               "train.micro_batch = {} does not divide a rank's share of {} sequences "
               "(train.global_batch = {}, mesh.dp = {}); set it to {}, or train.global_batch to {}",
               micro_batch, share, global_batch, dp, divisors_near(share, micro_batch),
               multiples_near(micro_batch * dp, global_batch)),
           origins);
  }
}

}  // namespace fourfold::runfile
