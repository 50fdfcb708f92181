// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/train/load_run.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fourfold::ckpt {
namespace {

const char* meaning_of(io::RepairProof proof) {
  switch (proof) {
    case io::RepairProof::not_needed:
      return "";
    case io::RepairProof::manifest:
      return "proven by MANIFEST.json, which is intact and has the CRC-32C of every file";
    case io::RepairProof::index:
      return "proven by index.h5, which is byte for byte what the payloads make";
    case io::RepairProof::latest:
      return "proven by LATEST, which has the step's identity and the CRC-32C of its manifest";
    case io::RepairProof::none:
      break;
  }
  return "NOT PROVEN: checksums of all chunks hold, tensors are covered once, and payloads agree "
         "on step, mesh and scalars; nothing shows that they are of one save";
}

void print(const io::RepairReport& report, bool dry_run) {
  if (report.rebuilt.empty()) {
    program::print("{}: manifest, index, names and sizes hold: there is nothing to repair\n",
                   report.path.string());
    return;
  }
  program::print("{}: step {}\n", report.path.string(), report.step);
  for (const std::string& line : report.damage) {
    program::print("  {}\n", line);
  }
  program::print("{} {} ({} of payloads read)\n{}\n", dry_run ? "would make again" : "made again",
                 fmt::join(report.rebuilt, " and "), telemetry::bytes_text(report.bytes_read),
                 meaning_of(report.proof));
}

/// Of a folder of steps the newest that does not hold together; the newest, where all do.
std::filesystem::path damaged_step(const std::filesystem::path& named) {
  const std::vector<std::filesystem::path> steps = io::step_folders(named);
  program::Progress quiet(ProgressMode::none, "");
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (!verify_listed_step(*step, false, quiet).damage.empty()) {
      return *step;
    }
  }
  return steps.empty() ? named : steps.back();
}

}  // namespace

ExitCode repair_index(const Request& request) {
  const std::filesystem::path folder = damaged_step(train::checkpoints_named(request.checkpoint));
  program::Progress progress(request.progress, "checked");
  const io::RepairReport report = io::repair_index(
      folder,
      {.dry_run = request.dry_run,
       .trust_payloads = request.trust_payloads,
       .progress = [&](std::int64_t done, std::int64_t total) { progress.show(done, total); }});
  progress.finish();
  if (request.json) {
    program::print_text(repair_json(report, request.dry_run) + "\n");
  } else {
    print(report, request.dry_run);
  }
  return ExitCode::finished;
}

}  // namespace fourfold::ckpt
