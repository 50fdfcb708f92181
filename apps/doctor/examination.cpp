// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "examination.hpp"

#include "records.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/clock.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/device/device.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

namespace fourfold::doctor {
namespace {

/// What disturbs a rank or a line by chance does not do it so often.
constexpr int most_looks = 3;
/// Shares of the time that the parts may take, each look of those that are repeated.
constexpr double speed_share = 0.04;  ///< of each of two windows
constexpr double lines_share = 0.12;
constexpr double links_share = 0.04;
constexpr double directories_share = 0.25;

/// One examination in the making, on one rank.
class HealthCheck {
 public:
  HealthCheck(const Arguments& arguments, const comm::MpiRuntime& mpi)
      : arguments_(arguments), mpi_(mpi), world_(mpi.world()), start_s_(steady_time_s()) {}

  Examination run() {
    if (are_of_one_build()) {
      gather_facts();
      measure_speeds();
      measure_transport();
      measure_nodes();
      if (world_.rank() == 0) {
        evaluate();
      }
    }
    found_.seconds = steady_time_s() - start_s_;
    return std::move(found_);
  }

 private:
  /// Says it on stderr, and to whoever looks where this rank hangs.
  void tell(const std::string& what) {
    if (comm::FlightRecorder* const recorder = world_.flight_recorder()) {
      recorder->set_activity(what);
    }
    if (world_.rank() == 0) {
      log::write_stderr(
          format_message("doctor: {:4.1f} s  {}\n", steady_time_s() - start_s_, what));
    }
  }

  /// Whether there is time for another look of about `seconds`. Collective.
  bool has_time(double seconds) {
    return holds_on_all(world_, steady_time_s() - start_s_ + seconds < 0.7 * arguments_.seconds);
  }

  /// Whether what ranks tell each other below is of one make. Says which are not.
  bool are_of_one_build() {
    const char* const slurm = std::getenv("SLURMD_NODENAME");
    const std::vector<std::string> hosts = comm::all_gather_text(world_, mpi_.host());
    Ranks ranks{
        .facts = {},
        .nodes = node_names(hosts, comm::all_gather_text(world_, slurm == nullptr ? "" : slurm))};
    for (const std::string& build : comm::all_gather_text(world_, build_name())) {
      ranks.facts.emplace_back().version = build;
    }
    Check check = builds_check(ranks);
    const bool are_alike = check.status() == Status::ok;
    if (!are_alike) {
      found_.checks = {std::move(check)};
    }
    return are_alike;
  }

  void gather_facts() {
    tell(fmt::format("looking around on {} rank(s)", world_.size()));
    const std::int64_t here = mpi_.ranks_on_host();
    found_.needs = needs_of(arguments_, world_.rank(), world_.size(),
                            comm::all_reduce_scalar(world_, here, comm::ReduceOp::max));
    RankFacts own = own_facts([](const char* name) { return std::getenv(name); });
    own.gpu = device::has_own_memory ? device::device_facts().bus_id : "";
    own.rank = world_.rank();
    own.host = mpi_.host();
    own.needed_bytes = found_.needs.rank_bytes;
    const std::vector<std::string> hosts = comm::all_gather_text(world_, own.host);
    int first = 0;  // rank of this host
    while (hosts[first] != own.host) {
      ++first;
    }
    const auto node = world_.split(first, world_.rank(), "node");
    own.shares_memory = node->size() == 1 || !comm::capture_failure([&] {
                                                node->use(comm::Algorithm::shared);
                                              }).has_value();
    found_.ranks.facts = gather(world_, own);
    found_.ranks.nodes = node_names(hosts, each(found_.ranks.facts, &RankFacts::slurm_node));
  }

  void measure_speeds() {
    const double window_s = std::min(1.5, speed_share * arguments_.seconds);
    for (int look = 0; look < most_looks; ++look) {
      tell(look == 0 ? "products and memory bandwidth of all ranks"
                     : "the same once more, since ranks stand out");
      const RankSpeed own = measure_speed(found_.needs.precision, window_s, world_);
      const std::vector<RankSpeed> speeds = gather(world_, own);
      for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
        if (look == 0) {
          found_.speeds.push_back(speeds[rank]);
        } else {
          found_.speeds[rank] = better_of(found_.speeds[rank], speeds[rank]);
        }
      }
      if (!has_slow_ones(found_.speeds) || !has_time(3 * window_s)) {
        return;
      }
    }
  }

