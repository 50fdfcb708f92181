// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"
#include "repair/rebuilt_save.hpp"
#include "save/step_commit.hpp"
#include "step/checkpoint_read.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/hdf5_version.hpp>
#include <fourfold/io/index_repair.hpp>

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace fourfold::io {
namespace {

[[noreturn]] void refuse_payloads(const DamagedStep& step, const std::string& what) {
  refuse_repair(step.folder, what + "; only what is made of whole payloads can be rebuilt");
}

InputFile open_payload(const DamagedStep& step, const std::string& name) {
  InputFile file;
  if (const auto defect = file.open(step.folder / name)) {
    refuse_payloads(step, format_message("{} {}", name, *defect));
  }
  return file;
}

/// @pre the manifest is intact
void check_whole_files(const DamagedStep& step, const OnRead& on_read) {
  for (const StoredFile& expected : step.manifest->files) {
    const InputFile file = open_payload(step, expected.name);
    if (file.size_bytes() != expected.bytes) {
      refuse_payloads(step, format_message("{} has {} bytes instead of {}", expected.name,
                                           file.size_bytes(), expected.bytes));
    }
    std::uint32_t crc = 0;
    if (const auto defect = crc_of_part(file, 0, expected.bytes, on_read, crc)) {
      refuse_payloads(step, format_message("{} {}", expected.name, *defect));
    }
    if (crc != expected.crc32c) {
      refuse_payloads(
          step, format_message("{} is damaged, or of another checkpoint (its CRC-32C is not that "
                               "of the manifest)",
                               expected.name));
    }
  }
}

/// Reads the payloads of a step and makes the other two files of them.
SealedStep rebuild(const DamagedStep& step, const OnRead& on_read) {
  if (step.manifest) {  // HDF5 is to see no damaged file
    check_whole_files(step, on_read);
  }
  std::vector<PayloadDescription> payloads(step.payloads.size());
  for (std::size_t file = 0; file < payloads.size(); ++file) {
    const std::string& name = step.payloads[file];
    if (const auto defect = describe_payload(open_payload(step, name), payloads[file])) {
      refuse_payloads(step, format_message("{} {}", name, *defect));
    }
  }
  std::vector<TensorLayout> layouts;
  SaveJob job;
  if (const auto defect = rebuild_save(step.payloads, payloads, layouts, job)) {
    refuse_payloads(step, *defect);
  }
  const auto named = step_of_folder(step.folder.filename().string());
  if (named && *named != job.step) {
    refuse_repair(step.folder, format_message("its payloads are of step {}; rename the folder to "
                                              "{} if that is what it is",
                                              job.step, step_folder_name(job.step)));
  }
  std::vector<WrittenPayload> written(job.files.size());
  for (std::size_t file = 0; file < job.files.size(); ++file) {
    if (const auto defect =
            check_payload(step.folder, job, job.files[file], on_read, written[file])) {
      refuse_payloads(step, *defect);
    }
  }
  SealedStep made = seal_step(job, written);
  const Inspection read = parse_contents(step.folder, made.manifest_text, made.index_bytes);
  if (read.defect) {
    refuse_payloads(step, format_message("the payloads make no checkpoint: {}", *read.defect));
  }
  return made;
}

/// The first line in which two manifests differ: "... instead of ...".
std::string first_difference(std::string_view made, std::string_view expected) {
  const auto next_line = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line.substr(std::min(line.size(), line.find_first_not_of(' ')));
  };
  while (!made.empty() || !expected.empty()) {
    const std::string_view a = next_line(made);
    const std::string_view b = next_line(expected);
    if (a != b) {
      return fmt::format("{} instead of {}", a, b);
    }
  }
  return "nothing";
}

/// What LATEST says of what was made; "" when it is proof.
std::string doubt_of_latest(const DamagedStep& step, const SealedStep& made) {
  const std::string wanted =
      latest_text(made.manifest.step, made.manifest.identity, made.manifest_text);
  std::string present;
  if (read_file(step.folder.parent_path() / "LATEST", 4096, present) ||
      !present.starts_with(fmt::format("{} ", made.manifest.step))) {
    return "LATEST names no such step";
  }
  return present == wanted ? "" : "LATEST names another identity or manifest for the step";
}

/// @throws UserError (data_corrupt) when there is none and payloads are not to be trusted
RepairProof proof_of(const DamagedStep& step, const SealedStep& made,
                     const RepairOptions& options) {
  if (step.manifest) {
    if (made.manifest_text != step.manifest_text) {
      refuse_repair(
          step.folder,
          format_message("the payloads make another checkpoint than the manifest says: {} "
                         "(a version of HDF5 other than {} may have written it: repair it "
                         "with that one)",
                         first_difference(made.manifest_text, step.manifest_text), hdf5_version()));
    }
    return RepairProof::manifest;
  }
  if (made.index_bytes == step.index_bytes) {
    return RepairProof::index;
  }
  const std::string doubt = doubt_of_latest(step, made);
  if (doubt.empty()) {
    return RepairProof::latest;
  }
  if (!options.trust_payloads) {
    refuse_repair(
        step.folder,
        format_message("the payloads are whole, but nothing proves that they are of one "
                       "save: {}, {}, and {}; restore one of the files from a copy, or pass "
                       "--trust-payloads if nobody has moved payloads between folders",
                       *step.manifest_damage,
                       step.index_damage.value_or("index.h5 is not what they make"), doubt));
  }
  return RepairProof::none;
}

/// Puts the files in place while no other job is at work there.
void put(const DamagedStep& step, const SealedStep& made, const std::vector<std::string>& names) {
  const std::filesystem::path listed_in = step.folder.parent_path();
  const std::filesystem::path lies_in = std::filesystem::canonical(step.folder).parent_path();
  const DirectoryLease lease(lies_in, LeaseHolder::this_process());
  std::optional<DirectoryLease> of_list;  // the step is a link there
  if (!std::filesystem::equivalent(listed_in, lies_in)) {
    of_list.emplace(listed_in, LeaseHolder::this_process());
  }
  const DamagedStep now = look_at_step(step.folder);
  if (now.manifest_text != step.manifest_text || now.index_bytes != step.index_bytes ||
      now.payloads != step.payloads) {
    refuse_repair(step.folder, "another job has changed it meanwhile; look at it again");
  }
  for (const std::string& name : names) {
    replace_in_step(step.folder, made.manifest.step, name,
                    name == index_name ? made.index_bytes : made.manifest_text, [&] {
                      lease.check();
                      if (of_list) {
                        of_list->check();
                      }
                    });
  }
}

/// Of a step in which neither index nor manifest is damaged.
RepairReport nothing_to_do(const DamagedStep& step) {
  const Inspection found = inspect(step.folder);
  if (found.defect) {
    refuse_repair(step.folder,
                  format_message("{}; index and manifest hold, and payloads cannot be rebuilt: "
                                 "restore from a copy",
                                 *found.defect));
  }
  const Manifest& manifest = found.contents->manifest;
  return {.path = step.folder,
          .step = manifest.step,
          .identity = manifest.identity,
          .damage = {},
          .rebuilt = {}};
}

}  // namespace

