// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/train/exit_status.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace fourfold::train {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes that are not UTF-8 (a file name, say) are replaced instead of refused: the file must be
/// written.
std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool is_exit_status(const Json& json) {
  return json.is_object() && json.contains("code") && json["code"].is_number_integer() &&
         json.contains("reason") && json["reason"].is_string() && json.contains("step") &&
         json["step"].is_number_integer() && json.contains("checkpoint") &&
         json["checkpoint"].is_string() && json.contains("bad_nodes") &&
         json["bad_nodes"].is_array() && std::ranges::all_of(json["bad_nodes"], &Json::is_string);
}

}  // namespace

bool worth_retrying(ExitCode code) noexcept {
  return code == ExitCode::stopped_saved || code == ExitCode::node_fault || code == ExitCode::hang;
}

void write_exit_status(const std::filesystem::path& file, const ExitStatus& status) {
  Json json;
  json["code"] = static_cast<int>(status.code);
  json["reason"] = status.reason;
  json["step"] = status.step;
  json["checkpoint"] = status.checkpoint;
  json["bad_nodes"] = status.bad_nodes;
  json["retry"] = worth_retrying(status.code);
  io::AtomicFile out(file);
  out.write(dump(json));
  out.publish();
}

std::optional<ExitStatus> read_exit_status(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Json json = Json::parse(text, nullptr, false);
  if (!is_exit_status(json)) {
    return std::nullopt;
  }
  return ExitStatus{static_cast<ExitCode>(json["code"].get<int>()), json["reason"], json["step"],
                    json["checkpoint"], json["bad_nodes"]};
}

}  // namespace fourfold::train
