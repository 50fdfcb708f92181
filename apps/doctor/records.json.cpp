// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>

#include <nlohmann/json.hpp>

namespace fourfold::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFacts, rank, host, slurm_node, machine, launched_ranks,
                                   job_tasks, threads, cores, memory_bytes, available_bytes,
                                   needed_bytes, huge_pages, open_files, locked_bytes, file_bytes,
                                   address_bytes, shm_free_bytes, has_shm, has_rdma, shares_memory,
                                   gpu, version, mpi, hdf5)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankSpeed, products_gflops, triad_gb_s, cores_had)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LineSpeed, axis, ranks, latency_s, bus_gb_s, bytes,
                                   wrong_elements)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkSpeed, from, to, gb_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DirectoryFacts, probed, problem, has_links, bytes, write_s,
                                   read_s, free_bytes, free_files, sees_first, sees_second, seen_s,
                                   tokens)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClockFacts, offset_s, name_problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, index, uuid, name, driver, temperature_c, used_mib,
                                   total_mib, uncorrected_errors, needs_reset, has_no_spare,
                                   slowed_by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeGpus, has_driver, problem, gpus, apart)

namespace {

std::string dump(const nlohmann::json& object) {
  return json_text(object);
}

/// @throws UserError (config): a rank that runs another version has other records
template <class Record>
void parse(const std::string& text, Record& record) {
  record = read_json(
      json_if_any<nlohmann::json>(text),
      [](const nlohmann::json& json) { return json.get<Record>(); },
      [](const std::string& why) {
        throw UserError(ExitCode::config,
                        format_message("a rank has sent what this one cannot read ({}); start the "
                                       "same version of fourfold on all ranks",
                                       why));
      });
}

}  // namespace

std::string to_text(const RankFacts& record) {
  return dump(record);
}
std::string to_text(const RankSpeed& record) {
  return dump(record);
}
std::string to_text(const std::vector<LineSpeed>& record) {
  return dump(record);
}
std::string to_text(const std::vector<LinkSpeed>& record) {
  return dump(record);
}
std::string to_text(const std::vector<DirectoryFacts>& record) {
  return dump(record);
}
std::string to_text(const ClockFacts& record) {
  return dump(record);
}
std::string to_text(const NodeGpus& record) {
  return dump(record);
}

void from_text(const std::string& text, RankFacts& record) {
  parse(text, record);
}
void from_text(const std::string& text, RankSpeed& record) {
  parse(text, record);
}
void from_text(const std::string& text, std::vector<LineSpeed>& record) {
  parse(text, record);
}
void from_text(const std::string& text, std::vector<LinkSpeed>& record) {
  parse(text, record);
}
void from_text(const std::string& text, std::vector<DirectoryFacts>& record) {
  parse(text, record);
}
void from_text(const std::string& text, ClockFacts& record) {
  parse(text, record);
}
void from_text(const std::string& text, NodeGpus& record) {
  parse(text, record);
}

}  // namespace fourfold::doctor
