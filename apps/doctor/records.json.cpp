// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"

#include "examination.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>

#include <nlohmann/json.hpp>

#include <array>

namespace fourfold::doctor {

// What ranks send is what `--json` prints (docs/doctor.md).
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFacts, rank, node, host, slurm_node, machine, launched_ranks,
                                   job_tasks, threads, cores, memory_bytes, available_bytes,
                                   needed_bytes, huge_pages, open_files, locked_bytes, file_bytes,
                                   address_bytes, shm_free_bytes, has_shm, has_rdma, shares_memory,
                                   gpu, version, mpi, hdf5, products_gflops, triad_gb_s, cores_had)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LineSpeed, axis, ranks, latency_us, bus_gb_s, bytes,
                                   wrong_elements)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DirectoryFacts, node, probed, problem, has_links, bytes, write_s,
                                   read_s, free_bytes, free_files, sees_first, sees_second, seen_s,
                                   tokens)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, index, uuid, name, driver, temperature_c, used_mib,
                                   total_mib, uncorrected_errors, needs_reset, has_no_spare,
                                   slowed_by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeFacts, node, clock_offset_s, name_problem, gpu_problem, gpus,
                                   apart, received_gb_s, directories)

namespace {

nlohmann::json nodes_of(const Examination& examination) {
  nlohmann::json nodes = examination.nodes;
  const std::vector<double> links = best_links(examination.nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].erase("directories");  // they come by directory
    nodes[i]["best_link_gb_s"] = links[i];
  }
  return nodes;
}

nlohmann::json directories_of(const Examination& examination) {
  nlohmann::json array = nlohmann::json::array();
  for (std::size_t i = 0; i < examination.needs.directories.size(); ++i) {
    const Directory& directory = examination.needs.directories[i];
    nlohmann::json nodes = examination.facts_of_directory(i);
    if (directory.use == Directory::Use::first_rank) {
      nodes = {nodes[0]};
    }
    if (directory.use != Directory::Use::shared) {
      for (nlohmann::json& node : nodes) {
        for (const char* const key : {"sees_first", "sees_second", "seen_s"}) {
          node.erase(key);
        }
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

template <class Record>
std::string to_text(const Record& record) {
  return json_text(nlohmann::json(record));
}

template <class Record>
Record from_text(const std::string& text) {
  return read_json(
      json_if_any<nlohmann::json>(text),
      [](const nlohmann::json& json) { return json.get<Record>(); },
      [](const std::string& why) {
        throw UserError(ExitCode::config,
                        format_message("a rank has sent what this one cannot read ({}); start the "
                                       "same version of fourfold on all ranks",
                                       why));
      });
}

template std::string to_text(const RankFacts&);
template std::string to_text(const NodeFacts&);
template std::string to_text(const std::vector<LineSpeed>&);

template RankFacts from_text(const std::string&);
template NodeFacts from_text(const std::string&);
template std::vector<LineSpeed> from_text(const std::string&);

std::string to_json(const Examination& examination) {
  nlohmann::ordered_json object{{"version", build_facts().version},
                                {"seconds", examination.seconds},
                                {"mesh", nullptr},
                                {"exit_code", verdict(examination.checks)},
                                {"exclude", exclude_list(examination.checks)},
                                {"checks", nlohmann::json::array()},
                                {"ranks", nlohmann::json(examination.ranks)},
                                {"nodes", nodes_of(examination)},
                                {"groups", nlohmann::json(examination.lines)},
                                {"directories", directories_of(examination)}};
  if (examination.needs.mesh) {
    object["mesh"] = examination.needs.mesh->str();
  }
  for (const Check& check : examination.checks) {
    object["checks"].push_back({{"name", check.name()},
                                {"status", name(check.status())},
                                {"summary", check.summary()},
                                {"findings", check.findings()},
                                {"bad_nodes", check.bad_nodes()}});
  }
  // Paths may hold bytes that are not UTF-8.
  return json_text(object, 2);
}

}  // namespace fourfold::doctor
