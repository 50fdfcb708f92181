// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/retention.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/load_run.hpp>

#include <fmt/ranges.h>

#include <cstdint>
#include <optional>
#include <ranges>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace fourfold::train {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code failure;
  return fs::is_directory(path, failure);
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UserError(ExitCode::config,
                  format_message("{}: is no checkpoint ({}); name a step, a folder of steps, a "
                                 "run's folder or its run file",
                                 path, why));
}

/// A run file says where its checkpoints are.
fs::path of_run_file(const std::string& path) {
  constexpr std::uintmax_t most_bytes = std::uintmax_t{16} << 20;
  std::error_code failure;
  if (fs::file_size(path, failure) > most_bytes || failure) {
    refuse(path, "it is a file, and too large for a run file");
  }
  try {
    return runfile::places_of(path).checkpoint_dir;
  } catch (const UserError& error) {
    refuse(path, format_message("it is a file, and no run file: {}", MadeLines{error.what()}));
  }
}

/// What the newest step that can be read was made by.
std::optional<std::string> saved_run_file(const fs::path& steps) {
  for (const fs::path& step : std::views::reverse(io::step_folders(steps))) {
    try {
      std::string text;
      comm::run_ranks(1, [&](comm::Communicator& self) {
        text = io::open_checkpoint(step, self).scalars().text(runfile::config_text_name);
      });
      return text;
    } catch (const UserError&) {  // what is wrong with it is for its reader to say
      continue;
    }
  }
  return std::nullopt;
}

/// A run file as a start would have it; where its token files have gone, without what these say.
runfile::EffectiveConfig loaded(const std::string& file, const runfile::RunConfig& saved,
                                const std::string& saved_text) {
  std::optional<runfile::EffectiveConfig> whole;
  comm::capture_failure(
      [&] { whole = load_run(file, {}, [&](const std::string& /*path*/) { return saved_text; }); });
  return whole ? *whole
               : runfile::load_run_config(
                     file, {},
                     [&](const runfile::CheckpointConfig& /*of*/)
                         -> std::optional<model::Architecture> { return saved.model.resolved(); });
}

/// The keys of a run file that steps contradict. @throws UserError where it is no run file
std::vector<std::string> contradictions(const std::string& file, const std::string& saved,
                                        runfile::OnResume most) {
  const runfile::RunConfig before = runfile::parse_saved_config(saved, file);
  const runfile::EffectiveConfig written = loaded(file, before, saved);
  const auto vocab = written.origins.find("model.vocab");
  const bool has_vocab = vocab == written.origins.end() ||
                         vocab->second.source != runfile::Origin::Source::default_value;
  std::vector<std::string> found;
  for (const runfile::ConfigChange& change : runfile::config_difference(saved, written.config)) {
    if (change.rule > most && (change.key != "model.vocab" || has_vocab)) {
      found.push_back(change.str());
    }
  }
  return found;
}

/// A run file's paths are read from the working directory, where another run may have its own of
/// that name: what two places say of one run is compared.
void refuse_steps_of_another(const std::string& file, const fs::path& steps,
                             runfile::OnResume most) {
  const std::optional<std::string> saved = saved_run_file(steps);
  if (!saved) {
    return;
  }
  std::vector<std::string> found;
  try {
    found = contradictions(file, *saved, most);
  } catch (const UserError& error) {
    throw UserError(ExitCode::config,
                    format_message("{}: whether the checkpoints in {} are its own cannot be told "
                                   "({}); name the folder of the steps that are meant",
                                   file, steps.string(), MadeLines{error.what()}));
  }
  if (!found.empty()) {
    throw UserError(
        ExitCode::config,
        format_message("{}: {}, where it keeps its checkpoints as seen from here, has those of "
                       "another configuration (there -> here: {}); work in the folder it belongs "
                       "to, or name the folder of the steps that are meant",
                       file, steps.string(), fmt::join(found, "; ")));
  }
}

bool is_run_folder(const fs::path& folder) {
  std::error_code failure;
  return fs::exists(telemetry::RunFiles(folder).config(), failure) ||
         is_folder(folder / runfile::checkpoints_in_log_dir);
}

