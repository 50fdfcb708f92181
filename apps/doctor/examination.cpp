// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "examination.hpp"

#include "rank_checks.hpp"
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
    own_ = own_facts();
    const auto nodes = node_names(comm::all_gather_text(world_, mpi_.host()),
                                  comm::all_gather_text(world_, own_.slurm_node));
    const std::vector<std::string> builds = comm::all_gather_text(world_, build_name());
    Ranks ranks(nodes.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].node = nodes[rank];
      ranks[rank].version = builds[rank];
    }
    Check check = builds_check(ranks);
    const bool are_alike = check.status() == Status::ok;
    if (!are_alike) {
      found_.checks = {std::move(check)};
    }
    own_.node = nodes[world_.rank()];
    return are_alike;
  }

  void gather_facts() {
    tell(fmt::format("looking around on {} rank(s)", world_.size()));
    const std::int64_t here = mpi_.ranks_on_host();
    found_.needs = needs_of(arguments_, world_.rank(), world_.size(),
                            comm::all_reduce_scalar(world_, here, comm::ReduceOp::max));
    own_.gpu = device::has_own_memory ? device::device_facts().bus_id : "";
    own_.rank = world_.rank();
    own_.host = mpi_.host();
    own_.needed_bytes = found_.needs.rank_bytes;
    const std::vector<std::string> hosts = comm::all_gather_text(world_, own_.host);
    const auto first = std::ranges::find(hosts, own_.host) - hosts.begin();  // rank of this host
    const auto of_host = world_.split(static_cast<int>(first), world_.rank(), "node");
    own_.shares_memory = of_host->size() == 1 || !comm::capture_failure([&] {
                                                    of_host->use(comm::Algorithm::shared);
                                                  }).has_value();
    found_.ranks = gather(world_, own_);
  }

  void measure_speeds() {
    const double window_s = std::min(1.5, speed_share * arguments_.seconds);
    for (int look = 0; look < most_looks; ++look) {
      tell(look == 0 ? "products and memory bandwidth of all ranks"
                     : "the same once more, since ranks stand out");
      measure_speed(found_.needs.precision, window_s, world_, own_);
      found_.ranks = gather(world_, own_);
      if (!has_slow_ones(found_.ranks) || !has_time(3 * window_s)) {
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
    const std::vector<int> firsts = first_ranks(found_.ranks);
    const bool leads = std::ranges::count(firsts, world_.rank()) > 0;
    const auto leaders = world_.split(leads ? 0 : 1, world_.rank(), "nodes");
    NodeFacts own{.node = own_.node};
    tell(fmt::format("GPUs, clocks and names on {} node(s)", firsts.size()));
    if (leads) {
      const auto ask = [](const std::vector<std::string>& command) {
        constexpr std::chrono::seconds for_a_driver_that_hangs{15};
        return program::output_of(command, {.time = for_a_driver_that_hangs});
      };
      query_gpus(ask, own);
      const auto facts = each(firsts, [&](int rank) { return found_.ranks[rank]; });
      measure_clock(each(facts, &RankFacts::host), each(facts, &RankFacts::machine), *leaders, own);
    }
    if (firsts.size() > 1) {
      tell("network from node to node");
      if (leads) {
        own.received_gb_s =
            measure_links(*leaders, std::min(2.0, links_share * arguments_.seconds));
      }
    }
    if (const std::size_t count = found_.needs.directories.size(); count > 0) {
      tell(fmt::format("{} director{}", count, count == 1 ? "y" : "ies"));
      const double seconds_each = directories_share * arguments_.seconds /
                                  static_cast<double>(std::max<std::size_t>(2, count));
      if (leads) {
        own.directories = measure_directories(found_.needs.directories, own.node, *leaders,
                                              std::min(4.0, seconds_each));
      }
    }
    if (leads) {
      found_.nodes = gather(*leaders, own);
    }
    world_.barrier();
  }

  void evaluate() {
    const Ranks& ranks = found_.ranks;
    found_.checks = {launch_check(ranks),
                     mesh_check(ranks, found_.needs.mesh, found_.needs.problem),
                     cores_check(ranks),
                     devices_check(ranks, found_.nodes, device::has_own_memory),
                     memory_check(ranks),
                     limits_check(ranks),
                     products_check(ranks, found_.needs.precision),
                     bandwidth_check(ranks)};
    std::ranges::move(transport_checks(ranks, found_.lines), std::back_inserter(found_.checks));
    found_.checks.push_back(network_check(ranks, found_.nodes));
    for (std::size_t i = 0; i < found_.needs.directories.size(); ++i) {
      found_.checks.push_back(
          directory_check(found_.needs.directories[i], found_.facts_of_directory(i)));
    }
    found_.checks.push_back(clock_check(found_.nodes));
    found_.checks.push_back(names_check(found_.nodes));
    found_.checks.push_back(versions_check(ranks));
  }

  const Arguments& arguments_;
  const comm::MpiRuntime& mpi_;
  comm::Communicator& world_;
  double start_s_;
  RankFacts own_;
  Examination found_;
};

}  // namespace

Examination examine(const Arguments& arguments, const comm::MpiRuntime& mpi) {
  return HealthCheck(arguments, mpi).run();
}

}  // namespace fourfold::doctor
