// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

namespace fourfold::harness {

/// The world of this test program; set by main().
comm::Communicator*& mpi_world();

}  // namespace fourfold::harness
