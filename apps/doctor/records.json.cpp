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

template <class Record>
std::string to_text(const Record& record) {
  return json_text(nlohmann::json(record));
}

template <class Record>
void from_text(const std::string& text, Record& record) {
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

template std::string to_text(const RankFacts&);
template std::string to_text(const RankSpeed&);
template std::string to_text(const std::vector<LineSpeed>&);
template std::string to_text(const std::vector<LinkSpeed>&);
template std::string to_text(const std::vector<DirectoryFacts>&);
template std::string to_text(const ClockFacts&);
template std::string to_text(const NodeGpus&);

template void from_text(const std::string&, RankFacts&);
template void from_text(const std::string&, RankSpeed&);
template void from_text(const std::string&, std::vector<LineSpeed>&);
template void from_text(const std::string&, std::vector<LinkSpeed>&);
template void from_text(const std::string&, std::vector<DirectoryFacts>&);
template void from_text(const std::string&, ClockFacts&);
template void from_text(const std::string&, NodeGpus&);

}  // namespace fourfold::doctor
