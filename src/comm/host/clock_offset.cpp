// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/clock_offset.hpp>

#include <fstream>
#include <limits>
#include <vector>

namespace fourfold::comm {
namespace {

constexpr int rounds = 16;
constexpr int tag = 0x636c;  // "cl"

void send(Communicator& communicator, double value, int peer) {
  communicator.host().send(ConstTensorView(&value, {1}), peer, tag, {}).wait({});
}

double receive(Communicator& communicator, int peer) {
  double value = 0;
  communicator.host().recv(TensorView(&value, {1}), peer, tag, {}).wait({});
  return value;
}

/// By rank 0: how far the clock of `peer` is ahead.
double measure(Communicator& communicator, int peer, const std::function<double()>& clock) {
  double quickest_s = std::numeric_limits<double>::infinity();
  double offset_s = 0;
  for (int i = 0; i < rounds; ++i) {
    const double asked_s = clock();
    send(communicator, asked_s, peer);
    const double theirs_s = receive(communicator, peer);
    const double answered_s = clock();
    if (answered_s - asked_s < quickest_s) {
      quickest_s = answered_s - asked_s;
      offset_s = theirs_s - (asked_s + answered_s) / 2;
    }
  }
  return offset_s;
}

double answer(Communicator& communicator, const std::function<double()>& clock) {
  for (int i = 0; i < rounds; ++i) {
    receive(communicator, 0);
    send(communicator, clock(), 0);
  }
  return receive(communicator, 0);
}

}  // namespace

std::string machine_identity() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string identity;
  std::getline(in, identity);
  return identity;
}

double clock_offset_s(Communicator& communicator, const std::string& machine,
                      const std::function<double()>& clock) {
  const std::vector<std::string> machines = all_gather_text(communicator, machine);
  const auto shares_clock = [&](int rank) {
    const std::string& other = machines[rank];
    return rank == 0 || (!other.empty() && other == machines.front());
  };
  if (communicator.rank() != 0) {
    return shares_clock(communicator.rank()) ? 0 : answer(communicator, clock);
  }
  for (int peer = 1; peer < communicator.size(); ++peer) {
    if (!shares_clock(peer)) {
      send(communicator, measure(communicator, peer, clock), peer);
    }
  }
  return 0;
}

}  // namespace fourfold::comm
