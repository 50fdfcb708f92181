// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_files.hpp"
#include "run_end.hpp"
#include "training.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/batch/cluster_facts.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/fence.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/command_output.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/stop_request.hpp>

#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace fourfold::train_program {
namespace {

namespace fs = std::filesystem;

/// "node[0-2]" as node0, node1, node2.
std::vector<std::string> expanded(const std::string& nodes) {
  constexpr std::chrono::seconds hostnames_time{10};
  const auto output = program::ask_slurm(batch::hostnames_command(nodes), hostnames_time);
  return output && output->is_answer() ? batch::hostnames_of(output->text)
                                       : std::vector<std::string>{};
}

std::string lease_text(const fs::path& log_dir) {
  constexpr std::uint64_t most_bytes = 4096;
  return io::text_if_readable(log_dir / telemetry::run_lease_name, most_bytes).value_or("");
}

/// Whether another start of the run lives, whose directory this is then. One that was killed leaves
/// its lease; one that lives counts it up.
bool is_run_by_another(const fs::path& log_dir) {
  const auto holder = telemetry::run_lease_holder(log_dir);
  const auto me = io::LeaseHolder::this_process();
  if (!holder || *holder == me || me.replaces(*holder) ||
      (!me.job.empty() && me.is_of_start(*holder))) {
    return false;
  }
  const std::string before = lease_text(log_dir);
  std::this_thread::sleep_for(io::LeaseOptions{}.beat * 5 / 2);
  return lease_text(log_dir) != before;
}

/// The end of a start that has not come to its lease.
void note_start_end(const fs::path& log_dir, const std::function<void()>& write) {
  try_to("tell how the start ended", [&] {
    telemetry::make_log_dir(log_dir);
    // Before the look: who takes over after it takes the place away.
    const io::FencedPlace place(log_dir, telemetry::run_lease_name);
    if (!is_run_by_another(log_dir)) {
      write();
      return;
    }
    log::local(log::Level::warning,
               format_message("{}: another start of this run lives; this one writes nothing there",
                              log_dir.string()));
  });
}

}  // namespace

std::optional<runfile::EffectiveConfig> config_before_mpi(const Arguments& arguments) {
  try {
    return train::load_run(arguments.run_file, arguments.overrides);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::unique_ptr<comm::StartupWatchdog> watch_start(const runfile::RunConfig& config, bool dry_run) {
  if (!config.watchdog.enabled || config.watchdog.start_s == 0) {
    return nullptr;
  }
  const fs::path log_dir = config.log.dir;
  if (dry_run || io::is_place_in_step(log_dir)) {  // which is refused after MPI_Init
    return std::make_unique<comm::StartupWatchdog>(comm::StartupWatchdogOptions{
        .limit_s = config.watchdog.start_s, .stop_signal = &train::StopSignals::received});
  }
  return std::make_unique<comm::StartupWatchdog>(comm::StartupWatchdogOptions{
      .limit_s = config.watchdog.start_s,
      .folder = log_dir,
      .expand_nodes = expanded,
      .stop_signal = &train::StopSignals::received,
      .on_hang = [log_dir](const comm::HangDiagnosis& verdict, const std::string& report) {
        note_start_end(log_dir, [&] { write_hang(log_dir, verdict, report, {}); });
      }});
}

void refuse_blind_nodes(const std::optional<runfile::RunConfig>& config,
                        const std::optional<comm::Failure>& failure, bool dry_run,
                        comm::MpiRuntime& mpi) {
  const BlindNodes blind = find_blind_nodes(config, failure, mpi.host(), mpi.world());
  if (blind.hosts.empty()) {
    return;
  }
  const std::string message = format_message(
      "{}; the other nodes do (a file system that is not mounted there?): start without {}",
      blind.reason, fmt::join(blind.hosts, ", "));
  comm::collective_try(mpi.world(), [&] {  // no rank ends before it is written
    if (mpi.world().rank() == blind.first_seeing_rank && config && !dry_run) {
      const fs::path log_dir = config->log.dir;
      note_start_end(log_dir, [&] {
        telemetry::write_exit_status(
            telemetry::RunFiles(log_dir).exit_status(),
            {.code = ExitCode::node_fault, .reason = message, .bad_nodes = blind.hosts});
      });
    }
  });
  throw UserError(ExitCode::node_fault, message);
}

}  // namespace fourfold::train_program