  void measure_transport() {
    if (world_.size() == 1) {
      return;
    }
    const comm::MeshShape shape = found_.needs.mesh.value_or(comm::MeshShape{.dp = world_.size()});
    const bool takes_part = world_.rank() < shape.ranks();
    const auto ranks = world_.split(takes_part ? 0 : 1, world_.rank(), "mesh");
    ranks->use(found_.needs.algorithm);
    std::optional<comm::Mesh> mesh;
    if (takes_part) {
      mesh.emplace(shape, *ranks);
    }
    const double seconds = std::min(6.0, lines_share * arguments_.seconds);
    for (int look = 0; look < most_looks; ++look) {
      tell(look == 0 ? "transport along the axes" : "the same once more, since groups stand out");
      if (mesh) {
        std::vector<LineSpeed> lines = measure_lines(*mesh, !found_.needs.mesh, seconds);
        found_.lines = look == 0 ? std::move(lines) : better_of(std::move(found_.lines), lines);
      }
      const std::int64_t stands_out = slow_lines(found_.ranks, found_.lines).empty() ? 0 : 1;
      if (comm::all_reduce_scalar(world_, stands_out, comm::ReduceOp::max) == 0 ||
          !has_time(seconds)) {
        return;
      }
    }
  }

  /// By the first rank of each node; the others wait.
  void measure_nodes() {
    const std::vector<int> firsts = found_.ranks.first_ranks();
    const bool leads = std::ranges::count(firsts, world_.rank()) > 0;
    const auto leaders = world_.split(leads ? 0 : 1, world_.rank(), "nodes");
    tell(fmt::format("GPUs, clocks and names on {} node(s)", firsts.size()));
    if (leads) {
      found_.gpus = gather(*leaders, query_gpus([](const std::vector<std::string>& command) {
        constexpr std::chrono::seconds for_a_driver_that_hangs{15};
        return program::output_of(command, {.time = for_a_driver_that_hangs});
      }));
      const auto facts = each(firsts, [&](int rank) { return found_.ranks.facts[rank]; });
      found_.clocks =
          measure_clocks(each(facts, &RankFacts::host), each(facts, &RankFacts::machine), *leaders);
    }
    if (firsts.size() > 1) {
      tell("network from node to node");
      if (leads) {
        found_.links = measure_links(*leaders, std::min(2.0, links_share * arguments_.seconds));
      }
    }
    if (!found_.needs.directories.empty()) {
      tell(fmt::format("{} director{}", found_.needs.directories.size(),
                       found_.needs.directories.size() == 1 ? "y" : "ies"));
      if (leads) {
        const double seconds_each =
            directories_share * arguments_.seconds /
            static_cast<double>(std::max<std::size_t>(2, found_.needs.directories.size()));
        found_.directories =
            measure_directories(found_.needs.directories, *leaders, std::min(4.0, seconds_each));
      }
    }
    world_.barrier();
  }

  void evaluate() {
    const Ranks& ranks = found_.ranks;
    found_.checks = {launch_check(ranks),
                     mesh_check(ranks, found_.needs.mesh, found_.needs.problem),
                     cores_check(ranks),
                     devices_check(ranks, found_.gpus, device::has_own_memory),
                     memory_check(ranks),
                     limits_check(ranks),
                     products_check(ranks, found_.speeds, found_.needs.precision),
                     bandwidth_check(ranks, found_.speeds)};
    std::ranges::move(transport_checks(ranks, found_.lines), std::back_inserter(found_.checks));
    found_.checks.push_back(network_check(ranks, found_.links));
    for (std::size_t i = 0; i < found_.directories.size(); ++i) {
      found_.checks.push_back(
          directory_check(ranks, found_.needs.directories[i], found_.directories[i]));
    }
    found_.checks.push_back(clock_check(ranks, found_.clocks));
    found_.checks.push_back(names_check(ranks, found_.clocks));
    found_.checks.push_back(versions_check(ranks));
  }

  const Arguments& arguments_;
  const comm::MpiRuntime& mpi_;
  comm::Communicator& world_;
  double start_s_;
  Examination found_;
};

}  // namespace

Examination examine(const Arguments& arguments, const comm::MpiRuntime& mpi) {
  return HealthCheck(arguments, mpi).run();
}

}  // namespace fourfold::doctor
