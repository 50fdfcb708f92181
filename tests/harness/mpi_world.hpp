// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/mpi_runtime.hpp>

namespace fourfold::harness {

/// The world of this test program; set by main().
comm::Communicator*& mpi_world();

/// The ranks that a test program is about: those of hosts, or those of devices.
comm::Communicator& tested_world(comm::MpiRuntime& mpi);

}  // namespace fourfold::harness
