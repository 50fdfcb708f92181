// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "chain_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/first_look.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace fourfold::job {
namespace {
namespace fs = std::filesystem;

/// A name of a folder for the runs of this chain; empty where no later start would find it.
std::string name_of_chain() {
  const BatchJob job = BatchJob::of_this_process();
  const std::string& name = job.chain.empty() ? job.id : job.chain;
  return name.find('/') == std::string::npos && !name.starts_with('.') ? name : "";
}

/// Whether a chain is over: what begins under its name then is a person's.
bool is_over(const std::vector<batch::Attempt>& attempts, const batch::Attempt& start) {
  const batch::Attempt* const last = batch::newest_of_chain(attempts, start.start.chain);
  // A STOP file that is gone is no end.
  return last != nullptr && last->end && !last->end->retry &&
         last->end->code != ExitCode::stopped_saved;
}

/// The log.dir of a run file that lies where runs are kept; empty: it lies elsewhere.
fs::path log_dir_around(const fs::path& run_file) {
  const fs::path submitted = whole_path(run_file).parent_path().parent_path();
  return submitted == telemetry::RunFiles(submitted.parent_path()).submitted()
             ? submitted.parent_path()
             : fs::path();
}

void refuse_gone(const fs::path& run_file) {
  std::error_code ignored;
  if (!fs::exists(run_file, ignored) && !log_dir_around(run_file).empty()) {
    throw UserError(ExitCode::config,
                    format_message("{} is gone, where this chain keeps what it trains; submit "
                                   "your run file anew: the run goes on from its checkpoint",
                                   run_file.string()));
  }
}

[[noreturn]] void refuse_unknown(const std::string& why) {
  throw UserError(ExitCode::node_fault,
                  format_message("Slurm does not say which run file this job goes on with, and {}: "
                                 "nothing is started",
                                 why));
}

/// Of a later start of which Slurm does not say it: what the one before it went on with. A run file
/// that its user has changed since may be that of another run. @return nothing where none was kept
std::optional<batch::KeptRun> kept_run_of_chain(const Request& request,
                                                const batch::Attempt& start) {
  fs::path log_dir;
  try {
    log_dir = whole_path(runfile::log_dir_of(request.run_file, request.overrides));
  } catch (const UserError& error) {  // removed, or half saved
    refuse_unknown(error.what());
  }
  const batch::AttemptRecords records = log_in(log_dir).read();
  const batch::Attempt* const last = batch::newest_of_chain(records.attempts, start.start.chain);
  if (last == nullptr) {
    refuse_unknown(format_message("in {}, the log.dir of {} by now, no earlier start of it began",
                                  log_dir.string(), request.run_file));
  }
  if (last->run_file.empty()) {
    return std::nullopt;
  }
  refuse_gone(last->run_file);
  return batch::kept_run_of(last->run_file);
}

std::optional<batch::KeptRun> kept_run(const Request& request, const batch::Attempt& start) {
  if (request.is_later && request.kept_run_file.empty()) {
    return kept_run_of_chain(request, start);
  }
  const std::string named = named_run_file(request);
  refuse_gone(named);
  auto kept = batch::kept_run_of(named);
  if (kept || name_of_chain().empty()) {
    return kept;
  }
  const fs::path log_dir = whole_path(runfile::log_dir_of(named, request.overrides));
  const batch::AttemptRecords records = log_in(log_dir).read();
  // A second one in the same start of a job is a person's, who may have mended the run file.
  return records.find(start.start) != nullptr || is_over(records.attempts, start)
             ? std::nullopt
             : batch::kept_run_named(telemetry::RunFiles(log_dir).submitted(), name_of_chain(),
                                     named);
}

}  // namespace

std::string named_run_file(const Request& request) {
  return request.kept_run_file.empty() ? request.run_file : request.kept_run_file;
}

fs::path log_dir_of(const Request& request) {
  const std::string named = named_run_file(request);
  const fs::path around = log_dir_around(named);
  return around.empty() ? fs::path(runfile::log_dir_of(named, request.overrides)) : around;
}

ChainRun run_of_chain(const Request& request, const batch::Attempt& start) {
  ChainRun run{.run_file = named_run_file(request), .overrides = request.overrides};
  run.kept = kept_run(request, start);
  if (run.kept) {
    run.run_file = run.kept->run_file();
    for (std::string& one : run.kept->overrides(request.overrides)) {
      run.overrides.push_back(std::move(one));
    }
    for (const fs::path& changed : run.kept->changed_origins()) {
      log::info(
          format_message("{} has changed since it was submitted: this chain goes on with what is "
                         "in {}; submit anew to train what it says now",
                         changed.string(), run.kept->folder.string()));
    }
  }
  return run;
}

void refuse_moved(const batch::KeptRun& kept, const runfile::RunConfig& config) {
  std::error_code ignored;
  const fs::path submitted = telemetry::RunFiles(whole_path(config.log.dir)).submitted();
  if (!fs::equivalent(submitted, kept.folder.parent_path(), ignored)) {
    throw UserError(ExitCode::config,
                    format_message("{} was kept in {}, and its log.dir is {}; submit your run file "
                                   "anew",
                                   kept.run_file().string(), kept.folder.parent_path().string(),
                                   config.log.dir));
  }
}

std::optional<batch::KeptRun> keep(const Request& request, const std::string& text,
                                   const runfile::EffectiveConfig& effective) {
  const BatchJob job = BatchJob::of_this_process();
  const std::string chain = environment_text("FOURFOLD_CHAIN");
  if (job.chain != chain) {
    log::warning(
        format_message("FOURFOLD_CHAIN={} is ignored (it is not one word of ASCII)", chain));
  }
  if (job.id.empty() && job.chain.empty()) {
    return std::nullopt;
  }
  const telemetry::RunFiles files(whole_path(effective.config.log.dir));
  const auto why =
      name_of_chain().empty()
          ? std::optional<std::string>(
                "no later start would find it (FOURFOLD_CHAIN has a / in it, or begins with "
                "a dot)")
          : batch::why_not_kept(effective.config.log.dir, request.run_file);
  if (why) {
    log::info(format_message("{} is not kept for later starts, which read it anew: {}",
                             named_run_file(request), *why));
    return std::nullopt;
  }
  return batch::keep_run(files.submitted(), name_of_chain(), named_run_file(request), text,
                         train::run_inputs(effective));
}

std::string kept_lines(const Request& request, const std::optional<batch::KeptRun>& kept) {
  if (!kept) {
    return {};
  }
  std::string lines;
  if (kept->run_file() != request.run_file) {
    lines += fmt::format("--run-file\n{}\n{}\n", request.run_file, kept->run_file().string());
  }
  for (const std::string& one : kept->overrides(request.overrides)) {
    lines += fmt::format("--set\n{}\n", one);
  }
  return lines;
}

void forget_refused(const std::vector<batch::Attempt>& attempts, const batch::Attempt& refused) {
  const auto is_of_it = [&](const batch::Attempt& one) { return one.run_file == refused.run_file; };
  if (!refused.refused || refused.run_file.empty() || name_of_chain().empty() ||
      std::ranges::count_if(attempts, is_of_it) != 1) {
    return;
  }
  const auto kept = batch::kept_run_of(refused.run_file);
  // Not one that `submit` has made, or that a person has changed.
  if (kept && kept->name == name_of_chain() && kept->changed_origins().empty()) {
    batch::forget(*kept);
  }
}

}  // namespace fourfold::job
