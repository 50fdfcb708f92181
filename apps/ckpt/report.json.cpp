// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/json_text.hpp>
#include <fourfold/io/checkpoint.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <string>

namespace fourfold::ckpt {
namespace {

using nlohmann::ordered_json;

ordered_json numbers(const Shape& shape) {
  ordered_json list = ordered_json::array();
  for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
    list.push_back(shape[dim]);
  }
  return list;
}

ordered_json axes_of(const comm::MeshShape& mesh) {
  ordered_json json;
  for (const comm::Axis axis : comm::all_axes) {
    json[std::string(name(axis))] = mesh[axis];
  }
  return json;
}

/// JSON has no number for what is not finite.
ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json scalars_of(const io::CheckpointScalars& scalars) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : scalars.integers) {
    object[name] = value;
  }
  for (const auto& [name, value] : scalars.reals) {
    object[name] = number(value);
  }
  for (const auto& [name, text] : scalars.texts) {
    object[name] = text;
  }
  return object;
}

ordered_json summary_of(const io::Checkpoint& checkpoint) {
  return {{"path", checkpoint.path().string()},
          {"step", checkpoint.step()},
          {"identity", checkpoint.identity()},
          {"mesh", axes_of(checkpoint.mesh())},
          {"tensor_bytes", io::payload_bytes(checkpoint)},
          {"files", io::files_of(checkpoint).size()}};
}

ordered_json tensor_of(const io::Checkpoint& checkpoint, const io::StoredTensor& tensor) {
  ordered_json boxes = ordered_json::array();
  for (const io::StoredBox& box : io::boxes_of(checkpoint, tensor)) {
    boxes.push_back({{"offset", numbers(box.box.offset)},
                     {"extent", numbers(box.box.extent)},
                     {"file", box.file},
                     {"dataset", box.dataset},
                     {"byte_offset", box.byte_offset},
                     {"bytes", box.bytes}});
  }
  return {{"name", tensor.id.name},
          {"state", tensor.id.state.name()},
          {"dtype", name(tensor.dtype)},
          {"shape", numbers(tensor.shape)},
          {"bytes", io::payload_bytes(tensor)},
          {"digest", tensor.digest.str()},
          {"boxes", std::move(boxes)}};
}

ordered_json or_null(std::optional<std::int64_t> step) {
  return step ? ordered_json(*step) : ordered_json(nullptr);
}

/// Texts and paths may hold bytes that are no UTF-8.
std::string dumped(const ordered_json& json) {
  return json_text(json, 2);
}

std::string_view text_of(io::TensorDifference::Kind kind) {
  using Kind = io::TensorDifference::Kind;
  switch (kind) {
    case Kind::only_in_a:
      return "only in a";
    case Kind::only_in_b:
      return "only in b";
    case Kind::other_type:
      return "other type";
    case Kind::other_values:
      break;
  }
  return "other values";
}

ordered_json difference_of(const io::TensorDifference& tensor) {
  ordered_json object{{"name", tensor.id.name},
                      {"state", tensor.id.state.name()},
                      {"difference", text_of(tensor.kind)}};
  if (!tensor.detail.empty()) {
    object["detail"] = tensor.detail;
  }
  if (tensor.different == 0) {
    return object;
  }
  object["elements"] = tensor.elements;
  object["different"] = tensor.different;
  object["max_abs"] = number(tensor.max_abs);
  object["rms"] = number(tensor.rms);
  object["largest"] = ordered_json::array();
  for (const io::ElementPair& pair : tensor.largest) {
    object["largest"].push_back(
        {{"index", pair.index}, {"a", number(pair.a)}, {"b", number(pair.b)}});
  }
  return object;
}

}  // namespace

std::string info_json(const io::Checkpoint& checkpoint) {
  ordered_json object = summary_of(checkpoint);
  object["scalars"] = scalars_of(checkpoint.scalars());
  object["files"] = ordered_json::array();
  for (const io::StoredFile& file : io::files_of(checkpoint)) {
    object["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  object["tensors"] = ordered_json::array();
  for (const io::StoredTensor& tensor : checkpoint.tensors()) {
    object["tensors"].push_back(tensor_of(checkpoint, tensor));
  }
  return dumped(object);
}

std::string steps_json(const std::filesystem::path& folder,
                       const std::vector<io::Checkpoint>& steps) {
  ordered_json list = ordered_json::array();
  for (const io::Checkpoint& step : steps) {
    list.push_back(summary_of(step));
  }
  return dumped({{"path", folder.string()}, {"steps", std::move(list)}});
}

std::string verified_json(const std::vector<Verified>& steps) {
  ordered_json list = ordered_json::array();
  for (const Verified& step : steps) {
    list.push_back(
        {{"path", step.path.string()},
         {"step", step.step < 0 ? ordered_json(nullptr) : ordered_json(step.step)},
         {"intact", step.is_gone ? ordered_json(nullptr) : ordered_json(step.damage.empty())},
         {"removed_meanwhile", step.is_gone},
         {"damage", step.damage},
         {"bytes_read", step.bytes}});
  }
  return dumped(list);
}

std::string repair_json(const io::RepairReport& report, bool dry_run) {
  return dumped({{"path", report.path.string()},
                 {"step", report.step},
                 {"identity", report.identity},
                 {"damage", report.damage},
                 {"rebuilt", report.rebuilt},
                 {"proof", io::name(report.proof)},
                 {"dry_run", dry_run},
                 {"bytes_read", report.bytes_read}});
}

std::string written_json(const Written& written, const io::Checkpoint& of) {
  return dumped({{"path", written.path.string()},
                 {"from", of.path().string()},
                 {"step", of.step()},
                 {"identity", of.identity()},
                 {"mesh", written.mesh ? axes_of(*written.mesh) : ordered_json(nullptr)},
                 {"tensor_bytes", io::payload_bytes(of)},
                 {"files", written.files},
                 {"dry_run", written.dry_run},
                 {"seconds", written.seconds}});
}

std::string removed_json(const Removed& removed) {
  ordered_json passed_over = ordered_json::array();
  for (const io::PassedOver& entry : removed.passed_over) {
    passed_over.push_back({{"path", entry.path.string()}, {"why", entry.why}});
  }
  return dumped({{"path", removed.directory.string()},
                 {"steps", removed.steps},
                 {"passed_over", std::move(passed_over)},
                 {"leftovers", removed.leftovers},
                 {"newest_intact", or_null(removed.intact)},
                 {"spared", or_null(removed.is_spared ? removed.intact : std::nullopt)},
                 {"dry_run", removed.dry_run}});
}

std::string diff_json(const io::CheckpointDifferences& differences) {
  ordered_json tensors = ordered_json::array();
  for (const io::TensorDifference& tensor : differences.tensors) {
    tensors.push_back(difference_of(tensor));
  }
  return dumped({{"equal", differences.none()},
                 {"scalars", differences.scalars},
                 {"tensors", std::move(tensors)}});
}

}  // namespace fourfold::ckpt
