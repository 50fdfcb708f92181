// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/train/load_run.hpp>

#include <fmt/format.h>

#include <chrono>
#include <system_error>

namespace fourfold::ckpt {
namespace {

struct Named {
  std::filesystem::path folder;
  bool is_listed = false;   ///< as a step of a folder of steps
  std::string defect = {};  ///< of an entry that has the name of a step and is none
};

/// The step folders that a user names: of a folder of steps all, oldest first, then what was to be
/// one. Entries of other names are warned of.
std::vector<Named> folders_of(const std::vector<std::string>& paths) {
  std::vector<Named> folders;
  for (const std::string& name : paths) {
    const std::filesystem::path path = train::checkpoints_named(name);
    const std::size_t before = folders.size();
    for (const std::filesystem::path& step : io::step_folders(path)) {
      folders.push_back({step, true});
    }
    std::vector<io::PassedOver> others = io::passed_over_in(path);
    std::erase_if(others, [&](const io::PassedOver& entry) {
      if (entry.step) {
        folders.push_back({entry.path, true, entry.why});
      }
      return entry.step.has_value();
    });
    io::warn_of_passed_over(others);
    if (folders.size() == before) {
      folders.push_back({path});
    }
  }
  return folders;
}

std::int64_t file_bytes(const io::Checkpoint& checkpoint) {
  std::int64_t bytes = 0;
  for (const io::StoredFile& file : io::files_of(checkpoint)) {
    bytes += file.bytes;
  }
  return bytes;
}

void read_all(const io::Checkpoint& checkpoint, comm::Communicator& self,
              program::Progress& progress, Verified& result) {
  const std::int64_t total = file_bytes(checkpoint);
  const auto start = std::chrono::steady_clock::now();
  result.damage = io::verify(checkpoint, self, [&](std::int64_t bytes) {
    result.bytes += bytes;
    progress.show(result.bytes, total, checkpoint.path().filename().string());
  });
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print(const Verified& step, bool deep) {
  if (step.is_gone) {
    program::print("{}: was removed meanwhile\n", step.path.string());
  } else if (!step.damage.empty()) {
    program::print("{}: DAMAGED\n", step.path.string());
    for (const std::string& line : step.damage) {
      program::print("  {}\n", line);
    }
  } else if (deep) {
    program::print("{}: intact ({} read, {})\n", step.path.string(),
                   telemetry::bytes_text(step.bytes), rate_text(step.bytes, step.seconds));
  } else {
    program::print("{}: manifest, index, names and sizes hold (--deep reads the tensors)\n",
                   step.path.string());
  }
}

/// @throws UserError (config) when there is no checkpoint at all
Verified verify_step(const std::filesystem::path& folder, bool deep, program::Progress& progress) {
  Verified result{.path = folder, .damage = {}};
  comm::run_ranks(1, [&](comm::Communicator& self) {
    try {
      const io::Checkpoint checkpoint = io::open_checkpoint(folder, self);
      result.step = checkpoint.step();
      if (deep) {
        read_all(checkpoint, self, progress, result);
      }
    } catch (const UserError& error) {
      if (error.code() != ExitCode::data_corrupt) {
        throw;
      }
      result.damage.emplace_back(error.what());
    }
  });
  return result;
}

}  // namespace

Verified verify_listed_step(const std::filesystem::path& folder, bool deep,
                            program::Progress& progress) {
  Verified result{.path = folder, .damage = {}};
  std::error_code ignored;
  try {
    result = verify_step(folder, deep, progress);
  } catch (const UserError& error) {
    // With a manifest it is no damage: memory of this host is short, for example.
    if (error.code() != ExitCode::config ||
        std::filesystem::exists(folder / "MANIFEST.json", ignored)) {
      throw;
    }
    result.damage.emplace_back(error.what());
  }
  // A run that goes on lets old steps go: what is not there any more was not damaged.
  // A link that leads nowhere is there.
  result.is_gone =
      !result.damage.empty() && std::filesystem::symlink_status(folder, ignored).type() ==
                                    std::filesystem::file_type::not_found;
  if (result.is_gone) {
    result.damage.clear();
  }
  return result;
}

ExitCode verify(const Request& request) {
  program::Progress progress(request.progress, "verified");
  std::vector<Verified> steps;
  bool damaged = false;
  for (const auto& [folder, is_listed, defect] : folders_of(request.checkpoints)) {
    if (!defect.empty()) {
      steps.push_back({.path = folder, .damage = {defect}});
    } else {
      steps.push_back(is_listed ? verify_listed_step(folder, request.deep, progress)
                                : verify_step(folder, request.deep, progress));
    }
    progress.finish();
    damaged = damaged || !steps.back().damage.empty();
    if (!request.json) {
      print(steps.back(), request.deep);
    }
  }
  if (request.json) {
    program::print_text(verified_json(steps) + "\n");
  }
  return damaged ? ExitCode::data_corrupt : ExitCode::finished;
}

}  // namespace fourfold::ckpt