fs::path of_run(const std::string& path) {
  const fs::path beside = fs::path(path) / runfile::checkpoints_in_log_dir;
  const fs::path config = telemetry::RunFiles(path).config();
  std::error_code failure;
  if (!fs::exists(config, failure)) {
    return beside;
  }
  const runfile::RunPlaces places = runfile::places_of(config);
  if (fs::equivalent(places.log_dir, path, failure)) {
    return places.checkpoint_dir;
  }
  if (is_folder(beside)) {
    return beside;
  }
  if (!fs::path(places.checkpoint_dir).is_absolute()) {
    refuse(path, format_message("it is the folder of a run whose checkpoint.dir was {}, as seen "
                                "from where it was started",
                                places.checkpoint_dir));
  }
  return places.checkpoint_dir;
}

/// What stands before ":best" or ":latest", where nothing has the whole name.
std::optional<std::string> before_word(const std::string& path, std::string_view word) {
  std::error_code failure;
  if (!path.ends_with(word) || fs::exists(fs::symlink_status(path, failure))) {
    return std::nullopt;
  }
  return path.substr(0, path.size() - word.size());
}

/// "RUN:best" is a step, "RUN:latest" the same as "RUN".
std::optional<fs::path> by_word(const std::string& path, runfile::OnResume most) {
  const auto latest = before_word(path, ":latest");
  const auto best = before_word(path, ":best");
  if (!latest && !best) {
    return std::nullopt;
  }
  fs::path steps = checkpoints_named(latest ? *latest : *best, most);
  if (io::is_step(steps)) {
    refuse(path, format_message("{} is one step, of which there is neither a best nor a latest",
                                steps.string()));
  }
  if (latest) {
    return steps;
  }
  auto step = io::best_step(steps);
  if (!step) {
    refuse(path, format_message("no step in {} notes a validation loss: a run notes one at steps "
                                "that are saved and evaluated",
                                steps.string()));
  }
  return step;
}

bool holds_steps(const fs::path& folder) {
  return !io::list_steps(folder).empty() || !io::passed_over_in(folder).empty();
}

}  // namespace

fs::path checkpoints_named(const std::string& path, runfile::OnResume most) {
  if (auto found = by_word(path, most)) {
    return *std::move(found);
  }
  std::error_code failure;
  const fs::file_status found = fs::status(path, failure);
  if (fs::is_regular_file(found)) {
    const fs::path folder = fs::path(path).parent_path();
    // The record of a run is of the folder it lies in, also in a copy of that.
    const bool is_record = telemetry::RunFiles(folder).config() == path &&
                           is_folder(folder / runfile::checkpoints_in_log_dir);
    const fs::path steps = is_record ? of_run(folder.string()) : of_run_file(path);
    refuse_steps_of_another(path, steps, most);
    return steps;
  }
  if (!fs::is_directory(found)) {
    refuse(path, fs::exists(found) ? "it is neither a folder nor a file"
                 : fs::is_symlink(fs::symlink_status(path, failure))
                     ? format_message("it is a link to {}, which cannot be reached",
                                      fs::read_symlink(path, failure).string())
                     : "there is no such folder or file");
  }
  return !io::is_step(path) && !holds_steps(path) && is_run_folder(path) ? of_run(path)
                                                                         : fs::path(path);
}

fs::path checkpoints_named(const std::string& path, comm::Communicator& communicator) {
  std::string named;
  comm::run_on_root(communicator, [&] { named = checkpoints_named(path).string(); });
  return comm::broadcast_text(communicator, named, 0);
}

io::Checkpoint open_named_checkpoint(const std::string& path, comm::Communicator& communicator) {
  const fs::path named = checkpoints_named(path, communicator);
  std::int64_t is_step = 0;
  comm::run_on_root(communicator, [&] { is_step = io::is_step(named) ? 1 : 0; });
  if (named != path && comm::all_reduce_scalar(communicator, is_step, comm::ReduceOp::max) == 0 &&
      io::newest_step(named, communicator) < 0) {
    comm::run_on_root(communicator, [&] { io::warn_of_passed_over(io::passed_over_in(named)); });
    throw UserError(
        ExitCode::config,
        format_message("{}: the run has no checkpoint ({} holds no step)", path, named.string()));
  }
  return io::find_checkpoint(named, communicator);
}

// Here, and not beside the other load_run(): it takes HDF5 along.
runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides) {
  return load_run(file, overrides, [](const std::string& path) {
    std::string text;
    comm::run_ranks(1, [&](comm::Communicator& self) {
      text = open_named_checkpoint(path, self).scalars().text(runfile::config_text_name);
    });
    return text;
  });
}

}  // namespace fourfold::train
