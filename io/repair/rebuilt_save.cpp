// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "repair/rebuilt_save.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace fourfold::io {
namespace {

/// Both texts: what the file says, and what the others say.
Defect head_defect(const PayloadDescription& head, const PayloadDescription& first,
                   std::string_view first_name) {
  if (head.step != first.step) {
    return fmt::format("is of step {}, and {} is of step {}", head.step, first_name, first.step);
  }
  if (head.mesh != first.mesh) {
    return fmt::format("was saved on mesh {}, and {} on mesh {}", head.mesh.str(), first_name,
                       first.mesh.str());
  }
  if (head.files != first.files) {
    return fmt::format("is one of {} payload files, and {} one of {}", head.files, first_name,
                       first.files);
  }
  if (head.save != first.save) {
    return fmt::format("is of another save than {} (the scalars that they were saved with differ)",
                       first_name);
  }
  return std::nullopt;
}

/// "shard-00001-of-00003.h5", ...: what is not there, where it can be told.
Defect missing_files(std::span<const std::string> names, std::int64_t wanted) {
  if (std::ssize(names) == wanted) {
    return std::nullopt;
  }
  const auto files = payload_number(names.front()).value_or(PayloadNumber{}).files;
  std::vector<std::string> missing;
  for (int file = 0; file < files && files == wanted && missing.size() < 10; ++file) {
    if (!std::ranges::binary_search(names, payload_file_name(file, files))) {
      missing.push_back(payload_file_name(file, files));
    }
  }
  return fmt::format(
      "{} of its {} payload files are there{}", names.size(), wanted,
      missing.empty() ? std::string() : fmt::format(" (missing: {})", fmt::join(missing, ", ")));
}

Defect heads_defect(std::span<const std::string> names,
                    std::span<const PayloadDescription> payloads) {
  for (std::size_t file = 0; file < payloads.size(); ++file) {
    const PayloadDescription& payload = payloads[file];
    if (auto defect = head_defect(payload, payloads[0], names[0])) {
      return fmt::format("{} {}", names[file], *defect);
    }
    if (payload.extents.empty()) {
      return fmt::format("{} holds no part of a tensor", names[file]);
    }
    if (file > 0 && (payload.scalars || !payload.empty_tensors.empty())) {
      return fmt::format("{} holds what only the first payload file does", names[file]);
    }
  }
  if (auto defect = missing_files(names, payloads[0].files)) {
    return defect;
  }
  if (!payloads[0].scalars) {
    return fmt::format("{} has no scalars, so it is not the first payload file of its save",
                       names[0]);
  }
  const PayloadDescription& first = payloads[0];
  const SaveRequest facts{.step = first.step,
                          .mesh = first.mesh,
                          .scalars = *first.scalars,
                          .tensors = {},
                          .pieces = {}};
  if (run_facts_fingerprint(facts) != first.save) {
    return fmt::format("{} is damaged in its scalars", names[0]);
  }
  return std::nullopt;
}

using ExtentsByNumber = std::map<std::int64_t, const PayloadExtent*>;

Defect collect(std::span<const std::string> names, std::span<const PayloadDescription> payloads,
               std::map<TensorId, TensorLayout>& tensors,
               std::map<TensorId, ExtentsByNumber>& extents) {
  for (const StoredTensor& tensor : payloads[0].empty_tensors) {
    tensors[tensor.id] = {tensor.id, tensor.dtype, tensor.shape, {}};
  }
  for (std::size_t file = 0; file < payloads.size(); ++file) {
    for (const PayloadExtent& extent : payloads[file].extents) {
      const StoredTensor& tensor = extent.tensor;
      const TensorLayout layout{tensor.id, tensor.dtype, tensor.shape, {}};
      const TensorLayout& known = tensors.try_emplace(tensor.id, layout).first->second;
      if (known.dtype != tensor.dtype || known.shape != tensor.shape) {
        return fmt::format("{}: tensor {} is {} {} there and {} {} elsewhere", names[file],
                           tensor.id.str(), name(tensor.dtype), tensor.shape.str(),
                           name(known.dtype), known.shape.str());
      }
      if (!extents[tensor.id].emplace(extent.number, &extent).second) {
        return fmt::format("{}: tensor {} b{} is there twice", names[file], tensor.id.str(),
                           extent.number);
      }
    }
  }
  return std::nullopt;
}

/// Adds a tensor to the job, if its extents hold together. @param place  out: of each in the plan
Defect add_tensor(const TensorLayout& layout, const ExtentsByNumber& extents, std::size_t tensor,
                  SaveJob& job, std::map<const PayloadExtent*, std::size_t>& place) {
  std::vector<Box> boxes;
  for (const auto& [number, extent] : extents) {
    if (number != std::ssize(boxes)) {
      return fmt::format("tensor {} has no b{}", layout.id.str(), boxes.size());
    }
    boxes.push_back(extent->box);
    place.emplace(extent, job.plan.extents.size());
    job.plan.extents.push_back({tensor, 0, extent->box, 0});
    job.numbers.push_back(number);
  }
  if (const auto defect = cover_defect(layout.shape, boxes)) {
    return fmt::format("tensor {} {}", layout.id.str(), *defect);
  }
  return std::nullopt;
}

}  // namespace

Defect rebuild_save(std::span<const std::string> names,
                    std::span<const PayloadDescription> payloads,
                    std::vector<TensorLayout>& layouts, SaveJob& job) {
  if (payloads.empty()) {
    return "holds no payload file";
  }
  if (auto defect = heads_defect(names, payloads)) {
    return defect;
  }
  std::map<TensorId, TensorLayout> tensors;
  std::map<TensorId, ExtentsByNumber> extents;
  if (auto defect = collect(names, payloads, tensors, extents)) {
    return defect;
  }
  std::map<const PayloadExtent*, std::size_t> place;
  for (const auto& [id, layout] : tensors) {
    if (auto defect = add_tensor(layout, extents[id], layouts.size(), job, place)) {
      return defect;
    }
    layouts.push_back(layout);
  }
  for (std::size_t file = 0; file < payloads.size(); ++file) {
    PlannedFile& planned = job.files.emplace_back(PlannedFile{names[file], {}});
    for (const PayloadExtent& extent : payloads[file].extents) {
      planned.extents.push_back(place.at(&extent));
    }
  }
  job.step = payloads[0].step;
  job.mesh = payloads[0].mesh;
  job.run_facts = payloads[0].save;
  job.scalars = *payloads[0].scalars;
  job.tensors = layouts;
  return std::nullopt;
}

}  // namespace fourfold::io
