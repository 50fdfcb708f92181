// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "startup_log.hpp"

#include "plan/memory_report.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/train/step_runner.hpp>

#include <fmt/format.h>

#include <cstdint>

namespace fourfold::train {

namespace {

double in_mb(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

void log_run_summary_memory(const StepRunner& runner, const comm::Mesh& mesh,
                            const device::Arena& memory) {
  const std::size_t libraries = own_library_bytes(runner.resolved(), mesh);
  log::info(
      format_message("memory per rank: {} MiB ({}{})", mib_text(memory.total_bytes() + libraries),
                     memory_by_use_text(memory),
                     libraries == 0 ? "" : format_message(", libraries {}", mib_text(libraries))));
  const StateTier& tier = runner.tier();
  if (!tier.is_offloaded() && !runner.resolved().config.offload.activations_on_host) {
    return;
  }
  log::info(format_message("offloaded per rank: {} MiB in host memory (activations {}){}",
                           mib_text(tier.host_bytes()), mib_text(tier.host_activation_bytes()),
                           tier.tier() == runfile::StateTier::nvme
                               ? format_message(", {} MiB in {}", mib_text(tier.file_bytes()),
                                                runner.resolved().config.offload.nvme_directory)
                               : ""));
}

void log_run_summary_traffic(const StepRunner& runner, comm::Mesh& mesh) {
  const runfile::RunConfig& config = runner.resolved().config;
  const runfile::MeshConfig& wanted = config.mesh;
  if (const std::int64_t bytes = runner.sent_gradient_bytes(); bytes > 0) {
    log::info(
        format_message("gradients: {:.2f} MB sent per rank and step, mesh.dp_compress = \"{}\"",
                       in_mb(bytes), name(wanted.dp_compress)));
  } else if (wanted.dp_compress != parallel::GradientCompression{} &&
             mesh.data_plane().size() == 1) {
    log::info("mesh.dp_compress has no effect: no other rank has the same parameters");
  }
  if (const OuterOptimizer& outer = runner.outer_optimizer(); outer.in_use()) {
    log::info(
        format_message("{} replicas train by themselves: {:.2f} MB of weights sent per rank every "
                       "{} steps, optim.outer = \"{}\"",
                       mesh.shape().dp, in_mb(outer.sent_bytes()), wanted.average_every,
                       name(config.optim.outer)));
  } else if (wanted.dp_mode == runfile::DataParallelMode::local) {
    log::info("mesh.dp_mode = \"local\" has no effect: mesh.dp is 1");
  }
}

/// Sent by this rank per step, on average; 0 where it is not known.
std::int64_t data_plane_bytes(const StepRunner& runner) {
  const OuterOptimizer& outer = runner.outer_optimizer();
  const std::int64_t weights =
      outer.in_use() ? outer.sent_bytes() / runner.resolved().config.mesh.average_every : 0;
  return runner.sent_gradient_bytes() + weights;
}

}  // namespace

void log_run_summary(const StepRunner& runner, comm::Mesh& mesh, const data::TokenDataset& dataset,
                     const device::Arena& memory) {
  const runfile::RunConfig& config = runner.resolved().config;
  log::info(format_message(
      "{} with {:.2f} M parameters, {} on mesh {}, {} samples of {} tokens per epoch",
      model::family_name(config.model), in_mb(model::parameter_count(config.model)),
      name(config.train.precision), mesh.shape().str(), dataset.samples(), dataset.context()));
  log_run_summary_memory(runner, mesh, memory);
  log_run_summary_traffic(runner, mesh);
  if (const std::string text = utilization_text(config, device::device_facts().name);
      !text.empty()) {
    log::info(text);
  }
  if (const auto why_not = why_no_graphs(runner.resolved(), device::has_own_memory);
      !why_not.empty()) {
    log::info(format_message("train.cuda_graphs = true has no effect: {}", why_not));
  }
}

telemetry::RunStart run_start(const StepRunner& runner, const comm::Mesh& mesh,
                              telemetry::RunStart known) {
  const runfile::RunConfig& config = runner.resolved().config;
  known.steps = config.train.steps;
  known.mesh = mesh.shape().str();
  known.precision = name(config.train.precision);
  known.parameters = model::parameter_count(config.model);
  known.tokens_per_step = config.train.global_batch * config.model.context;
  known.data_plane_bytes = data_plane_bytes(runner);
  known.flop_per_token = model::flops_per_token(config.model, config.model.context);
  known.peak_flop_per_s = peak_flop_per_s(config, device::device_facts().name);
  return known;
}

double peak_flop_per_s(const runfile::RunConfig& config, std::string_view device_name) {
  if (config.log.peak_tflops > 0) {
    return config.log.peak_tflops * 1e12;
  }
  if (config.train.precision == DType::f32 || config.mesh.share_devices) {
    return 0;
  }
  return device::bf16_peak_flop_per_s(device_name).value_or(0);
}

std::string utilization_text(const runfile::RunConfig& config, std::string_view device_name) {
  if (const double peak = peak_flop_per_s(config, device_name); peak > 0) {
    return fmt::format(
        "MFU counts 6N + 6LhT = {:.4g} GFLOP per token against {:.4g} TFLOP/s a rank",
        model::flops_per_token(config.model, config.model.context) / 1e9, peak / 1e12);
  }
  if (!device::has_own_memory || config.train.precision == DType::f32) {
    return {};
  }
  return fmt::format("no MFU: the peak of {} is not known (log.peak_tflops tells it)",
                     config.mesh.share_devices ? "a part of a device" : device_name);
}

}  // namespace fourfold::train
