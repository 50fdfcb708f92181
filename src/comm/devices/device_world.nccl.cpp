// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "device_world.hpp"

#include "communicator/argument_checks.hpp"
#include "nccl/check.nccl.hpp"
#include "nccl/nccl_communicator.nccl.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/clock_offset.hpp>
#include <fourfold/comm/fail_together.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::comm {
namespace {

/// One rank that all others must reach is enough for so many.
constexpr int ranks_per_id = 256;

/// Two ranks on one device wait for each other on it for ever when NCCL does not know, and are
/// refused by NCCL in words that do not say which they are.
void require_device_each(Communicator& host, const std::string& machine,
                         const device::DeviceFacts& facts) {
  const auto devices = all_gather_text(
      host, fmt::format("{}\nPCI {} of {}", machine_identity(), facts.bus_id, machine));
  std::map<std::string, int> owners;
  for (int rank = 0; rank < host.size(); ++rank) {
    const std::string& device = devices[rank];
    const auto [owner, is_new] = owners.emplace(device, rank);
    if (!is_new) {
      throw UserError(
          ExitCode::config,
          format_message("ranks {} and {} have the same GPU ({}); start one rank per GPU (a "
                         "training run can be tried out on fewer: mesh.share_devices = true)",
                         owner->second, rank, device.substr(device.find('\n') + 1)));
    }
  }
}

/// NCCL refuses ranks of several versions, as a mistake of ours.
void require_one_nccl(Communicator& host) {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  const std::vector<std::string> versions = all_gather_text(host, nccl_version_text(version));
  const auto other = std::ranges::find_if(
      versions, [&](const std::string& one) { return one != versions.front(); });
  if (other != versions.end()) {
    throw UserError(
        ExitCode::config,
        format_message("rank 0 has loaded NCCL {}, rank {} NCCL {}; let LD_LIBRARY_PATH "
                       "or the modules of all nodes name the same libnccl.so.2",
                       versions.front(), other - versions.begin(), *other));
  }
}

/// NCCL takes ranks of one device for a mistake, unless they say to be on different machines.
void pretend_to_be_apart(int rank) {
  ::setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  ::setenv("NCCL_IB_DISABLE", "1", 0);
}

std::vector<ncclUniqueId> exchange_ids(Communicator& host) {
  std::string own;
  const std::optional<Failure> failure = capture_failure([&] {
    if (host.rank() % ranks_per_id == 0) {
      ncclUniqueId id{};
      check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
      own.assign(static_cast<const char*>(id.internal), sizeof(id.internal));
    }
  });
  throw_if_any_failed(host, failure);
  std::vector<ncclUniqueId> ids;
  for (const std::string& text : all_gather_text(host, own)) {
    if (!text.empty()) {
      std::memcpy(static_cast<void*>(&ids.emplace_back()), text.data(), sizeof(ncclUniqueId));
    }
  }
  return ids;
}

NcclHandle join(Communicator& host, const std::shared_ptr<NcclCalls>& calls) {
  std::vector<ncclUniqueId> ids = exchange_ids(host);
  NcclHandle handle(host.name(), calls);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = handle.name();
  const auto in_use = calls->use();
  const bool has_one_id = ids.size() == 1;
  const std::string what =
      fmt::format("{} of '{}'", has_one_id ? "ncclCommInitRankConfig" : "ncclCommInitRankScalable",
                  handle.name());
  const ncclResult_t result =
      has_one_id
          ? ncclCommInitRankConfig(handle.place(), host.size(), ids.front(), host.rank(), &config)
          : ncclCommInitRankScalable(handle.place(), host.size(), host.rank(),
                                     static_cast<int>(ids.size()), ids.data(), &config);
  check_nccl(result, what, handle.get());
  handle.adopt();
  calls->wait_ready(handle.get(), result, what);
  return handle;
}

void tell(const Communicator& host, const device::DeviceFacts& facts,
          const DeviceOptions& options) {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  log::info(format_message(
      "{} rank{} on {} ({} multiprocessors, {:.0f} GiB, driver for CUDA {}), NCCL {}", host.size(),
      host.size() == 1 ? "" : "s", facts.name, facts.multiprocessors,
      static_cast<double>(facts.total_bytes) / (1 << 30), facts.driver,
      nccl_version_text(version)));
  if (options.needs_kernels_first && !facts.loads_kernels_first) {
    log::warning(
        "CUDA loads kernels when they first run (CUDA_MODULE_LOADING says so) if the first step of "
        "the pipeline hangs, start with CUDA_MODULE_LOADING=EAGER in the environment");
  }
}

}  // namespace

std::shared_ptr<Communicator> make_device_world(Communicator& host, const std::string& machine,
                                                const device::DevicePlace& place,
                                                const DeviceOptions& options) {
  device::DeviceFacts facts;
  collective_try(host, [&] {
    facts = device::take_device(place);
    require_nccl_version();
  });
  require_one_nccl(host);
  if (options.may_share) {
    pretend_to_be_apart(host.rank());
  } else {
    require_device_each(host, machine, facts);
  }
  const auto calls = std::make_shared<NcclCalls>(*host.flight_recorder(), options.deadline_s);
  auto world =
      std::make_shared<NcclCommunicator>(host, join(host, calls), all_ranks(host.size()), calls);
  if (host.rank() == 0) {
    tell(host, facts, options);
  }
  return world;
}

}  // namespace fourfold::comm