std::string_view name(RepairProof proof) noexcept {
  switch (proof) {
    case RepairProof::not_needed:
      return "not needed";
    case RepairProof::manifest:
      return "manifest";
    case RepairProof::index:
      return "index";
    case RepairProof::latest:
      return "latest";
    case RepairProof::none:
      break;
  }
  return "none";
}

RepairReport repair_index(const std::filesystem::path& step_folder, const RepairOptions& options) {
  const DamagedStep step = look_at_step(step_folder);
  if (step.manifest && !step.index_damage) {
    return nothing_to_do(step);
  }
  std::int64_t total_bytes = 0;
  for (const std::string& name : step.payloads) {
    total_bytes += open_payload(step, name).size_bytes() * (step.manifest ? 2 : 1);
  }
  std::int64_t done_bytes = 0;
  const SealedStep made = rebuild(step, [&](std::int64_t bytes) {
    done_bytes += bytes;
    if (options.progress) {
      options.progress(done_bytes, total_bytes);
    }
  });
  RepairReport report{.path = step.folder,
                      .step = made.manifest.step,
                      .identity = made.manifest.identity,
                      .damage = {},
                      .rebuilt = {},
                      .proof = proof_of(step, made, options),
                      .bytes_read = done_bytes};
  if (made.index_bytes != step.index_bytes) {
    report.damage.push_back(
        step.index_damage.value_or(format_message("{} is not what the payloads make", index_name)));
    report.rebuilt.emplace_back(index_name);
  }
  if (step.manifest_damage) {  // the last: it makes the folder a checkpoint
    report.damage.push_back(*step.manifest_damage);
    report.rebuilt.emplace_back(manifest_name);
  }
  if (!options.dry_run) {
    put(step, made, report.rebuilt);
  }
  return report;
}

}  // namespace fourfold::io
