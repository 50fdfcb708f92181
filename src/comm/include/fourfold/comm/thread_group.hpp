// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <functional>

namespace fourfold::comm {

/// Runs `body` once per rank, each rank a thread of this process, and waits for all. The
/// communicator "world" is valid inside the body; one rank's thread uses its own only. Each thread
/// has its log rank set.
///
/// Messages are copied straight from the sender's buffer into the receiver's by whichever of the
/// two comes second, so an operation goes on while its rank computes.
/// @throws what the first failing rank threw, after all have ended: once a rank has failed, waiting
/// ranks get a SystemError instead of hanging.
/// @pre ranks >= 1
void run_ranks(int ranks, const std::function<void(Communicator& world)>& body);

/// The same for ranks that communicate what is in device memory: all of them share the device of
/// this process. On a host build there is no difference.
void run_device_ranks(int ranks, const std::function<void(Communicator& world)>& body);

}  // namespace fourfold::comm
