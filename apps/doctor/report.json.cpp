// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "examination.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

namespace fourfold::doctor {
namespace {

using Json = nlohmann::ordered_json;

Json checks_of(const Examination& examination) {
  Json array = Json::array();
  for (const Check& check : examination.checks) {
    array.push_back({{"name", check.name()},
                     {"status", name(check.status())},
                     {"summary", check.summary()},
                     {"findings", check.findings()},
                     {"bad_nodes", check.bad_nodes()}});
  }
  return array;
}

Json ranks_of(const Examination& examination) {
  Json array = Json::array();
  for (std::size_t rank = 0; rank < examination.ranks.facts.size(); ++rank) {
    const RankFacts& facts = examination.ranks.facts[rank];
    const RankSpeed& speed = examination.speeds[rank];
    array.push_back({{"rank", rank},
                     {"node", examination.ranks.nodes[rank]},
                     {"host", facts.host},
                     {"cores", facts.cores},
                     {"threads", facts.threads},
                     {"memory_bytes", facts.memory_bytes},
                     {"available_bytes", facts.available_bytes},
                     {"needed_bytes", facts.needed_bytes},
                     {"products_gflops", speed.products_gflops},
                     {"triad_gb_s", speed.triad_gb_s},
                     {"cores_had", speed.cores_had}});
  }
  return array;
}

Json groups_of(const Examination& examination) {
  Json array = Json::array();
  for (const LineSpeed& line : examination.lines) {
    array.push_back({{"axis", line.axis},
                     {"ranks", line.ranks},
                     {"latency_us", 1e6 * line.latency_s},
                     {"bus_gb_s", line.bus_gb_s},
                     {"bytes", line.bytes},
                     {"wrong_elements", line.wrong_elements}});
  }
  return array;
}

Json gpus_of(const NodeGpus& node) {
  Json array = Json::array();
  for (const GpuFacts& gpu : node.gpus) {
    array.push_back({{"index", gpu.index},
                     {"uuid", gpu.uuid},
                     {"name", gpu.name},
                     {"driver", gpu.driver},
                     {"temperature_c", gpu.temperature_c},
                     {"used_mib", gpu.used_mib},
                     {"total_mib", gpu.total_mib},
                     {"uncorrected_errors", gpu.uncorrected_errors},
                     {"slowed_by", gpu.slowed_by}});
  }
  return array;
}

Json nodes_of(const Examination& examination) {
  const std::vector<std::string> nodes = examination.ranks.distinct_nodes();
  const std::vector<double> links = best_link_of_nodes(examination.links, nodes.size());
  Json array = Json::array();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    array.push_back({{"node", nodes[i]},
                     {"clock_offset_s", examination.clocks[i].offset_s},
                     {"best_link_gb_s", links[i]},
                     {"gpus", gpus_of(examination.gpus[i])}});
  }
  return array;
}

Json directories_of(const Examination& examination) {
  const std::vector<std::string> names = examination.ranks.distinct_nodes();
  Json array = Json::array();
  for (std::size_t i = 0; i < examination.directories.size(); ++i) {
    const Directory& directory = examination.needs.directories[i];
    Json nodes = Json::array();
    for (std::size_t node = 0; node < names.size(); ++node) {
      const DirectoryFacts& facts = examination.directories[i][node];
      if (directory.use == Directory::Use::first_rank && node > 0) {
        break;
      }
      nodes.push_back({{"node", names[node]},
                       {"probed", facts.probed},
                       {"problem", facts.problem},
                       {"bytes", facts.bytes},
                       {"write_s", facts.write_s},
                       {"read_s", facts.read_s},
                       {"has_links", facts.has_links},
                       {"free_bytes", facts.free_bytes},
                       {"free_files", facts.free_files}});
      if (directory.use == Directory::Use::shared) {
        nodes.back()["sees_first"] = facts.sees_first;
        nodes.back()["sees_second"] = facts.sees_second;
        nodes.back()["seen_s"] = facts.seen_s;
      }
    }
    array.push_back({{"key", directory.key},
                     {"path", directory.path},
                     {"needed_bytes", directory.needed_bytes},
                     {"needed_files", directory.needed_files},
                     {"nodes", std::move(nodes)}});
  }
  return array;
}

}  // namespace

std::string to_json(const Examination& examination) {
  const Json object{
      {"version", build_facts().version},
      {"seconds", examination.seconds},
      {"mesh", examination.needs.mesh ? Json(examination.needs.mesh->str()) : Json(nullptr)},
      {"exit_code", verdict(examination.checks)},
      {"exclude", exclude_list(examination.checks)},
      {"checks", checks_of(examination)},
      {"ranks", ranks_of(examination)},
      {"nodes", nodes_of(examination)},
      {"groups", groups_of(examination)},
      {"directories", directories_of(examination)}};
  // Paths may hold bytes that are not UTF-8.
  return json_text(object, 2);
}

}  // namespace fourfold::doctor
