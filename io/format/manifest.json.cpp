// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"

#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/digest.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <string>

namespace fourfold::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view checksum_member = ",\n  \"crc32c\": \"";
/// Of a mesh: what is made for each rank of it has to fit into memory.
constexpr std::int64_t most_ranks = std::int64_t{1} << 24;
constexpr std::string_view end_of_text = "\"\n}\n";
constexpr std::size_t tail_bytes = checksum_member.size() + 8 + end_of_text.size();

std::string hex(std::uint32_t crc) {
  return fmt::format("{:08x}", crc);
}

std::optional<std::uint32_t> crc_from_hex(std::string_view text) {
  std::uint32_t crc = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), crc, 16);
  if (failure != std::errc() || end != text.data() + text.size() || hex(crc) != text) {
    return std::nullopt;  // "A" for "a" would be a flipped bit that nobody sees
  }
  return crc;
}

/// Reads members and remembers the first one that is missing or wrong; yields harmless values then.
class Reader {
 public:
  const Defect& defect() const { return defect_; }
  void fail(const std::string& what) {
    if (!defect_) {
      defect_ = what;
    }
  }

  const Json& member(const Json& object, const char* key) {
    static const Json nothing;
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end()) {
      fail(format_message("has no \"{}\"", key));
      return nothing;
    }
    return *found;
  }
  std::string text(const Json& object, const char* key) {
    const Json& value = member(object, key);
    if (!value.is_string()) {
      fail(format_message("\"{}\" is not a text", key));
      return {};
    }
    return value.get<std::string>();
  }
  std::int64_t integer(const Json& object, const char* key, std::int64_t least) {
    const Json& value = member(object, key);
    const auto number = whole_number_if_any<std::int64_t>(value, least);
    if (!number) {
      fail(format_message("\"{}\" is not a whole number of at least {}", key, least));
    }
    return number.value_or(least);
  }
  std::uint32_t crc(const Json& object, const char* key) {
    const auto value = crc_from_hex(text(object, key));
    if (!value) {
      fail(format_message("\"{}\" is not eight hexadecimal digits", key));
    }
    return value.value_or(0);
  }

 private:
  Defect defect_;
};

void read_files(Reader& reader, const Json& json, Manifest& manifest) {
  const Json& files = reader.member(json, "files");
  if (!files.is_array()) {
    reader.fail("\"files\" is not a list");
    return;
  }
  for (const Json& entry : files) {
    StoredFile file;
    file.name = reader.text(entry, "name");
    file.bytes = reader.integer(entry, "bytes", 1);
    file.crc32c = reader.crc(entry, "crc32c");
    file.table_crc32c = reader.crc(entry, "crc_table_crc32c");
    if (!payload_number(file.name)) {
      reader.fail(format_message("names a file \"{}\", which no payload is called", file.name));
    }
    if (!manifest.files.empty() && manifest.files.back().name >= file.name) {
      reader.fail("\"files\" is not in order of names");
    }
    manifest.files.push_back(std::move(file));
  }
}

void read_digests(Reader& reader, const Json& json, Manifest& manifest) {
  const Json& digests = reader.member(json, "digests");
  if (!digests.is_object()) {
    reader.fail("\"digests\" is not an object");
    return;
  }
  for (const auto& [key, value] : digests.items()) {
    const std::size_t slash = key.rfind('/');
    const auto state = TensorState::from_name(
        slash == std::string::npos ? std::string_view() : std::string_view(key).substr(slash + 1));
    const auto digest = Digest::from_text(value.is_string() ? value.get<std::string>() : "");
    if (!state || !digest) {
      reader.fail(format_message("\"digests\" has a bad entry \"{}\"", key));
      return;
    }
    manifest.digests[{key.substr(0, slash), *state}] = *digest;
  }
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  Json json;
  json["format"] = "fourfold checkpoint";
  json["version"] = format_version;
  json["step"] = manifest.step;
  json["identity"] = manifest.identity;
  json["model"] = manifest.model;
  for (const comm::Axis axis : comm::all_axes) {
    json["mesh"][std::string(name(axis))] = manifest.mesh[axis];
  }
  json["index"] = Json{{"name", index_name},
                       {"bytes", manifest.index_bytes},
                       {"crc32c", hex(manifest.index_crc32c)}};
  json["files"] = Json::array();
  for (const StoredFile& file : manifest.files) {
    json["files"].push_back(Json{{"name", file.name},
                                 {"bytes", file.bytes},
                                 {"crc32c", hex(file.crc32c)},
                                 {"crc_table_crc32c", hex(file.table_crc32c)}});
  }
  json["digests"] = Json::object();
  for (const auto& [id, digest] : manifest.digests) {
    json["digests"][id.str()] = digest.str();
  }
  std::string text = json_text(json, 2);
  text.resize(text.rfind('\n'));  // up to the closing brace
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(text)));
  return text + std::string(checksum_member) + hex(crc) + std::string(end_of_text);
}

Defect manifest_damage(std::string_view text) {
  if (text.size() < tail_bytes || !text.ends_with(end_of_text)) {
    return "does not end with its checksum (it is cut off or was edited)";
  }
  const std::string_view body = text.substr(0, text.size() - tail_bytes);
  const std::string_view tail = text.substr(body.size());
  const auto stored = crc_from_hex(tail.substr(checksum_member.size(), 8));
  if (!tail.starts_with(checksum_member) || stored != crc32c(std::as_bytes(std::span(body)))) {
    return "fails its own CRC-32C (damaged, or edited by hand)";
  }
  return std::nullopt;
}

Defect parse_manifest(std::string_view text, Manifest& manifest) {
  if (Defect damage = manifest_damage(text)) {
    return damage;
  }
  const Json json = json_if_any<Json>(text);
  if (json.is_discarded()) {
    return json_defect<Json>(text);
  }
  Reader reader;
  if (reader.text(json, "format") != "fourfold checkpoint") {
    reader.fail("is not of a fourfold checkpoint");
  }
  if (const auto version = reader.integer(json, "version", 1); version != format_version) {
    reader.fail(format_message("has format version {}, and this program reads {}", version,
                               format_version));
  }
  manifest = {};
  manifest.step = reader.integer(json, "step", 0);
  manifest.identity = reader.text(json, "identity");
  manifest.model = reader.text(json, "model");
  const Json& mesh = reader.member(json, "mesh");
  std::int64_t ranks = 1;
  for (const comm::Axis axis : comm::all_axes) {
    const std::int64_t degree = reader.integer(mesh, std::string(name(axis)).c_str(), 1);
    if (degree > most_ranks / ranks) {
      reader.fail(format_message("has a \"mesh\" of more than {} ranks", most_ranks));
      break;
    }
    ranks *= degree;
    manifest.mesh[axis] = static_cast<int>(degree);
  }
  const Json& index = reader.member(json, "index");
  manifest.index_bytes = reader.integer(index, "bytes", 1);
  manifest.index_crc32c = reader.crc(index, "crc32c");
  if (reader.text(index, "name") != index_name) {
    reader.fail(format_message("names another index than {}", index_name));
  }
  read_files(reader, json, manifest);
  read_digests(reader, json, manifest);
  return reader.defect();
}

}  // namespace fourfold::io
